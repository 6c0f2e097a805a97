"""The content of the hub on this machine, under real names and commits.

Data sets are the project's smoke data. Models are small ones with random weights, in the formats of
the real repositories.
"""

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
from word_vectors import word_vectors

from csebench.base.project import ROOT
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import DataSource, Download, sources
from csebench.plan.catalog.registry import COMPONENTS, declaration
from csebench.plan.schema.declarations import EncoderRef

SMOKE = ROOT / "data" / "smoke"
SENTENCES = (SMOKE / "wiki/smoke.txt").read_text(encoding="utf-8").splitlines()


def fill(hub: Hub, tiny_bert: Path, tiny_roberta: Path) -> None:
    """Give a hub all models and data sets. Those of mteb have the revisions that mteb 2.26 pins."""
    hub.repositories += models(tiny_bert, tiny_roberta)
    hub.repositories += [
        simcse(),
        classification("amazon_massive_intent", "4672e20407010da34463acc759c162ca9734bca6", ["en"]),
        classification("banking77", "0fd18e25b25c072e09e0d92ab615fda904d66300", ["default"]),
        classification(
            "amazon_counterfactual", "1f7e6a9d6fa6e64c53d146e428565640410c0df1", ["en", "en-ext"], 2
        ),
        retrieval("quora", "e4e08e0b7dbe3c8700f0daef558ff32256715259"),
        reranking("AskUbuntuDupQuestions", "c5691e3c48741d5f83b5cc8e630653d7a8cfc048"),
        sts("biosses-sts", "d3fb88f8f02e40887cd149695127462bbcf29b4a", ["default"]),
        sts(
            "sts17-crosslingual-sts",
            "faeb762787bd10488a50c8b5be4a3b82e411949c",
            ["en-en", "en-de", "ko-ko"],
        ),
        sts(
            "sts22-crosslingual-sts",
            "d31f33a128469b20e357535c39b82fb3c3f6f2bd",
            ["en", "de", "de-en"],
        ),
        retrieval(
            "NanoArguAnaRetrieval", "63ac9f026e8f6b85dc0622f3d630ed7a1758e9ec", split="train"
        ),
    ]

    for folder in ("stackoverflow", "evalrank"):
        for path in (SMOKE / "misc" / folder).glob("*.txt"):
            hub.archives[f"files/{path.name}"] = path.read_bytes()
    hub.archives["files/aclImdb_v1.tar.gz"] = imdb()
    for source in sources():
        if source.startswith("beir:"):
            name = source.removeprefix("beir:")
            hub.archives[f"files/{name}.zip"] = beir(name)


def served(hub: Hub) -> dict[str, DataSource]:
    """Return the sources of data/sources.yaml that have servers of their own, moved to this hub."""
    changed = {}
    for name, source in sources().items():
        downloads = []
        for download in source.downloads:
            path = f"files/{Path(download.url).name}"
            sha256 = hashlib.sha256(hub.archives[path]).hexdigest()
            downloads.append(Download(url=f"{hub.endpoint}/{path}", sum=f"sha256:{sha256}"))
        if downloads:
            changed[name] = source.model_copy(update={"downloads": downloads})
    return changed


def small_sums() -> dict[str, str]:
    """Return the sha256 of the smoke data that stand for registered files, by registered name."""
    corpus = SMOKE / "wiki/smoke.txt"
    stsb_dev = SMOKE / "downstream/STS/STSBenchmark/sts-dev.csv"
    return {
        "wiki1m-simcse": hashlib.sha256(corpus.read_bytes()).hexdigest(),
        "stsb-dev": hashlib.sha256(stsb_dev.read_bytes()).hexdigest(),
    }


# ---------------------------------------------------------------- data sets


