"""Tiny random models of every architecture in the table of encoders, with a tokenizer of each
kind."""

from dataclasses import dataclass, field

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModel, PreTrainedTokenizerFast, T5EncoderModel

VOCABULARY = (
    "a sentence that goes on with more words than the other one here is text we read and score , ."
)
TEXTS = [
    "a sentence",
    "the other sentence that goes on with more words than one",
    "we read text and score text .",
]
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
SIZES["initializer_range"] = 0.2  # larger than usual, so that a layer changes what it reads
CAUSAL = {**SIZES, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 40}
HALVES = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 40,
}
T5 = {"d_model": 16, "num_layers": 2, "num_heads": 2, "d_kv": 8, "d_ff": 32}


@dataclass(frozen=True)
class Marks:
    """The special tokens of a kind of tokenizer, and where they stand around a sentence."""

    template: str = "$A"
    roles: dict[str, str] = field(default_factory=dict)  # token by role


BERT = Marks(
    "[CLS] $A [SEP]",
    {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
)
ROBERTA = Marks(
    "<s> $A </s>", {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
)
XLNET = Marks(
    "$A <sep> <cls>",
    {"pad": "<pad>", "unk": "<unk>", "cls": "<cls>", "sep": "<sep>", "mask": "<mask>"},
)
T5_MARKS = Marks("$A </s>", {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"})
GPT = Marks("$A", {"eos": "<|endoftext|>", "unk": "<|endoftext|>"})  # without a padding token
LLAMA = Marks("<s> $A", {"unk": "<unk>", "bos": "<s>", "eos": "</s>"})


@dataclass(frozen=True)
class Tiny:
    """How a tiny model is made."""

    config: str  # class of transformers
    settings: dict
    marks: Marks = BERT


POSITIONS = {**SIZES, "max_position_embeddings": 40}
BEHIND_PADDING = {**SIZES, "max_position_embeddings": 42, "pad_token_id": 1}
DISTIL = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 40}
DEBERTA = {**POSITIONS, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
MODELS = {  # by `model_type`
    "bert": Tiny("BertConfig", POSITIONS),
    "roberta": Tiny("RobertaConfig", BEHIND_PADDING, ROBERTA),
    "xlm-roberta": Tiny("XLMRobertaConfig", BEHIND_PADDING, ROBERTA),
    "camembert": Tiny("CamembertConfig", BEHIND_PADDING, ROBERTA),
    "ernie": Tiny("ErnieConfig", POSITIONS),
    "mpnet": Tiny("MPNetConfig", {**POSITIONS, "max_position_embeddings": 42}, ROBERTA),
    "albert": Tiny("AlbertConfig", {**POSITIONS, "embedding_size": 8}),
    "electra": Tiny("ElectraConfig", {**POSITIONS, "embedding_size": 8}),
    "deberta": Tiny("DebertaConfig", DEBERTA),
    "deberta-v2": Tiny(
        "DebertaV2Config", {**DEBERTA, "position_buckets": 8, "norm_rel_ebd": "layer_norm"}
    ),
    "distilbert": Tiny("DistilBertConfig", DISTIL),
    "modernbert": Tiny("ModernBertConfig", {**POSITIONS, "pad_token_id": 0}),
    "nomic_bert": Tiny("NomicBertConfig", POSITIONS),
    "data2vec-text": Tiny("Data2VecTextConfig", BEHIND_PADDING, ROBERTA),
    "megatron-bert": Tiny("MegatronBertConfig", POSITIONS),
    "rembert": Tiny(
        "RemBertConfig", {**POSITIONS, "input_embedding_size": 8, "output_embedding_size": 8}
    ),
    "roberta-prelayernorm": Tiny("RobertaPreLayerNormConfig", BEHIND_PADDING, ROBERTA),
    "xlm-roberta-xl": Tiny("XLMRobertaXLConfig", BEHIND_PADDING, ROBERTA),
    "roformer": Tiny("RoFormerConfig", {**POSITIONS, "embedding_size": 16}),
    "xlnet": Tiny("XLNetConfig", {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}, XLNET),
    "t5": Tiny("T5Config", T5, T5_MARKS),
    "mt5": Tiny("MT5Config", T5, T5_MARKS),
    "umt5": Tiny("UMT5Config", T5, T5_MARKS),
    "bart": Tiny("BartConfig", HALVES, ROBERTA),
    "mbart": Tiny("MBartConfig", HALVES, ROBERTA),
    "gpt2": Tiny("GPT2Config", {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 40}, GPT),
    "llama": Tiny("LlamaConfig", CAUSAL, LLAMA),
    "mistral": Tiny("MistralConfig", CAUSAL, LLAMA),
    "qwen2": Tiny("Qwen2Config", {key: CAUSAL[key] for key in CAUSAL if key != "head_dim"}, GPT),
    "qwen3": Tiny("Qwen3Config", CAUSAL, GPT),
    "gemma": Tiny("GemmaConfig", CAUSAL, LLAMA),
    "gemma2": Tiny("Gemma2Config", CAUSAL, LLAMA),
    "gemma3_text": Tiny("Gemma3TextConfig", CAUSAL, LLAMA),
}
OTHERS = {  # not in the table
    "fnet": Tiny(
        "FNetConfig", {"hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 32}
    ),
    "convbert": Tiny("ConvBertConfig", {**POSITIONS, "embedding_size": 16}),
    "eurobert": Tiny("EuroBertConfig", {**CAUSAL, "pad_token_id": 0}),
    "big_bird": Tiny("BigBirdConfig", POSITIONS),
    "longt5": Tiny("LongT5Config", T5, T5_MARKS),
    "pegasus": Tiny("PegasusConfig", HALVES, T5_MARKS),
}


def make_tokenizer(marks):
    special = list(dict.fromkeys(marks.roles.values()))
    vocabulary = {token: number for number, token in enumerate([*special, *VOCABULARY.split()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=marks.roles["unk"]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    used = [(token, vocabulary[token]) for token in special if token in marks.template.split()]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=marks.template, special_tokens=used
    )
    roles = {f"{role}_token": token for role, token in marks.roles.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)


def save_tiny(model_type, folder, kind=AutoModel, **settings):
    """Save a tiny model with its tokenizer; `settings` change its configuration."""
    tiny = (MODELS | OTHERS)[model_type]
    tokenizer = make_tokenizer(tiny.marks)
    config = getattr(transformers, tiny.config)(
        vocab_size=len(tokenizer), **{**tiny.settings, **settings}
    )
    torch.manual_seed(0)
    model = T5EncoderModel(config) if kind is T5EncoderModel else kind.from_config(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
