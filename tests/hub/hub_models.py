"""Small models under the real names and commits, in the formats of the real repositories; weights are random.

BERT as the original checkpoints (`gamma` and `beta`, a masked-LM head, a pooler), Google's small BERTs as of 2020
(pytorch_model.bin in PyTorch's format of before 1.6, vocab.txt, config.json), RoBERTa with a byte-level BPE and no
pooler, DistilBERT with its own masked-LM head, MarianMT with sentencepiece.
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

OTHER_FILES = {  # that nobody here needs
    "README.md": b"---\nlicense: mit\n---\n",
    **dict.fromkeys(("tf_model.h5", "rust_model.ot", "flax_model.msgpack"), b"not for PyTorch " * 4),
}


def models(tiny_bert: Path, tiny_roberta: Path, sentences: list[str]) -> list[Repository]:
    """Repositories of every model that scale paper and the declarations of methods name, with two tokenizers."""
    torch.manual_seed(0)
    tokenizer = (tiny_bert / "tokenizer.json").read_bytes()
    numbers = json.loads(tokenizer)["model"]["vocab"]
    vocabulary = "".join(f"{piece}\n" for piece in sorted(numbers, key=numbers.get)).encode()
    wordpiece = {"vocab.txt": vocabulary, "tokenizer.json": tokenizer}
    wordpiece["tokenizer_config.json"] = to_json({"do_lower_case": True, "model_max_length": 512})
    bpe = {name: (tiny_roberta / name).read_bytes() for name in ("vocab.json", "merges.txt")}
    bpe["tokenizer_config.json"] = to_json({"model_max_length": 512})
    made = {}
    for ref in catalog.scale("paper").encoders.values():
        layers = 4 if "large" in ref.name else 3
        if "roberta" in ref.name:
            config = {"num_hidden_layers": layers, "max_position_embeddings": 514, "layer_norm_eps": 1e-5}
            made[ref] = checkpoint(RobertaForMaskedLM(RobertaConfig.from_pretrained(tiny_roberta, **config)), bpe)
        elif ref.name.startswith("google/bert_uncased_"):
            made[ref] = small_bert(vocabulary, tiny_bert, *map(int, re.findall(r"-(\d+)", ref.name)))
        else:
            config = BertConfig.from_pretrained(tiny_bert, num_hidden_layers=layers, max_position_embeddings=512)
            made[ref] = checkpoint(BertForPreTraining(config), wordpiece, {"weight": "gamma", "bias": "beta"})
    generator = EncoderRef.parse(declaration("rtd", COMPONENTS).params["generator"][0])
    config = DistilBertConfig(vocab_size=len(numbers), dim=32, hidden_dim=64, n_layers=2, n_heads=4)
    made[generator] = checkpoint(DistilBertForMaskedLM(config), wordpiece)
    for name in declaration("msse").params["translators"][0].split():
        made[EncoderRef.parse(name)] = marian(sentences)
    return [Repository("models", ref.name, ref.revision, files | OTHER_FILES) for ref, files in made.items()]


def checkpoint(model, tokenizer: dict[str, bytes], norms: dict[str, str] | None = None) -> dict[str, bytes]:
    """With both formats of PyTorch, as the official repositories have them; `norms`: other names of the parameters of
    layer normalisation."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        configuration = {path.name: path.read_bytes() for path in Path(folder).glob("*.json")}
        weights = load_file(Path(folder) / "model.safetensors")
    for old, new in (norms or {}).items():
        weights = {re.sub(rf"LayerNorm\.{old}$", f"LayerNorm.{new}", name): w for name, w in weights.items()}
    safe = {"model.safetensors": save(weights, metadata={"format": "pt"})}
    return {**tokenizer, **configuration, **safe, "pytorch_model.bin": pickled(weights)}


def small_bert(vocabulary: bytes, folder: Path, layers: int, hidden: int, heads: int) -> dict[str, bytes]:
    """In its real shape, but for a small vocabulary; the masked-LM head shares the word embeddings' storage."""
    shape = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
    config = BertConfig.from_pretrained(folder, **shape, intermediate_size=4 * hidden, max_position_embeddings=512)
    facts = {key: value for key, value in config.to_diff_dict().items() if key != "architectures"}
    weights = pickled(BertForPreTraining(config).state_dict(), _use_new_zipfile_serialization=False)
    return {"vocab.txt": vocabulary, "config.json": to_json(facts), "pytorch_model.bin": weights}


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
    shape = {
        "d_model": 32,
        "max_position_embeddings": 512,
        "static_position_embeddings": True,
        "scale_embedding": True,
    }
    for side in ("encoder", "decoder"):
        shape |= {f"{side}_layers": 1, f"{side}_attention_heads": 4, f"{side}_ffn_dim": 64}
    special = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": 0}
    translator = MarianMTModel(MarianConfig(vocab_size=len(vocabulary), **shape, **special))
    translator.generation_config.update(max_length=512, num_beams=6, bad_words_ids=[[pad]], **special)
    translator.final_logits_bias[0, 0] = 4.0  # short translations, for the sake of the test's time
    tokenizer = {name: pieces.getvalue() for name in ("source.spm", "target.spm")} | {
        "vocab.json": to_json(vocabulary),
        "tokenizer_config.json": to_json({"target_lang": "deu", "source_lang": "eng", "model_max_length": 512}),
    }
    files = checkpoint(translator, tokenizer)
    del files["model.safetensors"]
    return files


def pickled(weights: dict[str, torch.Tensor], **form) -> bytes:
    file = io.BytesIO()
    torch.save(weights, file, **form)
    return file.getvalue()


def to_json(content: dict) -> bytes:
    return json.dumps(content).encode()
