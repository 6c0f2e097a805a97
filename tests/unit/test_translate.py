"""A model of random weights translates back, and its files serve as positives. tests/hub tries
MarianMT."""

import json
import shutil

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration

from csebench.base.errors import BadInput
from csebench.base.files import sha256
from csebench.data import corpus as corpora
from csebench.data import translate
from csebench.data.corpus import read_lines, read_positives
from csebench.data.translate import back_translate
from csebench.plan import recipe, targets
from csebench.plan.catalog.registry import declaration
from methods.msse import Method


@pytest.fixture
def translator(tiny_roberta, tmp_path):
    """Folder of a BART of one layer with a byte-level BPE."""
    folder = shutil.copytree(tiny_roberta, tmp_path / "translator")
    vocab_size = json.loads((folder / "config.json").read_text())["vocab_size"]
    config = BartConfig(
        vocab_size=vocab_size,
        init_std=0.5,
        d_model=16,
        encoder_layers=1,
        encoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_layers=1,
        decoder_attention_heads=2,
        decoder_ffn_dim=32,
        max_position_embeddings=256,
    )
    torch.manual_seed(0)
    BartForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.fixture
def small(tmp_path, sentences, monkeypatch):
    """A corpus of 20 lines, a blank one among them, translated in chunks of 8 with short
    translations."""
    facts = translate.back_translation_facts

    def short_translations(*arguments):
        return facts(*arguments) | {"longest": 12, "beams": 2}

    monkeypatch.setattr(translate, "CHUNK", 8)
    monkeypatch.setattr(translate, "back_translation_facts", short_translations)
    monkeypatch.setattr(corpora, "back_translation_facts", short_translations)
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join([*sentences[:5], "", *sentences[5:19]]) + "\n", encoding="utf-8")
    return path


def test_a_line_for_every_line(translator, small, tmp_path, monkeypatch):
    """A translation stands in the place of its sentence. If nothing is translated, the sentence
    stays."""
    out = tmp_path / "out.txt"
    both_ways = f"{translator} {translator}"

    back_translate(small, out, both_ways, batch_size=4)

    given = read_lines(small)
    translations = read_lines(out)
    assert read_positives(out, sha256(small), both_ways, 20) == translations
    changed = [new != old for new, old in zip(translations, given, strict=True)]
    assert sum(changed) > 10
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out.txt", "out.txt.json"]

    alone = translate.Translator(str(translator), 1, 2, 12)
    for index in (0, 7, 19):
        (there_and_back,) = alone(alone([given[index]]))
        assert translations[index] == there_and_back

    monkeypatch.setattr(alone.tokenizer, "batch_decode", lambda *_, **__: [" "])
    assert alone(["a sentence"]) == ["a sentence"]


def test_killed_and_resumed(small, tmp_path, monkeypatch):
    """It is killed in the middle of a chunk, and of a line. Whole chunks are not translated
    again."""
    out = tmp_path / "out.txt"
    calls = []

    def make_translator(name, *_):
        def turn(sentences):
            calls.append(name)
            if len(calls) == 3:  # two translators a chunk: the second chunk's first
                raise KeyboardInterrupt
            if name == "there":
                return [sentence[::-1] for sentence in sentences]
            return [sentence.upper() for sentence in sentences]

        return turn

    monkeypatch.setattr(translate, "Translator", make_translator)
    with pytest.raises(KeyboardInterrupt):
        back_translate(small, out, "there back")
    assert not out.exists()

    (part,) = tmp_path.glob("out.txt.*.part")
    with open(part, "a") as file:
        file.write("a line and\nhalf of anoth")
    back_translate(small, out, "there back")

    assert read_lines(out) == [line[::-1].upper() for line in read_lines(small)]
    before_the_kill = ["there", "back", "there"]
    assert calls == [*before_the_kill, "there", "back", "there", "back"]


@pytest.mark.parametrize(
    ("translators", "message"), [("one", "give two names"), ("/no/a /no/b", "translator /no/a")]
)
def test_what_cannot_be_translated_leaves_nothing(translators, message, small, tmp_path):
    with pytest.raises(BadInput, match=message):
        back_translate(small, tmp_path / "out.txt", translators)
    assert not [*tmp_path.glob("out*")]


@pytest.fixture
def translated(make_spec, sentences, tmp_path):
    """A spec of MSSE with positives from a file, and that file: the corpus turned around, word
    by word."""
    spec = make_spec("msse", params={"steps": 2})
    spec = spec.model_copy(update={"params": {**spec.params, "augmentation": "back_translation"}})
    path = tmp_path / "positives.txt"
    path.write_text(
        "".join(" ".join(reversed(s.split())) + "\n" for s in sentences), encoding="utf-8"
    )
    facts = recipe.back_translation_facts(spec.corpus.sha256, spec.params["translators"])
    path.with_name("positives.txt.json").write_text(json.dumps(facts))
    return spec, path


def test_positives_are_those_of_the_sentences(translated, train, tmp_path, monkeypatch):
    spec, path = translated
    seen, views = [], Method.views
    monkeypatch.setattr(
        Method, "views", lambda self, batch: (seen.extend(batch), views(self, batch))[1]
    )
    train(spec, tmp_path / "run", positives=path)
    assert len(seen) == 16
    assert all(b.split() == a.split()[::-1] for a, b in seen)


def test_positives_that_are_missing_cut_short_or_of_another_corpus(translated, train, tmp_path):
    spec, path = translated
    facts = path.with_name("positives.txt.json")
    with pytest.raises(BadInput, match="--positives FILE"):
        train(spec, tmp_path / "run")
    path.write_text("".join(f"{line}\n" for line in read_lines(path)[:399]), encoding="utf-8")
    with pytest.raises(BadInput, match="399 lines for a corpus of 400"):
        train(spec, tmp_path / "run", positives=path)
    facts.write_text(facts.read_text().replace(spec.corpus.sha256[:12], "0" * 12))
    with pytest.raises(BadInput, match=r"positives.txt.json: is .* this run wants"):
        train(spec, tmp_path / "run", positives=path)
    assert not (tmp_path / "run").exists()


def test_the_workflow_translates_a_corpus_once():
    """At paper scale, every run on back-translated positives needs one file. Planning knows its
    corpus and translators."""
    (path,) = {
        recipe.positives_path(s) for s in targets.runs("paper").values() if s.back_translated
    }
    corpus, translators = targets.back_translation(path.stem, "smoke")
    assert (corpus.name, translators) == (
        "wiki1m_for_simcse.txt",
        declaration("msse").params["translators"][0],
    )
    with pytest.raises(BadInput, match="no table of any scale"):
        targets.back_translation("0000000000", "smoke")