def simcse() -> Repository:
    """Make SimCSE's data set repository: corpus, triplets and SentEval's archive."""
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
    """Make IMDB's archive, in the layout of its authors: a file per review."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for split in ("train", "test"):
            lines = (SMOKE / f"misc/imdb/{split}.tsv").read_text(encoding="utf-8").splitlines()
            for line in lines[1:]:
                label, number, rating, text = line.split("\t")
                folder = "pos" if label == "1" else "neg"
                member = tarfile.TarInfo(f"aclImdb/{split}/{folder}/{number}_{rating}.txt")
                content = text.encode()
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def beir(name: str) -> bytes:
    """Make the archive of a corpus of BEIR."""
    folder = SMOKE / "beir" / ("cqadupstack" if name == "cqadupstack" else "smoke")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in folder.rglob("*.*"):
            archive.write(path, f"{name}/{path.relative_to(folder)}")
    return content.getvalue()


def classification(name: str, commit: str, languages: list[str], classes: int = 4) -> Repository:
    """Make a classification data set of mteb."""
    rows = []
    for number, text in enumerate(SENTENCES[:80]):
        label = number % classes
        rows.append({"text": text, "label": label, "label_text": str(label), "lang": "en"})
    splits = {"train": rows[:40], "validation": rows[40:], "test": rows[40:]}
    return dataset(name, commit, dict.fromkeys(languages, splits))


def sts(name: str, commit: str, languages: list[str]) -> Repository:
    """Make a data set of graded pairs of mteb: 20 pairs of each language, in one table."""
    rows = []
    for language in languages:
        for number in range(20):
            pair = {"sentence1": SENTENCES[number], "sentence2": SENTENCES[number // 2]}
            rows.append(pair | {"score": number % 5, "lang": language})
    return dataset(name, commit, {"default": {"test": rows}})


def retrieval(name: str, commit: str, split: str = "test") -> Repository:
    """Make a retrieval data set of mteb."""
    return dataset(name, commit, retrieval_tables(split))


def reranking(name: str, commit: str) -> Repository:
    """Make a reranking data set of mteb: a retrieval data set with documents for every query."""
    ranked = []
    for query in range(10):
        documents = [f"d{number}" for number in range(query + 25, query + 40)]
        ranked.append({"query-id": f"q{query}", "corpus-ids": documents})
    return dataset(name, commit, retrieval_tables() | {"top_ranked": {"test": ranked}})


def retrieval_tables(split: str = "test") -> dict[str, dict[str, list[dict]]]:
    """Make 60 documents and 10 queries. The relevant document is the one after the query's own.

    Args:
        split: name of the split of the judgements.
    """
    qrels = [{"query-id": f"q{i}", "corpus-id": f"d{i + 31}", "score": 1} for i in range(10)]
    corpus = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(SENTENCES[:60])]
    queries = [{"_id": f"q{i}", "text": text} for i, text in enumerate(SENTENCES[30:40])]
    return {
        "default": {split: qrels},
        "corpus": {"corpus": corpus},
        "queries": {"queries": queries},
    }


def dataset(name: str, commit: str, tables: dict[str, dict[str, list[dict]]]) -> Repository:
    """Make a data set of mteb from tables of rows, by configuration and split.

    The head of its README.md names their files.
    """
    files = {}
    configs = []
    for config, splits in tables.items():
        data_files = []
        for split, rows in splits.items():
            path = f"{config}/{split}.jsonl"
            data_files.append({"split": split, "path": path})
            files[path] = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        configs.append({"config_name": config, "data_files": data_files})
    files["README.md"] = f"---\n{yaml.safe_dump({'configs': configs})}---\n".encode()
    return Repository("datasets", f"mteb/{name}", commit, files)


# ---------------------------------------------------------------- models

NOT_READ = {  # files of every model that nobody needs here
    "README.md": b"not needed here",
    "tf_model.h5": b"not needed here",
    "rust_model.ot": b"not needed here",
    "flax_model.msgpack": b"not needed here",
}
SMALL_BERTS = "google/bert_uncased_"  # the repositories of small BERTs


def models(tiny_bert: Path, tiny_roberta: Path) -> list[Repository]:
    """Make every model that scale paper and the declarations of methods name.

    Args:
        tiny_bert, tiny_roberta: folders of models, whose tokenizers and sizes the others get.
    """
    torch.manual_seed(0)
    wordpiece = wordpiece_files(tiny_bert)
    bpe = {
        "vocab.json": (tiny_roberta / "vocab.json").read_bytes(),
        "merges.txt": (tiny_roberta / "merges.txt").read_bytes(),
        "tokenizer_config.json": to_json({"model_max_length": 512}),
    }

    files_of: dict[EncoderRef, dict[str, bytes]] = {}
    for ref in catalog.scale("paper").encoders.values():
        if "word_embeddings" in ref.name:
            files_of[ref] = word_vectors(smoke_texts())
        elif "roberta" in ref.name or "declutr" in ref.name:
            files_of[ref] = roberta(ref.name, tiny_roberta, bpe)
        else:
            files_of[ref] = bert(ref.name, tiny_bert, wordpiece)

    generator = EncoderRef.parse(declaration("rtd", COMPONENTS).params["generator"][0])
    files_of[generator] = distilbert(wordpiece)
    for name in declaration("msse").params["translators"][0].split():
        files_of[EncoderRef.parse(name)] = marian()
    for method in ("dclr", "distillcse", "rank_encoder", "rankcse_teachers"):
        declared = declaration(method).params
        names, _ = declared.get("teachers") or declared["teacher"]
        for name in names.split():
            files_of[EncoderRef.parse(name)] = bert(name, tiny_bert, wordpiece)

    repositories = []
    for ref, files in files_of.items():
        repositories.append(Repository("models", ref.name, ref.revision, files | NOT_READ))
    return repositories


def smoke_texts() -> list[str]:
    """Read all files of the smoke data. Texts without a known word would share the vector 0."""
    files = [path for path in SMOKE.rglob("*") if path.is_file()]
    return [path.read_text(encoding="utf-8", errors="replace") for path in files]


def wordpiece_files(tiny_bert: Path) -> dict[str, bytes]:
    """Make the files of BERT's tokenizer."""
    tokenizer = (tiny_bert / "tokenizer.json").read_bytes()
    ids = json.loads(tokenizer)["model"]["vocab"]
    pieces = sorted(ids, key=ids.get)
    return {
        "vocab.txt": "".join(f"{piece}\n" for piece in pieces).encode(),
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": to_json({"do_lower_case": True, "model_max_length": 512}),
    }


