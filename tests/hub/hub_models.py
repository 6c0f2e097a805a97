"""Small models under the real names and commits, in the formats of the real repositories; weights are random.

BERT base and large as the original checkpoints (`gamma` and `beta`, a masked-LM head, a pooler), RoBERTa with a
byte-level BPE and no pooler, DistilBERT with its own masked-LM head, MarianMT with sentencepiece.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import sentencepiece
import torch
from hub_server import Repository
from safetensors.torch import load_file, save
from tokenizers import ByteLevelBPETokenizer
from transformers import (
    BertConfig,
    BertForPreTraining,
    BertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    MarianConfig,
    MarianMTModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaModel,
)

from csebench.plan import catalog
from csebench.plan.declarations import EncoderRef
from csebench.plan.registry import COMPONENTS, declaration
from encoders.pretrain import train_tokenizer

HIDDEN, VOCABULARY = 32, 600
SHAPE = {"num_attention_heads": 4, "intermediate_size": 64, "initializer_range": 0.1}
LAYERS = {"base": 3, "large": 4}
OTHER_WEIGHTS = ("tf_model.h5", "rust_model.ot", "flax_model.msgpack")  # that nobody here needs


def models(sentences: list[str]) -> list[Repository]:
    """Repositories of every model that scale paper and the declarations of methods name."""
    torch.manual_seed(0)
    vocabulary = wordpiece(sentences)
    bpe = byte_level_bpe(sentences)
    made = []
    for ref in catalog.scale("paper").encoders.values():
        size = "large" if "large" in ref.name else "base"
        files = roberta(bpe, size) if "roberta" in ref.name else bert(vocabulary, size)
        made.append(repository(ref, files))
    made.append(repository(EncoderRef.parse(value("rtd", "generator")), distilbert(vocabulary)))
    for name in declaration("msse").params["translators"][0].split():
        made.append(repository(EncoderRef.parse(name), marian(sentences)))
    return made


def checkpoints(sentences: list[str]) -> list[Repository]:
    """Released checkpoints as their authors put them on the hub, by the classes that saved them.

    SimCSE: a plain BertModel or RobertaModel with its pooler, in pytorch_model.bin only, with the buffer
    `position_ids` of its day. DiffCSE: the class of the training script, with a prefix, a head and a discriminator.
    """
    torch.manual_seed(1)
    vocabulary, bpe = wordpiece(sentences), byte_level_bpe(sentences)
    del vocabulary["tokenizer.json"]  # saved with transformers 4.2
    shape = {"hidden_size": HIDDEN, "num_hidden_layers": 2, **SHAPE}
    of_bert = BertConfig(vocab_size=vocabulary["vocab.txt"].count(b"\n"), **shape)
    of_roberta = roberta_config(bpe, 2)
    with_head = {f"bert.{name}": weight for name, weight in released(BertModel(of_bert)).items()}
    with_head |= {f"discriminator.{name}": torch.randn_like(weight.float()) for name, weight in with_head.items()}
    with_head |= {"mlp.net.0.weight": torch.randn(HIDDEN, HIDDEN)}
    files = {
        "princeton-nlp/unsup-simcse-bert-base-uncased": (vocabulary, of_bert, released(BertModel(of_bert))),
        "princeton-nlp/sup-simcse-roberta-base": (bpe, of_roberta, released(RobertaModel(of_roberta))),
        "voidism/diffcse-bert-base-uncased-sts": (vocabulary, of_bert, with_head),
        "ffgcc/esimcse-bert-base-uncased": (vocabulary, of_bert, released(BertModel(of_bert))),
    }
    made = []
    for name, (tokenizer, config, weights) in files.items():
        saved_by = (
            "BertForCL" if name.startswith("voidism") else f"{type(config).__name__.removesuffix('Config')}Model"
        )
        facts = config.to_dict() | {"architectures": [saved_by], "gradient_checkpointing": False}
        content = {**tokenizer, "config.json": to_json(facts), "pytorch_model.bin": pickled(weights)}
        made.append(repository(EncoderRef(name=name, revision=hashlib.sha1(name.encode()).hexdigest()), content))
    return made


def released(model) -> dict[str, torch.Tensor]:
    """Weights of a model with the buffer that transformers saved until 4.31."""
    return {"embeddings.position_ids": torch.arange(512).unsqueeze(0)} | dict(model.state_dict())


def value(component: str, param: str):
    return declaration(component, COMPONENTS).params[param][0]


def repository(ref: EncoderRef, files: dict[str, bytes]) -> Repository:
    others = {name: b"not for PyTorch " * 4 for name in OTHER_WEIGHTS}
    return Repository("models", ref.name, ref.revision, {**files, **others, "README.md": b"---\nlicense: mit\n---\n"})


def wordpiece(sentences: list[str]) -> dict[str, bytes]:
    tokenizer = train_tokenizer(sentences, VOCABULARY)
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    with TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        whole = (Path(folder) / "tokenizer.json").read_bytes()
    return {
        "vocab.txt": "".join(f"{piece}\n" for piece in pieces).encode(),
        "tokenizer.json": whole,
        "tokenizer_config.json": to_json({"do_lower_case": True, "model_max_length": 512}),
    }


def byte_level_bpe(sentences: list[str]) -> dict[str, bytes]:
    bpe = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator(sentences, vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    with TemporaryDirectory() as folder:
        bpe.save_model(folder)
        files = {name: (Path(folder) / name).read_bytes() for name in ("vocab.json", "merges.txt")}
    return {**files, "tokenizer_config.json": to_json({"model_max_length": 512})}


def bert(vocabulary: dict[str, bytes], size: str) -> dict[str, bytes]:
    count = vocabulary["vocab.txt"].count(b"\n")
    config = BertConfig(vocab_size=count, hidden_size=HIDDEN, num_hidden_layers=LAYERS[size], **SHAPE)
    weights = {}
    for name, tensor in saved(BertForPreTraining(config)).items():
        name = re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", name)
        weights[re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", name)] = tensor
    facts = config.to_dict() | {"architectures": ["BertForMaskedLM"], "gradient_checkpointing": False}
    return {**vocabulary, "config.json": to_json(facts), **formats(weights)}


def roberta(bpe: dict[str, bytes], size: str) -> dict[str, bytes]:
    config = roberta_config(bpe, LAYERS[size])
    facts = config.to_dict() | {"architectures": ["RobertaForMaskedLM"]}
    return {**bpe, "config.json": to_json(facts), **formats(saved(RobertaForMaskedLM(config)))}


def roberta_config(bpe: dict[str, bytes], layers: int) -> RobertaConfig:
    return RobertaConfig(
        vocab_size=len(json.loads(bpe["vocab.json"])),
        hidden_size=HIDDEN,
        num_hidden_layers=layers,
        max_position_embeddings=514,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        **SHAPE,
    )


def distilbert(vocabulary: dict[str, bytes]) -> dict[str, bytes]:
    count = vocabulary["vocab.txt"].count(b"\n")
    config = DistilBertConfig(vocab_size=count, dim=HIDDEN, hidden_dim=64, n_layers=2, n_heads=4)
    facts = config.to_dict() | {"architectures": ["DistilBertForMaskedLM"], "tie_weights_": True}
    return {**vocabulary, "config.json": to_json(facts), **formats(saved(DistilBertForMaskedLM(config)))}


def marian(sentences: list[str]) -> dict[str, bytes]:
    """As Helsinki-NLP publishes them: pytorch_model.bin only."""
    pieces = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=pieces, vocab_size=300, hard_vocab_limit=False, minloglevel=2
    )
    model = sentencepiece.SentencePieceProcessor(model_proto=pieces.getvalue())
    names = ["</s>", "<unk>", *(model.id_to_piece(i) for i in range(model.get_piece_size()))]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(names))}
    vocabulary["<pad>"] = len(vocabulary)
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
        eos_token_id=0,
        pad_token_id=vocabulary["<pad>"],
        decoder_start_token_id=vocabulary["<pad>"],
        forced_eos_token_id=0,
        static_position_embeddings=True,
        scale_embedding=True,
    )
    generation = {"max_length": 512, "num_beams": 6, "pad_token_id": config.pad_token_id, "bos_token_id": 0}
    generation |= {"decoder_start_token_id": config.pad_token_id, "eos_token_id": 0, "forced_eos_token_id": 0}
    generation |= {"bad_words_ids": [[config.pad_token_id]]}
    weights = io.BytesIO()
    translator = MarianMTModel(config)
    translator.final_logits_bias[0, config.eos_token_id] = 4.0  # short translations, for the sake of the test's time
    torch.save(saved(translator), weights)
    return {
        "config.json": to_json(config.to_dict() | {"architectures": ["MarianMTModel"]}),
        "generation_config.json": to_json(generation),
        "pytorch_model.bin": weights.getvalue(),
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


def sharded(weights: dict[str, torch.Tensor], kind: str) -> dict[str, bytes]:
    """Two shards and their index, in either format of PyTorch."""
    stem, write = ("model", save) if kind == "safetensors" else ("pytorch_model", pickled)
    names = sorted(weights)
    halves = {f"{stem}-0000{i + 1}-of-00002.{kind}": names[i::2] for i in range(2)}
    index = {"metadata": {}, "weight_map": {name: shard for shard, half in halves.items() for name in half}}
    shards = {shard: write({name: weights[name] for name in half}) for shard, half in halves.items()}
    return {**shards, f"{stem}.{kind}.index.json": to_json(index)}


def pickled(weights: dict[str, torch.Tensor]) -> bytes:
    file = io.BytesIO()
    torch.save(weights, file)
    return file.getvalue()


def to_json(content) -> bytes:
    return json.dumps(content, indent=2).encode()
