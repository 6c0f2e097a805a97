"""The data sets that scale paper fetches, made of the project's smoke data, under their real names and commits."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

from hub_server import Hub, Repository

from csebench.base.project import ROOT
from csebench.plan.declarations import EncoderRef
from csebench.plan.where_data_is import Download, Source, sources

SMOKE = ROOT / "data" / "smoke"
# the files of the smoke data that take the place of registered ones
REGISTERED = {"wiki1m-simcse": "wiki/smoke.txt", "stsb-dev": "downstream/STS/STSBenchmark/sts-dev.csv"}
# mteb's data sets at the revisions that mteb 2.26 pins: (repository, commit)
MASSIVE = ("mteb/amazon_massive_intent", "4672e20407010da34463acc759c162ca9734bca6")
BANKING = ("mteb/banking77", "0fd18e25b25c072e09e0d92ab615fda904d66300")
COUNTERFACTUAL = ("mteb/amazon_counterfactual", "1f7e6a9d6fa6e64c53d146e428565640410c0df1")
QUORA = ("mteb/quora", "e4e08e0b7dbe3c8700f0daef558ff32256715259")
ASK_UBUNTU = ("mteb/AskUbuntuDupQuestions", "c5691e3c48741d5f83b5cc8e630653d7a8cfc048")


def fill(hub: Hub, sentences: list[str]) -> None:
    """Give a hub all data sets."""
    hub.repositories += [
        simcse(),
        classification(MASSIVE, sentences, ["en"]),
        classification(BANKING, sentences, []),
        classification(COUNTERFACTUAL, sentences, ["en", "en-ext"], classes=2, per_class=40),
        retrieval(QUORA, sentences, ranked=False),
        retrieval(ASK_UBUNTU, sentences, ranked=True),
    ]
    hub.archives |= {f"files/{path.name}": path.read_bytes() for path in (SMOKE / "misc/stackoverflow").glob("*.txt")}
    hub.archives["files/aclImdb_v1.tar.gz"] = imdb()
    for name in (source.partition(":")[2] for source in sources() if source.startswith("beir:")):
        folder, content = SMOKE / "beir" / ("cqadupstack" if name == "cqadupstack" else "smoke"), io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for path in folder.rglob("*.*"):
                archive.write(path, f"{name}/{path.relative_to(folder)}")
        hub.archives[f"files/{name}.zip"] = content.getvalue()


def served(hub: Hub) -> dict[str, Source]:
    """The sources of data/sources.yaml that have a server of their own, as this hub serves them."""
    changed = {}
    for name, source in sources().items():
        if paths := [f"files/{Path(wanted.url).name}" for wanted in source.downloads]:
            sums = [hashlib.sha256(hub.archives[path]).hexdigest() for path in paths]
            downloads = [
                Download(url=f"{hub.endpoint}/{path}", sum=f"sha256:{stated}")
                for path, stated in zip(paths, sums, strict=True)
            ]
            changed[name] = source.model_copy(update={"downloads": downloads})
    return changed


# ---------------------------------------------------------------- files and archives


def simcse() -> Repository:
    """SimCSE's data set repository: corpus, triplets and SentEval's archive."""
    senteval = io.BytesIO()
    with tarfile.open(fileobj=senteval, mode="w") as tar:
        tar.add(SMOKE / "downstream", "SentEval/data/downstream")
    files = {
        "wiki1m_for_simcse.txt": (SMOKE / "wiki/smoke.txt").read_bytes(),
        "nli_for_simcse.csv": (SMOKE / "nli/smoke.csv").read_bytes(),
        "senteval.tar": senteval.getvalue(),
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
                member = tarfile.TarInfo(f"aclImdb/{split}/{('neg', 'pos')[int(label)]}/{number}_{rating}.txt")
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


# ---------------------------------------------------------------- mteb: tasks that data folders do not hold


def classification(named, sentences, languages, classes=4, per_class=12) -> Repository:
    labels = [(s, i % classes) for i, s in enumerate(sentences)]
    rows = [{"text": s, "label": label, "label_text": str(label), "lang": "en"} for s, label in labels]
    count = per_class * classes
    parts = {"train": rows[:count], "validation": rows[count : 2 * count], "test": rows[count : 2 * count]}
    configs = {
        language: {split: f"{language}/{split}.jsonl" if languages else f"{split}.jsonl" for split in parts}
        for language in languages or ["default"]
    }
    return dataset(named, configs, {path: parts[split] for paths in configs.values() for split, path in paths.items()})


def retrieval(named, sentences, ranked: bool) -> Repository:
    configs = {
        "default": {"test": "qrels/test.jsonl"},
        "corpus": {"corpus": "corpus.jsonl"},
        "queries": {"queries": "queries.jsonl"},
    }
    files = {
        "qrels/test.jsonl": [{"query-id": f"q{i}", "corpus-id": f"d{i + 31}", "score": 1} for i in range(10)],
        "corpus.jsonl": [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(sentences[:60])],
        "queries.jsonl": [{"_id": f"q{i}", "text": text} for i, text in enumerate(sentences[30:40])],
    }
    if ranked:
        configs["top_ranked"] = {"test": "top_ranked/test.jsonl"}
        files["top_ranked/test.jsonl"] = [
            {"query-id": f"q{i}", "corpus-ids": [f"d{j}" for j in range(i + 25, i + 40)]} for i in range(10)
        ]
    return dataset(named, configs, files)


def dataset(named, configs: dict[str, dict[str, str]], files: dict[str, list[dict]]) -> Repository:
    """Tables of rows, and a README.md whose head names the files of every configuration."""
    lines = ["---", "configs:"]
    for name, paths in configs.items():
        lines += [f"- config_name: {name}", "  data_files:"]
        for split, path in paths.items():
            lines += [f"  - split: {split}", f"    path: {path}"]
    card = "\n".join([*lines, "---", ""]).encode()
    tables = {name: "".join(f"{json.dumps(row)}\n" for row in rows).encode() for name, rows in files.items()}
    return Repository("datasets", *named, {"README.md": card, **tables})
