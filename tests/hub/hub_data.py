"""What the hub has, under real names and commits: data sets of the project's smoke data, and
small models with random weights in the formats of the real repositories."""

import hashlib
import io
import json
import re
import tarfile
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import sentencepiece
import torch
import transformers as hf
import yaml
from hub_server import Hub, Repository
from safetensors.torch import load_file, save

from csebench.base.project import ROOT
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import DataSource, Download, sources
from csebench.plan.catalog.registry import COMPONENTS, declaration
from csebench.plan.schema.declarations import EncoderRef

SMOKE = ROOT / "data" / "smoke"
SENTENCES = (SMOKE / "wiki/smoke.txt").read_text(encoding="utf-8").splitlines()
RANKED = [
    {"query-id": f"q{i}", "corpus-ids": [f"d{j}" for j in range(i + 25, i + 40)]} for i in range(10)
]
OTHER_FILES = dict.fromkeys(
    ("README.md", "tf_model.h5", "rust_model.ot", "flax_model.msgpack"), b"not needed here"
)


def small_sums() -> dict[str, str]:
    """The sums of registered files that the smoke data take the place of."""
    files = {
        "wiki1m-simcse": "wiki/smoke.txt",
        "stsb-dev": "downstream/STS/STSBenchmark/sts-dev.csv",
    }
    return {
        name: hashlib.sha256((SMOKE / path).read_bytes()).hexdigest()
        for name, path in files.items()
    }


def fill(hub: Hub, tiny_bert: Path, tiny_roberta: Path) -> None:
    """Give a hub all models and data sets; mteb's at the revisions that mteb 2.26 pins."""
    hub.repositories += [
        *models(tiny_bert, tiny_roberta),
        simcse(),
        classification("amazon_massive_intent", "4672e20407010da34463acc759c162ca9734bca6", ["en"]),
        classification("banking77", "0fd18e25b25c072e09e0d92ab615fda904d66300", ["default"]),
        classification(
            "amazon_counterfactual", "1f7e6a9d6fa6e64c53d146e428565640410c0df1", ["en", "en-ext"], 2
        ),
        retrieval("quora", "e4e08e0b7dbe3c8700f0daef558ff32256715259"),
        retrieval(
            "AskUbuntuDupQuestions", "c5691e3c48741d5f83b5cc8e630653d7a8cfc048", {"test": RANKED}
        ),
    ]
    hub.archives |= {
        f"files/{path.name}": path.read_bytes()
        for path in (SMOKE / "misc/stackoverflow").glob("*.txt")
    }
    hub.archives["files/aclImdb_v1.tar.gz"] = imdb()
    for name in (source.partition(":")[2] for source in sources() if source.startswith("beir:")):
        folder, content = (
            SMOKE / "beir" / ("cqadupstack" if name == "cqadupstack" else "smoke"),
            io.BytesIO(),
        )
        with zipfile.ZipFile(content, "w") as archive:
            for path in folder.rglob("*.*"):
                archive.write(path, f"{name}/{path.relative_to(folder)}")
        hub.archives[f"files/{name}.zip"] = content.getvalue()


def served(hub: Hub) -> dict[str, DataSource]:
    """The sources of data/sources.yaml that have a server of their own, as this hub serves them."""
    changed = {}
    for name, source in sources().items():
        paths = [f"files/{Path(wanted.url).name}" for wanted in source.downloads]
        sums = [hashlib.sha256(hub.archives[path]).hexdigest() for path in paths]
        stated = zip(paths, sums, strict=True)
        if downloads := [
            Download(url=f"{hub.endpoint}/{path}", sum=f"sha256:{value}") for path, value in stated
        ]:
            changed[name] = source.model_copy(update={"downloads": downloads})
    return changed


def simcse() -> Repository:
    """SimCSE's data set repository: corpus, triplets and SentEval's archive."""
    senteval = io.BytesIO()
    with tarfile.open(fileobj=senteval, mode="w") as tar:
        tar.add(SMOKE / "downstream", "SentEval/data/downstream")
    files = {
        "wiki1m_for_simcse.txt": SMOKE / "wiki/smoke.txt",
        "nli_for_simcse.csv": SMOKE / "nli/smoke.csv",
    }
    files = {name: path.read_bytes() for name, path in files.items()} | {
        "senteval.tar": senteval.getvalue()
    }
    ref = EncoderRef.parse(sources()["wiki"].hub)
    return Repository("datasets", ref.name, ref.revision, files)


