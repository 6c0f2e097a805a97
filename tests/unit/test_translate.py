"""Back-translation with a MarianMT model that the test makes: real code, random weights."""

import json

import pytest

from csebench.base.errors import BadInput


@pytest.fixture(scope="module")
def marian(tmp_path_factory, sentences):
    """Folder of a MarianMT of one layer with its two SentencePiece models."""
    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

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
    files = {"source_spm": folder / "source.spm", "target_spm": folder / "target.spm", "vocab": folder / "vocab.json"}
    tokenizer = MarianTokenizer(**{k: str(v) for k, v in files.items()}, source_lang="en", target_lang="de")
    tokenizer.save_pretrained(folder)
    pad = tokenizer.pad_token_id
    sizes = dict(encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, d_model=16)
    sizes |= dict(encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=256, init_std=0.5)
    config = MarianConfig(
        vocab_size=len(tokenizer),
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=0,
        forced_eos_token_id=0,
        **sizes,
    )
    torch.manual_seed(0)
    MarianMTModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def small(tmp_path, corpus, monkeypatch):
    """A corpus of 20 lines, a blank one among them, translated in chunks of 8 with short translations."""
    from csebench.data import translate

    monkeypatch.setattr(translate, "CHUNK", 8)
    facts = translate.back_translation_facts
    monkeypatch.setattr(translate, "back_translation_facts", lambda *of: facts(*of) | {"longest": 12})
    path = tmp_path / "corpus.txt"
    some = corpus.read_text(encoding="utf-8").splitlines()[:19]
    path.write_text("\n".join([*some[:5], "", *some[5:]]) + "\n", encoding="utf-8")
    return path


def test_a_line_for_every_line(marian, small, tmp_path, monkeypatch):
    from csebench.base.files import sha256
    from csebench.data import corpus
    from csebench.data.corpus import lines, read_positives
    from csebench.data.translate import back_translate, back_translation_facts

    back_translate(small, tmp_path / "out.txt", f"{marian} {marian}", batch_size=4)
    made = lines(tmp_path / "out.txt")
    assert len(made) == 20
    assert sum(a != b for a, b in zip(made, lines(small), strict=True)) > 10
    monkeypatch.setattr(corpus, "back_translation_facts", back_translation_facts)
    assert read_positives(tmp_path / "out.txt", sha256(small), f"{marian} {marian}", 20) == made
    assert sorted(p.name for p in tmp_path.glob("out*")) == ["out.txt", "out.txt.json"]


def test_killed_and_resumed(marian, small, tmp_path, monkeypatch):
    """In the middle of a chunk, of which a part of a line was written."""
    from csebench.data import translate

    pair = f"{marian} {marian}"
    translate.back_translate(small, tmp_path / "whole.txt", pair, batch_size=4)
    call, calls = translate.Translator.__call__, []

    def killed(self, sentences):
        calls.append(sentences)
        if len(calls) == 3:  # two translators a chunk: the second chunk's first
            raise KeyboardInterrupt
        return call(self, sentences)

    monkeypatch.setattr(translate.Translator, "__call__", killed)
    with pytest.raises(KeyboardInterrupt):
        translate.back_translate(small, tmp_path / "out.txt", pair, batch_size=4)
    assert not (tmp_path / "out.txt").exists()
    with open(tmp_path / "out.txt.part", "a") as file:
        file.write("a line and\nhalf of anoth")
    monkeypatch.setattr(translate.Translator, "__call__", call)
    translate.back_translate(small, tmp_path / "out.txt", pair, batch_size=4)
    assert (tmp_path / "out.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()


def test_the_beginning_of_another_translation(marian, small, tmp_path):
    from csebench.data.translate import back_translate

    (tmp_path / "out.txt.part.json").write_text("{}")
    with pytest.raises(BadInput, match="another translation"):
        back_translate(small, tmp_path / "out.txt", f"{marian} {marian}")


@pytest.mark.parametrize(("translators", "part"), [("one", "give two names"), ("/no/a /no/b", "translator /no/a")])
def test_translators_that_are_not_there(translators, part, small, tmp_path):
    from csebench.data.translate import back_translate

    with pytest.raises(BadInput, match=part):
        back_translate(small, tmp_path / "out.txt", translators)
    assert not list(tmp_path.glob("out*"))


@pytest.fixture
def translated(make_spec, corpus, tmp_path):
    """A spec of MSSE with positives from a file, and that file: the corpus turned around, word by word."""
    from csebench.plan.recipe import back_translation_facts

    spec = make_spec("msse", params={"steps": 2})
    spec = spec.model_copy(update={"params": {**spec.params, "augmentation": "back_translation"}})
    path = tmp_path / "positives.txt"
    sentences = corpus.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(" ".join(reversed(s.split())) + "\n" for s in sentences), encoding="utf-8")
    facts = back_translation_facts(spec.corpus.sha256, spec.params["translators"])
    path.with_name("positives.txt.json").write_text(json.dumps(facts))
    return spec, path


def test_positives_are_those_of_the_sentences(translated, train, tmp_path, monkeypatch):
    from methods.msse import Method

    spec, path = translated
    seen, views = [], Method.views
    monkeypatch.setattr(Method, "views", lambda self, batch: (seen.extend(batch), views(self, batch))[1])
    train(spec, tmp_path / "run", positives=path)
    assert len(seen) == 16
    assert all(b.split() == a.split()[::-1] for a, b in seen)


def test_positives_that_are_missing_or_of_another_corpus(translated, train, tmp_path):
    spec, path = translated
    with pytest.raises(BadInput, match="--positives FILE"):
        train(spec, tmp_path / "run")
    facts = path.with_name("positives.txt.json")
    facts.write_text(facts.read_text().replace(spec.corpus.sha256[:12], "0" * 12))
    with pytest.raises(BadInput, match=r"positives.txt.json: corpus_sha256"):
        train(spec, tmp_path / "run", positives=path)
    facts.write_text(facts.read_text().replace("0" * 12, spec.corpus.sha256[:12]))
    path.write_text(path.read_text(encoding="utf-8") + "one more\n", encoding="utf-8")
    with pytest.raises(BadInput, match="401 lines for a corpus of 400"):
        train(spec, tmp_path / "run", positives=path)
    assert not (tmp_path / "run").exists()


def test_the_workflow_translates_a_corpus_once():
    """At paper scale every run on back-translated positives wants one file, and planning knows of what and by whom."""
    from csebench.plan import recipe, targets

    wanted = {recipe.positives_path(s) for s in targets.runs("paper").values() if s.back_translated}
    (path,) = wanted
    corpus, translators = targets.back_translation(path.stem, "smoke")
    assert corpus.name == "wiki1m_for_simcse.txt"
    assert [t.partition("@")[0] for t in translators.split()] == [
        "Helsinki-NLP/opus-mt-en-de",
        "Helsinki-NLP/opus-mt-de-en",
    ]
    assert not any(s.back_translated for s in targets.runs("smoke").values())
    with pytest.raises(BadInput, match="no table of any scale"):
        targets.back_translation("0000000000", "smoke")
