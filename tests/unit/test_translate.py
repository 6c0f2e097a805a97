"""Back-translation with a MarianMT model that the test makes: real code, random weights; its files as positives."""

import json

import pytest
import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from csebench.base.errors import BadInput
from csebench.base.files import sha256
from csebench.data import corpus as corpora
from csebench.data import translate
from csebench.data.corpus import lines, read_positives
from csebench.data.translate import back_translate
from csebench.plan import recipe, targets
from methods.msse import Method


@pytest.fixture(scope="module")
def marian(tmp_path_factory, sentences):
    """Folder of a MarianMT of one layer with its two SentencePiece models."""
    folder = tmp_path_factory.mktemp("translators") / "marian"
    folder.mkdir()
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences), model_prefix=str(folder / side), vocab_size=300, minloglevel=2
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    vocab = ["</s>", "<unk>", *(p for p in map(pieces.id_to_piece, range(300)) if p not in ("<s>", "</s>", "<unk>"))]
    (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate([*vocab, "<pad>"])}))
    files = {"source_spm": "source.spm", "target_spm": "target.spm", "vocab": "vocab.json"}
    tokenizer = MarianTokenizer(**{k: str(folder / v) for k, v in files.items()}, source_lang="en", target_lang="de")
    tokenizer.save_pretrained(folder)
    one = dict.fromkeys(("encoder_layers", "decoder_layers"), 1)
    two = dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2)
    sizes = {"d_model": 16, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 256}
    tokens = dict.fromkeys(("pad_token_id", "decoder_start_token_id"), tokenizer.pad_token_id)
    tokens |= {"eos_token_id": 0, "forced_eos_token_id": 0}
    torch.manual_seed(0)
    config = MarianConfig(vocab_size=len(tokenizer), init_std=0.5, **one, **two, **sizes, **tokens)
    MarianMTModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def small(tmp_path, sentences, monkeypatch):
    """A corpus of 20 lines, a blank one among them, translated in chunks of 8 with short translations."""
    facts = translate.back_translation_facts
    monkeypatch.setattr(translate, "CHUNK", 8)
    for module in (translate, corpora):
        monkeypatch.setattr(module, "back_translation_facts", lambda *of: facts(*of) | {"longest": 12, "beams": 2})
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join([*sentences[:5], "", *sentences[5:19]]) + "\n", encoding="utf-8")
    return path


def test_a_line_for_every_line(marian, small, tmp_path, monkeypatch):
    """There and back, each in the place of its sentence, which stays where nothing is translated."""
    back_translate(small, tmp_path / "out.txt", f"{marian} {marian}", batch_size=4)
    made, given = lines(tmp_path / "out.txt"), lines(small)
    assert read_positives(tmp_path / "out.txt", sha256(small), f"{marian} {marian}", 20) == made
    assert sum(a != b for a, b in zip(made, given, strict=True)) > 10
    alone = translate.Translator(str(marian), 1, 2, 12)
    assert [made[i] for i in (0, 7, 19)] == [alone(alone([given[i]]))[0] for i in (0, 7, 19)]
    assert sorted(p.name for p in tmp_path.glob("out*")) == ["out.txt", "out.txt.json"]
    monkeypatch.setattr(alone.tokenizer, "batch_decode", lambda *_, **__: [" "])
    assert alone(["a sentence"]) == ["a sentence"]


class Turning:
    """A translator that turns words around, there, and capitalises them, back; it is killed in a call."""

    made, calls, last_call = 0, 0, 100

    def __init__(self, *_):
        Turning.made += 1
        self.there = Turning.made % 2 == 1

    def __call__(self, sentences):
        Turning.calls += 1
        if Turning.calls == Turning.last_call:
            raise KeyboardInterrupt
        return [s[::-1] if self.there else s.upper() for s in sentences]