def imdb() -> bytes:
    """In the layout of its authors."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for split in ("train", "test"):
            rows = (SMOKE / f"misc/imdb/{split}.tsv").read_text(encoding="utf-8").splitlines()[1:]
            for label, number, rating, text in (row.split("\t") for row in rows):
                member = tarfile.TarInfo(
                    f"aclImdb/{split}/{('neg', 'pos')[int(label)]}/{number}_{rating}.txt"
                )
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def classification(name: str, commit: str, languages: list[str], classes: int = 4) -> Repository:
    labels = [(text, i % classes) for i, text in enumerate(SENTENCES[:80])]
    rows = [
        {"text": text, "label": label, "label_text": str(label), "lang": "en"}
        for text, label in labels
    ]
    parts = {"train": rows[:40], "validation": rows[40:], "test": rows[40:]}
    return dataset(name, commit, dict.fromkeys(languages, parts))


def retrieval(name: str, commit: str, ranked=None) -> Repository:
    qrels = [{"query-id": f"q{i}", "corpus-id": f"d{i + 31}", "score": 1} for i in range(10)]
    corpus = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(SENTENCES[:60])]
    queries = [{"_id": f"q{i}", "text": text} for i, text in enumerate(SENTENCES[30:40])]
    configs = {
        "default": {"test": qrels},
        "corpus": {"corpus": corpus},
        "queries": {"queries": queries},
    }
    return dataset(name, commit, configs | ({"top_ranked": ranked} if ranked else {}))


def dataset(name: str, commit: str, configs: dict[str, dict[str, list[dict]]]) -> Repository:
    """Tables of rows by configuration and split, and a README.md whose head names their files."""
    files, listed = {}, []
    for config, splits in configs.items():
        paths = {split: f"{config}/{split}.jsonl" for split in splits}
        listed.append(
            {
                "config_name": config,
                "data_files": [{"split": s, "path": p} for s, p in paths.items()],
            }
        )
        for split, rows in splits.items():
            files[paths[split]] = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    files["README.md"] = f"---\n{yaml.safe_dump({'configs': listed})}---\n".encode()
    return Repository("datasets", f"mteb/{name}", commit, files)


def models(tiny_bert: Path, tiny_roberta: Path) -> list[Repository]:
    """Repositories of every model that scale paper and the declarations of methods name, with
    two tokenizers."""
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
        shape, kept = {"num_hidden_layers": 4 if "large" in ref.name else 3}, None
        if ref.name.startswith("google/bert_uncased_"):  # with its real depth, a quarter as wide
            layers, hidden, heads = map(int, re.findall(r"-(\d+)", ref.name))
            shape = {
                "num_hidden_layers": layers,
                "hidden_size": hidden // 4,
                "num_attention_heads": heads,
            }
            shape["intermediate_size"] = hidden
            kept = ("vocab.txt", "config.json", "pytorch_model.bin")
        if "roberta" in ref.name:  # with a byte-level BPE and no pooler
            shape |= {"max_position_embeddings": 514, "layer_norm_eps": 1e-5}
            files = checkpoint(
                hf.RobertaForMaskedLM(hf.RobertaConfig.from_pretrained(tiny_roberta, **shape)), bpe
            )
        else:
            config = hf.BertConfig.from_pretrained(tiny_bert, max_position_embeddings=512, **shape)
            files = checkpoint(hf.BertForPreTraining(config), wordpiece)
        made[ref] = {name: files[name] for name in kept or files}
    generator = EncoderRef.parse(declaration("rtd", COMPONENTS).params["generator"][0])
    config = hf.DistilBertConfig(
        vocab_size=len(numbers), dim=32, hidden_dim=64, n_layers=2, n_heads=4
    )
    made[generator] = checkpoint(hf.DistilBertForMaskedLM(config), wordpiece)
    for name in declaration("msse").params["translators"][0].split():
        made[EncoderRef.parse(name)] = marian()
    return [
        Repository("models", ref.name, ref.revision, files | OTHER_FILES)
        for ref, files in made.items()
    ]


def checkpoint(model, tokenizer: dict[str, bytes]) -> dict[str, bytes]:
    """With both formats of PyTorch, as the official repositories have them; a BERT's norms have
    their old names."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        configuration = {path.name: path.read_bytes() for path in Path(folder).glob("*.json")}
        weights = load_file(Path(folder) / "model.safetensors")
    if model.config.model_type == "bert":
        for new, old in {"weight": "gamma", "bias": "beta"}.items():
            weights = {
                name.replace(f"LayerNorm.{new}", f"LayerNorm.{old}"): w
                for name, w in weights.items()
            }
    safe = {"model.safetensors": save(weights, metadata={"format": "pt"})}
    return {**tokenizer, **configuration, **safe, "pytorch_model.bin": pickled(weights)}


def marian() -> dict[str, bytes]:
    """As Helsinki-NLP publishes them: pytorch_model.bin only."""
    pieces, options = io.BytesIO(), {"vocab_size": 300, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=pieces, **options
    )
    model = sentencepiece.SentencePieceProcessor(model_proto=pieces.getvalue())
    names = [
        "</s>",
        "<unk>",
        *(model.id_to_piece(i) for i in range(model.get_piece_size())),
        "<pad>",
    ]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(names))}
    pad = vocabulary["<pad>"]
    shape = {"d_model": 32, "max_position_embeddings": 512, "scale_embedding": True}
    for side in ("encoder", "decoder"):
        shape |= {f"{side}_layers": 1, f"{side}_attention_heads": 4, f"{side}_ffn_dim": 64}
    special = {
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
    }
    translator = hf.MarianMTModel(hf.MarianConfig(vocab_size=len(vocabulary), **shape, **special))
    translator.generation_config.update(
        max_length=512, num_beams=6, bad_words_ids=[[pad]], **special
    )
    translator.final_logits_bias[0, 0] = 4.0  # short translations, for the sake of the test's time
    tokenizer = dict.fromkeys(("source.spm", "target.spm"), pieces.getvalue())
    settings = {"target_lang": "deu", "source_lang": "eng", "model_max_length": 512}
    tokenizer |= {"vocab.json": to_json(vocabulary), "tokenizer_config.json": to_json(settings)}
    files = checkpoint(translator, tokenizer)
    del files["model.safetensors"]
    return files


def pickled(weights: dict[str, torch.Tensor]) -> bytes:
    """In PyTorch's format of before 1.6."""
    file = io.BytesIO()
    torch.save(weights, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def to_json(content: dict) -> bytes:
    return json.dumps(content).encode()
