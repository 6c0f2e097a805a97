"""Back-translation: a file with a rewritten sentence for every line of a corpus.

The method MSSE takes these sentences as positives. data/corpus.py reads the file.
"""

import os
from pathlib import Path

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from csebench.base.errors import BadInput
from csebench.base.files import digest, write_json
from csebench.base.gpus import device_type
from csebench.base.hub import fetch_model
from csebench.base.models import check_foreign, check_vocabulary, unreadable_model
from csebench.base.terminal import bar
from csebench.data.corpus import read_corpus
from csebench.plan.recipe import back_translation_facts
from csebench.plan.schema.declarations import EncoderRef

CHUNK = 1024  # sentences that are written together; a killed run resumes after the last whole chunk


class Translator:
    """A MarianMT model with beam search."""

    def __init__(self, name: str, batch_size: int, beams: int, max_length: int):
        """Load the model.

        Args:
            name: a folder, or a model of the hub (`ID@COMMIT`).
            beams: number of beams of the search.
            max_length: number of tokens at which a sentence or its translation is cut.
        """
        what = f"translation model {name}"
        source = fetch_model(EncoderRef.parse(name), "translator")
        check_foreign(source)
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
            model = AutoModelForSeq2SeqLM.from_pretrained(source, trust_remote_code=False)
        except Exception as e:  # which one depends on the library that finds the damage
            raise unreadable_model(what, e) from None
        check_vocabulary(self.tokenizer, model.config, what)
        self.model = model.to(device_type()).eval()
        self.batch_size = batch_size
        self.beams = beams
        self.max_length = max_length

    @torch.inference_mode()
    def __call__(self, sentences: list[str]) -> list[str]:
        """Translate sentences. A sentence whose translation is empty stays as it is."""
        translations = list(sentences)
        # batches of similar length need little padding
        by_length = sorted(range(len(sentences)), key=lambda position: len(sentences[position]))
        for start in range(0, len(by_length), self.batch_size):
            positions = by_length[start : start + self.batch_size]
            texts = self._translate_batch([sentences[position] for position in positions])
            for position, text in zip(positions, texts, strict=True):
                one_line = " ".join(text.split())
                if one_line:
                    translations[position] = one_line
        return translations

    def _translate_batch(self, sentences: list[str]) -> list[str]:
        """Translate sentences that fit into one batch."""
        batch = self.tokenizer(
            sentences,
            padding=True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        )
        output = self.model.generate(
            **batch.to(self.model.device),
            num_beams=self.beams,
            max_new_tokens=self.max_length,
            do_sample=False,
        )
        return self.tokenizer.batch_decode(output, skip_special_tokens=True)


def back_translate(corpus: Path, out: Path, translators: str, batch_size: int = 64) -> None:
    """Translate a corpus into another language and back.

    Writes `out`, with one line for each line of the corpus, and `out.json`, which says how it was
    made. A run that was stopped resumes.

    Args:
        translators: two names, there and back, with a blank between.
    """
    original = read_corpus(corpus, least=1)
    sentences = list(original.sentences)
    facts = back_translation_facts(original.sha256, translators)
    names = translators.split()
    if len(names) != 2:
        raise BadInput(
            f"translators {translators!r}: give two names, there and back, with a blank between."
        )
    forth, back = (Translator(name, batch_size, facts["beams"], facts["longest"]) for name in names)

    # with a digest in its name, because other translators may have begun a file of their own
    part = out.with_name(f"{out.name}.{digest(facts)}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    finished = _keep_whole_chunks(part)
    progress = bar(None, "back-translation", "sentence", total=len(sentences), initial=finished)
    with open(part, "a", encoding="utf-8") as file:
        for start in range(finished, len(sentences), CHUNK):
            chunk = sentences[start : start + CHUNK]
            for text in back(forth(chunk)):
                file.write(f"{text}\n")
            file.flush()
            progress.update(len(chunk))
    progress.close()

    write_json(out.with_name(f"{out.name}.json"), facts)
    os.replace(part, out)


def _keep_whole_chunks(part: Path) -> int:
    """Cut an unfinished file after its last whole chunk, and return how many lines remain.

    The text of a sentence can depend on the others of its chunk. So a run that resumes translates
    whole chunks, and gives the same text as a run that was not stopped.
    """
    lines = []
    if part.exists():
        lines = part.read_bytes().split(b"\n")[:-1]  # the last line may be cut
    finished = len(lines) // CHUNK * CHUNK
    part.write_bytes(b"".join(line + b"\n" for line in lines[:finished]))
    return finished