def test_killed_and_resumed(small, tmp_path, monkeypatch):
    """In the middle of a chunk, of which a part of a line was written; what is whole is not translated again."""
    monkeypatch.setattr(translate, "Translator", Turning)
    monkeypatch.setattr(Turning, "last_call", 3)  # two translators a chunk: the second chunk's first
    with pytest.raises(KeyboardInterrupt):
        back_translate(small, tmp_path / "out.txt", "there back")
    assert not (tmp_path / "out.txt").exists()
    with open(tmp_path / "out.txt.part", "a") as file:
        file.write("a line and\nhalf of anoth")
    back_translate(small, tmp_path / "out.txt", "there back")
    assert lines(tmp_path / "out.txt") == [line[::-1].upper() for line in lines(small)]
    assert Turning.calls == 3 + 4


REFUSED = {"one": "give two names", "/no/a /no/b": "translator /no/a", "another begun": "another translation"}


@pytest.mark.parametrize(("translators", "message"), REFUSED.items())
def test_what_cannot_be_translated_leaves_nothing(translators, message, small, tmp_path):
    begun = tmp_path / "out.txt.part.json"
    if "begun" in translators:
        begun.write_text("{}")
    with pytest.raises(BadInput, match=message):
        back_translate(small, tmp_path / "out.txt", translators)
    assert [*tmp_path.glob("out*")] == [begun] * begun.exists()


@pytest.fixture
def translated(make_spec, sentences, tmp_path):
    """A spec of MSSE with positives from a file, and that file: the corpus turned around, word by word."""
    spec = make_spec("msse", params={"steps": 2})
    spec = spec.model_copy(update={"params": {**spec.params, "augmentation": "back_translation"}})
    path = tmp_path / "positives.txt"
    path.write_text("".join(" ".join(reversed(s.split())) + "\n" for s in sentences), encoding="utf-8")
    facts = recipe.back_translation_facts(spec.corpus.sha256, spec.params["translators"])
    path.with_name("positives.txt.json").write_text(json.dumps(facts))
    return spec, path


def test_positives_are_those_of_the_sentences(translated, train, tmp_path, monkeypatch):
    spec, path = translated
    seen, views = [], Method.views
    monkeypatch.setattr(Method, "views", lambda self, batch: (seen.extend(batch), views(self, batch))[1])
    train(spec, tmp_path / "run", positives=path)
    assert len(seen) == 16
    assert all(b.split() == a.split()[::-1] for a, b in seen)


def test_positives_that_are_missing_or_of_another_corpus(translated, train, tmp_path):
    spec, path = translated
    facts = path.with_name("positives.txt.json")
    with pytest.raises(BadInput, match="--positives FILE"):
        train(spec, tmp_path / "run")
    for count, more in ((399, ""), (401, "one more\n")):
        path.write_text("".join(f"{line}\n" for line in lines(path)[:399]) + 2 * more, encoding="utf-8")
        with pytest.raises(BadInput, match=f"{count} lines for a corpus of 400"):
            train(spec, tmp_path / "run", positives=path)
    facts.write_text(facts.read_text().replace(spec.corpus.sha256[:12], "0" * 12))
    with pytest.raises(BadInput, match=r"positives.txt.json: corpus_sha256"):
        train(spec, tmp_path / "run", positives=path)
    assert not (tmp_path / "run").exists()


def test_the_workflow_translates_a_corpus_once():
    """At paper scale every run on back-translated positives wants one file, and planning knows of what and by whom."""
    (path,) = {recipe.positives_path(s) for s in targets.runs("paper").values() if s.back_translated}
    corpus, translators = targets.back_translation(path.stem, "smoke")
    assert corpus.name == "wiki1m_for_simcse.txt"
    wanted = ["Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"]
    assert [name.partition("@")[0] for name in translators.split()] == wanted
    assert not any(s.back_translated for s in targets.runs("smoke").values())
    with pytest.raises(BadInput, match="no table of any scale"):
        targets.back_translation("0000000000", "smoke")
