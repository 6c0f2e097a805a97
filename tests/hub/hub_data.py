"""The data sets that scale paper fetches, made of the project's smoke data, under their real names and commits."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from pathlib import Path

from hub_server import Repository

from csebench.base.project import ROOT
from csebench.plan.declarations import EncoderRef
from csebench.plan.where_data_is import Download, Source, sources

SMOKE = ROOT / "data" / "smoke"
# mteb's data sets at the revisions that mteb 2.26 pins: (repository, commit)
MASSIVE = ("mteb/amazon_massive_intent", "4672e20407010da34463acc759c162ca9734bca6")
BANKING = ("mteb/banking77", "0fd18e25b25c072e09e0d92ab615fda904d66300")
COUNTERFACTUAL = ("mteb/amazon_counterfactual", "1f7e6a9d6fa6e64c53d146e428565640410c0df1")
QUORA = ("mteb/quora", "e4e08e0b7dbe3c8700f0daef558ff32256715259")
ASK_UBUNTU = ("mteb/AskUbuntuDupQuestions", "c5691e3c48741d5f83b5cc8e630653d7a8cfc048")
CLASSES, PER_CLASS = 4, 12


def simcse() -> Repository:
    """SimCSE's data set repository: corpus, triplets and SentEval's archive."""
    files = {
        "wiki1m_for_simcse.txt": (SMOKE / "wiki/smoke.txt").read_bytes(),
        "nli_for_simcse.csv": (SMOKE / "nli/smoke.csv").read_bytes(),
        "senteval.tar": senteval(),
    }
    ref = EncoderRef.parse(sources()["wiki"].hub)
    return Repository("datasets", ref.name, ref.revision, files)


def senteval() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.add(SMOKE / "downstream", "SentEval/data/downstream")
    return stream.getvalue()


def beir_archives() -> dict[str, bytes]:
    """A zip for every data set of BEIR: cqadupstack with its forums, the others from one small corpus."""
    return {
        f"beir/{name}.zip": zipped(SMOKE / "beir" / ("cqadupstack" if name == "cqadupstack" else "smoke"), name)
        for name in (source.partition(":")[2] for source in sources() if source.startswith("beir:"))
    }


def served(hub) -> dict[str, Source]:
    """The sources of data/sources.yaml that have a server of their own, as this hub serves them."""
    changed = {}
    for name, source in sources().items():
        downloads = []
        for wanted in source.downloads:
            path = f"{'beir' if name.startswith('beir:') else 'files'}/{Path(wanted.url).name}"
            stated = hashlib.sha256(hub.archives[path]).hexdigest()
            downloads.append(Download(url=f"{hub.endpoint}/{path}", sum=f"sha256:{stated}"))
        if downloads:
            changed[name] = source.model_copy(update={"downloads": downloads})
    return changed


def other_archives() -> dict[str, bytes]:
    """IMDB in the layout of its authors, and StackOverflow's two files."""
    made = {f"files/{path.name}": path.read_bytes() for path in (SMOKE / "misc/stackoverflow").glob("*.txt")}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for split in ("train", "test"):
            rows = (SMOKE / f"misc/imdb/{split}.tsv").read_text(encoding="utf-8").splitlines()[1:]
            for label, number, rating, text in (row.split("\t") for row in rows):
                member = tarfile.TarInfo(f"aclImdb/{split}/{('neg', 'pos')[int(label)]}/{number}_{rating}.txt")
                content = text.encode()
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return made | {"files/aclImdb_v1.tar.gz": stream.getvalue()}


def fill(hub, sentences: list[str]) -> None:
    """Give a hub all data sets."""
    hub.repositories += [simcse(), *mteb(sentences)]
    hub.archives |= beir_archives() | other_archives()


def zipped(folder: Path, name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                info = zipfile.ZipInfo(f"{name}/{path.relative_to(folder)}")  # a fixed date: the same bytes every time
                archive.writestr(info, path.read_bytes())
    return stream.getvalue()


# ---------------------------------------------------------------- mteb


def mteb(sentences: list[str]) -> list[Repository]:
    """The tasks that data folders do not hold: classification, retrieval, reranking."""
    return [
        classification(MASSIVE, sentences, ["en"]),
        classification(BANKING, sentences, []),
        classification(COUNTERFACTUAL, sentences, ["en", "en-ext"], classes=2),
        retrieval(QUORA, sentences, ranked=False),
        retrieval(ASK_UBUNTU, sentences, ranked=True),
    ]


def classification(named, sentences, languages, classes=CLASSES) -> Repository:
    rows = [
        {"text": s, "label": i % classes, "label_text": str(i % classes), "lang": "en"} for i, s in numbered(sentences)
    ]
    count = max(PER_CLASS, 40) * classes if classes == 2 else PER_CLASS * classes
    splits = {"train": rows[:count], "validation": rows[count : 2 * count], "test": rows[count : 2 * count]}
    files, configs = {}, []
    for language in languages or ["default"]:
        folder = f"{language}/" if languages else ""
        paths = {split: f"{folder}{split}.jsonl" for split in splits}
        files |= {path: json_lines(splits[split]) for split, path in paths.items()}
        configs.append((language, paths))
    return Repository("datasets", *named, {"README.md": card(configs), **files})


def retrieval(named, sentences, ranked: bool) -> Repository:
    documents = [{"_id": f"d{i}", "title": "", "text": s} for i, s in numbered(sentences[:60])]
    queries = [{"_id": f"q{i}", "text": s} for i, s in numbered(sentences[30:40])]
    qrels = [{"query-id": f"q{i}", "corpus-id": f"d{i + 31}", "score": 1} for i in range(10)]
    configs = [
        ("default", {"test": "qrels/test.jsonl"}),
        ("corpus", {"corpus": "corpus.jsonl"}),
        ("queries", {"queries": "queries.jsonl"}),
    ]
    files = {"qrels/test.jsonl": qrels, "corpus.jsonl": documents, "queries.jsonl": queries}
    if ranked:
        files["top_ranked/test.jsonl"] = [
            {"query-id": f"q{i}", "corpus-ids": [f"d{j}" for j in range(i + 25, i + 40)]} for i in range(10)
        ]
        configs.append(("top_ranked", {"test": "top_ranked/test.jsonl"}))
    return Repository(
        "datasets", *named, {"README.md": card(configs), **{name: json_lines(rows) for name, rows in files.items()}}
    )


def numbered(sentences):
    return enumerate(sentences)


def card(configs: list[tuple[str, dict[str, str]]]) -> bytes:
    """README.md whose head names the files of every configuration."""
    lines = ["---", "configs:"]
    for name, paths in configs:
        lines += [f"- config_name: {name}", "  data_files:"]
        for split, path in paths.items():
            lines += [f"  - split: {split}", f"    path: {path}"]
    return "\n".join([*lines, "---", ""]).encode()


def json_lines(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
