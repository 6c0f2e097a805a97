"""Small models under the real names and commits, in the formats of the real repositories; weights are random.

BERT base and large as the original checkpoints (`gamma` and `beta`, a masked-LM head, a pooler), Google's small BERTs
as of 2020 (pytorch_model.bin in PyTorch's format of before 1.6, vocab.txt, config.json), RoBERTa with a byte-level BPE
and no pooler, DistilBERT with its own masked-LM head, MarianMT with sentencepiece.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import sentencepiece
import torch
from hub_server import Repository
from safetensors.torch import load_file, save
from transformers import (
    BertConfig,
    BertForPreTraining,
    DistilBertConfig,
    DistilBertForMaskedLM,
    MarianConfig,
    MarianMTModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

from csebench.plan import catalog
from csebench.plan.declarations import EncoderRef
from csebench.plan.registry import COMPONENTS, declaration

HIDDEN = 32
OTHER_FILES = {  # that nobody here needs
    "README.md": b"---\nlicense: mit\n---\n",
    **dict.fromkeys(("tf_model.h5", "rust_model.ot", "flax_model.msgpack"), b"not for PyTorch " * 4),
}


def models(tiny_bert: Path, tiny_roberta: Path, sentences: list[str]) -> list[Repository]:
    """Repositories of every model that scale paper and the declarations of methods name, with two tokenizers."""
    torch.manual_seed(0)
    wordpiece = wordpiece_files(tiny_bert)
    made = {}
    for ref in catalog.scale("paper").encoders.values():
        num_layers = 4 if "large" in ref.name else 3
        if "roberta" in ref.name:
            made[ref] = roberta(tiny_roberta, num_layers)
        elif ref.name.startswith("google/bert_uncased_"):
            made[ref] = small_bert(wordpiece, tiny_bert, *map(int, re.findall(r"-(\d+)", ref.name)))
        else:
            made[ref] = bert(wordpiece, tiny_bert, num_layers)
    generator = declaration("rtd", COMPONENTS).params["generator"][0]
    made[EncoderRef.parse(generator)] = distilbert(wordpiece)
    for name in declaration("msse").params["translators"][0].split():
        made[EncoderRef.parse(name)] = marian(sentences)
    return [Repository("models", ref.name, ref.revision, files | OTHER_FILES) for ref, files in made.items()]


def wordpiece_files(folder: Path) -> dict[str, bytes]:
    tokenizer = (folder / "tokenizer.json").read_bytes()
    numbers = json.loads(tokenizer)["model"]["vocab"]
    return {
        "vocab.txt": "".join(f"{piece}\n" for piece in sorted(numbers, key=numbers.get)).encode(),
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": to_json({"do_lower_case": True, "model_max_length": 512}),
    }


def bert(tokenizer: dict[str, bytes], folder: Path, num_layers: int) -> dict[str, bytes]:
    config = BertConfig.from_pretrained(folder, num_hidden_layers=num_layers, max_position_embeddings=512)
    weights = {}
    for name, tensor in saved(BertForPreTraining(config)).items():
        name = re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", name)
        weights[re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", name)] = tensor
    facts = config.to_dict() | {"architectures": ["BertForMaskedLM"], "gradient_checkpointing": False}
    return {**tokenizer, "config.json": to_json(facts), **formats(weights)}


def small_bert(tokenizer: dict[str, bytes], folder: Path, layers: int, hidden: int, heads: int) -> dict[str, bytes]:
    """In its real shape, but for a small vocabulary; the masked-LM head shares the word embeddings' storage."""
    shape = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
    config = BertConfig.from_pretrained(folder, **shape, intermediate_size=4 * hidden, max_position_embeddings=512)
    facts = {key: value for key, value in config.to_diff_dict().items() if key != "architectures"}
    file = io.BytesIO()
    torch.save(BertForPreTraining(config).state_dict(), file, _use_new_zipfile_serialization=False)
    return {"vocab.txt": tokenizer["vocab.txt"], "config.json": to_json(facts), "pytorch_model.bin": file.getvalue()}


def roberta(folder: Path, num_layers: int) -> dict[str, bytes]:
    config = RobertaConfig.from_pretrained(
        folder, num_hidden_layers=num_layers, max_position_embeddings=514, layer_norm_eps=1e-5
    )
    tokenizer = {name: (folder / name).read_bytes() for name in ("vocab.json", "merges.txt")}
    tokenizer["tokenizer_config.json"] = to_json({"model_max_length": 512})
    facts = config.to_dict() | {"architectures": ["RobertaForMaskedLM"]}
    return {**tokenizer, "config.json": to_json(facts), **formats(saved(RobertaForMaskedLM(config)))}


def distilbert(tokenizer: dict[str, bytes]) -> dict[str, bytes]:
    size = tokenizer["vocab.txt"].count(b"\n")
    config = DistilBertConfig(vocab_size=size, dim=HIDDEN, hidden_dim=64, n_layers=2, n_heads=4)
    facts = config.to_dict() | {"architectures": ["DistilBertForMaskedLM"], "tie_weights_": True}
    return {**tokenizer, "config.json": to_json(facts), **formats(saved(DistilBertForMaskedLM(config)))}


def marian(sentences: list[str]) -> dict[str, bytes]:
    """As Helsinki-NLP publishes them: pytorch_model.bin only."""
    pieces = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=pieces, vocab_size=300, hard_vocab_limit=False, minloglevel=2
    )
    model = sentencepiece.SentencePieceProcessor(model_proto=pieces.getvalue())
    names = ["</s>", "<unk>", *(model.id_to_piece(i) for i in range(model.get_piece_size()))]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(names))}
    vocabulary["<pad>"] = pad = len(vocabulary)
    special = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": 0}
    config = MarianConfig(
        vocab_size=len(vocabulary),
        d_model=HIDDEN,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=512,
        static_position_embeddings=True,
        scale_embedding=True,
        **special,
    )
    generation = {"max_length": 512, "num_beams": 6, "bos_token_id": 0, "bad_words_ids": [[pad]], **special}
    translator = MarianMTModel(config)
    translator.final_logits_bias[0, config.eos_token_id] = 4.0  # short translations, for the sake of the test's time
    return {
        "config.json": to_json(config.to_dict() | {"architectures": ["MarianMTModel"]}),
        "generation_config.json": to_json(generation),
        "pytorch_model.bin": pickled(saved(translator)),
        "source.spm": pieces.getvalue(),
        "target.spm": pieces.getvalue(),
        "vocab.json": to_json(vocabulary),
        "tokenizer_config.json": to_json({"target_lang": "deu", "source_lang": "eng", "model_max_length": 512}),
    }


def saved(model) -> dict[str, torch.Tensor]:
    """Weights under the names of a saved checkpoint."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(Path(folder) / "model.safetensors")


def formats(weights: dict[str, torch.Tensor]) -> dict[str, bytes]:
    """Both formats of PyTorch, as the official repositories have them."""
    return {"model.safetensors": save(weights, metadata={"format": "pt"}), "pytorch_model.bin": pickled(weights)}


def pickled(weights: dict[str, torch.Tensor]) -> bytes:
    file = io.BytesIO()
    torch.save(weights, file)
    return file.getvalue()


def to_json(content) -> bytes:
    return json.dumps(content, indent=2).encode()