def bert(name: str, tiny_bert: Path, tokenizer: dict[str, bytes]) -> dict[str, bytes]:
    """Make a BERT.

    A small BERT has its real depth and a quarter of its width. Its repository has PyTorch's format
    only, and no tokenizer.json.
    """
    shape = {"num_hidden_layers": layers_of(name)}
    if name.startswith(SMALL_BERTS):  # bert_uncased_L-2_H-128_A-2
        layers, hidden, heads = (int(number) for number in re.findall(r"-(\d+)", name))
        shape = {
            "num_hidden_layers": layers,
            "hidden_size": hidden // 4,
            "num_attention_heads": heads,
            "intermediate_size": hidden,
        }
    config = hf.BertConfig.from_pretrained(tiny_bert, max_position_embeddings=512, **shape)
    files = checkpoint(hf.BertForPreTraining(config), tokenizer)
    if name.startswith(SMALL_BERTS):
        published = ("vocab.txt", "config.json", "pytorch_model.bin")
        return {file: files[file] for file in published}
    return files


def roberta(name: str, tiny_roberta: Path, tokenizer: dict[str, bytes]) -> dict[str, bytes]:
    """Make a RoBERTa, which has a byte-level BPE and no pooler."""
    config = hf.RobertaConfig.from_pretrained(
        tiny_roberta,
        num_hidden_layers=layers_of(name),
        max_position_embeddings=514,
        layer_norm_eps=1e-5,
    )
    return checkpoint(hf.RobertaForMaskedLM(config), tokenizer)


def layers_of(name: str) -> int:
    """Choose a depth, so that a large model differs from a base model."""
    return 4 if "large" in name else 3


def distilbert(tokenizer: dict[str, bytes]) -> dict[str, bytes]:
    """Make a DistilBERT with the vocabulary of a tokenizer."""
    vocab_size = len(tokenizer["vocab.txt"].splitlines())
    config = hf.DistilBertConfig(
        vocab_size=vocab_size, dim=32, hidden_dim=64, n_layers=2, n_heads=4
    )
    return checkpoint(hf.DistilBertForMaskedLM(config), tokenizer)


def checkpoint(model, tokenizer: dict[str, bytes]) -> dict[str, bytes]:
    """Save a model with both formats of PyTorch, as the official repositories have them.

    The norms of a BERT have their old names, gamma and beta.
    """
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        configuration = {path.name: path.read_bytes() for path in Path(folder).glob("*.json")}
        weights = load_file(Path(folder) / "model.safetensors")
    if model.config.model_type == "bert":
        weights = {old_name(name): weight for name, weight in weights.items()}
    return {
        **tokenizer,
        **configuration,
        "model.safetensors": save(weights, metadata={"format": "pt"}),
        "pytorch_model.bin": pickled(weights),
    }


def old_name(name: str) -> str:
    """Return the name that a weight of BERT has in old checkpoints."""
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
    return name.replace("LayerNorm.bias", "LayerNorm.beta")


def marian() -> dict[str, bytes]:
    """Make a translator as Helsinki-NLP publishes them, with pytorch_model.bin only."""
    pieces = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=pieces,
        vocab_size=300,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_proto=pieces.getvalue())
    names = [model.id_to_piece(number) for number in range(model.get_piece_size())]
    unique_names = dict.fromkeys(["</s>", "<unk>", *names, "<pad>"])
    vocabulary = {piece: number for number, piece in enumerate(unique_names)}
    tokenizer = {
        "source.spm": pieces.getvalue(),
        "target.spm": pieces.getvalue(),
        "vocab.json": to_json(vocabulary),
        "tokenizer_config.json": to_json(
            {"target_lang": "deu", "source_lang": "eng", "model_max_length": 512}
        ),
    }

    pad = vocabulary["<pad>"]
    special_tokens = {
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
    }
    config = hf.MarianConfig(
        vocab_size=len(vocabulary),
        d_model=32,
        max_position_embeddings=512,
        scale_embedding=True,
        encoder_layers=1,
        encoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_layers=1,
        decoder_attention_heads=4,
        decoder_ffn_dim=64,
        **special_tokens,
    )
    translator = hf.MarianMTModel(config)
    translator.generation_config.update(
        max_length=512, num_beams=6, bad_words_ids=[[pad]], **special_tokens
    )
    translator.final_logits_bias[0, 0] = 4.0  # short translations, so that the test takes less time
    files = checkpoint(translator, tokenizer)
    del files["model.safetensors"]
    return files


def pickled(weights: dict[str, torch.Tensor]) -> bytes:
    """Save weights in the format of PyTorch before 1.6."""
    file = io.BytesIO()
    torch.save(weights, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def to_json(content: dict) -> bytes:
    return json.dumps(content).encode()
