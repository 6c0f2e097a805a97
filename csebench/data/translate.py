"""Back-translation: a file with a rewritten sentence for every line of a corpus, which MSSE
takes as positives."""

import os
from pathlib import Path

import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from csebench.base.errors import BadInput
from csebench.base.files import digest, sha256, write_json
from csebench.base.gpus import device_type
from csebench.base.hub import fetch_model
from csebench.base.models import check_foreign, check_vocabulary, unreadable_model
from csebench.base.terminal import bar
from csebench.data.corpus import read_corpus
from csebench.plan.recipe import back_translation_facts
from csebench.plan.schema.declarations import EncoderRef

CHUNK = 1024  # sentences between two writes; a killed run continues behind the last whole chunk


class Translator:
    """A MarianMT model, from a folder or the hub (`ID@COMMIT`); beam search, in batches of like
    length."""

    def __init__(self, name: str, batch_size: int, beams: int, max_length: int):
        ref, what = EncoderRef.parse(name), f"translation model {name}"
        source = fetch_model(ref, "translator")
        check_foreign(source)
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
            model = AutoModelForSeq2SeqLM.from_pretrained(source, trust_remote_code=False)
        except Exception as e:  # of transformers, tokenizers or safetensors, by what is damaged
            raise unreadable_model(what, e) from None
        check_vocabulary(self.tokenizer, model.config, what)
        self.model = model.to(device_type()).eval()
        self.batch_size, self.beams, self.max_length = batch_size, beams, max_length

    @torch.inference_mode()
    def __call__(self, sentences: list[str]) -> list[str]:
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        translations = [""] * len(sentences)
        for start in range(0, len(order), self.batch_size):
            index = order[start : start + self.batch_size]
            given, longest = [sentences[i] for i in index], self.max_length
            batch = self.tokenizer(
                given, padding=True, truncation=True, max_length=longest, return_tensors="pt"
            )
            batch = batch.to(self.model.device)
            output = self.model.generate(
                **batch, num_beams=self.beams, max_new_tokens=longest, do_sample=False
            )
            texts = self.tokenizer.batch_decode(output, skip_special_tokens=True)
            for i, text in zip(index, texts, strict=True):
                translations[i] = " ".join(text.split()) or sentences[i]
        return translations


def back_translate(corpus: Path, out: Path, translators: str, batch_size: int = 64) -> None:
    """Write `out`, line by line the back-translation of `corpus`, and `out.json`, which says of
    what; continues its own beginning. `translators` are two names, there and back, with a blank
    between."""
    sentences = list(read_corpus(corpus, least=1))
    facts = back_translation_facts(sha256(corpus), translators)
    part = out.with_name(f"{out.name}.{digest(facts)}.part")
    if len(translators.split()) != 2:
        raise BadInput(
            f"translators {translators!r}: give two names, there and back, with a blank between."
        )
    forth, back = (
        Translator(name, batch_size, facts["beams"], facts["longest"])
        for name in translators.split()
    )
    part.parent.mkdir(parents=True, exist_ok=True)
    finished = part.read_bytes().split(b"\n")[:-1] if part.exists() else []
    finished = finished[: len(finished) // CHUNK * CHUNK]
    part.write_bytes(b"".join(line + b"\n" for line in finished))
    progress = bar(
        None, "back-translation", "sentence", total=len(sentences), initial=len(finished)
    )
    with open(part, "a", encoding="utf-8") as file:
        for start in range(len(finished), len(sentences), CHUNK):
            chunk = sentences[start : start + CHUNK]
            file.write("".join(f"{text}\n" for text in back(forth(chunk))))
            file.flush()
            progress.update(len(chunk))
    progress.close()
    write_json(out.with_name(f"{out.name}.json"), facts)
    os.replace(part, out)
