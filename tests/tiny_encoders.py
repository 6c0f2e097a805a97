"""Tiny random models of every architecture that csebench knows, each with a tokenizer of its kind.

`save_tiny` saves one into a folder. `MODELS` are the architectures in csebench's table of encoders,
`OTHERS` are some that it lacks.
"""

from dataclasses import dataclass, field

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModel, PreTrainedTokenizerFast, T5EncoderModel

from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import EncoderRef

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
    "initializer_range": 0.2,  # larger than usual, so that a layer changes what it reads
}
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
    """The special tokens of a kind of tokenizer."""

    template: str = "$A"  # where they stand around a sentence, $A
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
    """The configuration and the tokenizer of a tiny model."""

    config: str  # class of the configuration in transformers
    settings: dict
    marks: Marks = BERT


POSITIONS = {**SIZES, "max_position_embeddings": 40}
# positions are counted from the one after the padding token's id
AFTER_PADDING = {**SIZES, "max_position_embeddings": 42, "pad_token_id": 1}
DISTIL = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 40}
DEBERTA = {**POSITIONS, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
WITHOUT_HEAD_DIM = {key: value for key, value in CAUSAL.items() if key != "head_dim"}
MODELS = {  # by `model_type`
    "bert": Tiny("BertConfig", POSITIONS),
    "roberta": Tiny("RobertaConfig", AFTER_PADDING, ROBERTA),
    "xlm-roberta": Tiny("XLMRobertaConfig", AFTER_PADDING, ROBERTA),
    "camembert": Tiny("CamembertConfig", AFTER_PADDING, ROBERTA),
    "ernie": Tiny("ErnieConfig", POSITIONS),
    "mpnet": Tiny("MPNetConfig", {**POSITIONS, "max_position_embeddings": 42}, ROBERTA),
    "albert": Tiny("AlbertConfig", {**POSITIONS, "embedding_size": 8}),
    "electra": Tiny("ElectraConfig", {**POSITIONS, "embedding_size": 8}),
    "deberta": Tiny("DebertaConfig", DEBERTA),
    "deberta-v2": Tiny(
        "DebertaV2Config", {**DEBERTA, "position_buckets": 8, "norm_rel_ebd": "layer_norm"}
    ),
    "distilbert": Tiny("DistilBertConfig", DISTIL),
    "modernbert": Tiny(
        "ModernBertConfig",
        # some layers see two tokens on each side, fewer than the texts have
        {**POSITIONS, "pad_token_id": 0, "local_attention": 4},
    ),
    "nomic_bert": Tiny("NomicBertConfig", POSITIONS),
    "data2vec-text": Tiny("Data2VecTextConfig", AFTER_PADDING, ROBERTA),
    "megatron-bert": Tiny("MegatronBertConfig", POSITIONS),
    "rembert": Tiny(
        "RemBertConfig", {**POSITIONS, "input_embedding_size": 8, "output_embedding_size": 8}
    ),
    "roberta-prelayernorm": Tiny("RobertaPreLayerNormConfig", AFTER_PADDING, ROBERTA),
    "xlm-roberta-xl": Tiny("XLMRobertaXLConfig", AFTER_PADDING, ROBERTA),
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
    "qwen2": Tiny("Qwen2Config", WITHOUT_HEAD_DIM, GPT),
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


def save_tiny(model_type, folder, kind=AutoModel, **settings):
    """Save a tiny model with its tokenizer, and return the folder.

    Args:
        kind: class of transformers that makes the model.
        settings: changes of its configuration.
    """
    tiny = (MODELS | OTHERS)[model_type]
    tokenizer = make_tokenizer(tiny.marks)
    config_class = getattr(transformers, tiny.config)
    config = config_class(vocab_size=len(tokenizer), **(tiny.settings | settings))

    torch.manual_seed(0)
    if kind is T5EncoderModel:
        model = T5EncoderModel(config)
    else:
        model = kind.from_config(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_tokenizer(marks):
    """Make a tokenizer that splits at blanks and adds special tokens around a sentence."""
    special_tokens = list(dict.fromkeys(marks.roles.values()))
    tokens = special_tokens + VOCABULARY.split()
    ids = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=marks.roles["unk"]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()

    added = [token for token in special_tokens if token in marks.template.split()]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=marks.template, special_tokens=[(token, ids[token]) for token in added]
    )
    roles = {f"{role}_token": token for role, token in marks.roles.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)


def load_local(folder, **options):
    """Load an encoder of a folder, with options of `Encoder.load`."""
    return Encoder.load(EncoderRef(name=str(folder), revision="local"), **options)
