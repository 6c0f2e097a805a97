"""What evaluators see of a model: sentences in, vectors out, every distinct sentence embedded
once. No torch."""

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from csebench.base.errors import RunFailed, Untrainable, shortened
from csebench.base.files import replacing
from csebench.model.metrics import unit
from csebench.plan.schema.declarations import Evaluation, Precision

SHARD = 8192  # texts of a corpus that are embedded, and kept on disk, at a time
COMPARED = 512  # sentences of a call by which a collapsed model is known
FEW = 10  # sentences, of which any two may be alike to a tokenizer
# Cosines nearer to 1 are rounding: of a float32 number, or of layers in bf16.
EQUAL: dict[Precision, float] = {"fp32": 2.0**-23, "bf16": 2.0**-16}
PROBE = "a sentence longer than any model reads, whose vector tells models and settings apart " * 50


def shards(texts: Iterable) -> Iterator[list]:
    texts = iter(texts)
    while shard := list(islice(texts, SHARD)):
        yield shard


def check_finite(vectors: np.ndarray) -> None:
    if not np.isfinite(vectors).all():
        raise Untrainable("the model gives vectors that are not finite.")


def check_distinct(
    sentences: Sequence[str], vectors: np.ndarray, precision: Precision = "fp32"
) -> None:
    """Refuse a model that has collapsed, whichever the evaluator: to it, different sentences are
    the same.

    A score of it says nothing, and some would be high: where all tie, the answer ties with the
    best. Sentences that differ in case or blanks only may have one vector. A few equal vectors are
    no collapse.

    Args:
        vectors: (sentences, D).
        precision: in which they were computed.

    Raises:
        RunFailed: half of the sentences, or all of fewer than FEW, have the direction of another
            one, up to rounding. Vectors of zeros count as equal.
    """
    row_of: dict[str, int] = {}  # by sentence, without case and further blanks
    compared = np.linspace(0, len(sentences) - 1, min(len(sentences), COMPARED))
    for row in map(int, compared):
        row_of.setdefault(" ".join(sentences[row].casefold().split()), row)
    rows = [*row_of.values()]
    directions = unit(np.asarray(vectors)[rows])
    is_zero = np.square(directions).sum(axis=1) < 0.5  # too short to have a direction
    alike = directions @ directions.T >= 1 - EQUAL[precision]
    alike |= is_zero[:, None] & is_zero
    np.fill_diagonal(alike, False)
    count = int(alike.any(axis=1).sum())
    limit = len(rows) / 2
    if len(rows) < FEW:
        # two sentences may be one to a tokenizer, as with and without an accent
        limit = max(3, len(rows))
    if count < limit or count == 0:
        return
    first, second = (shortened(repr(sentences[rows[place]]), 60) for place in np.argwhere(alike)[0])
    raise RunFailed(
        "the model gives different sentences the same vector, up to rounding, and so has no score:"
        f" {count} of the {len(rows)} that were compared share theirs, such as {first} and"
        f" {second}. Either it has collapsed, or it reads only the beginning that they have in"
        " common."
    )


class Embedder:
    """A model behind one method, `vectors`.

    A model that treats queries and documents of a search in another way than other sentences also
    overrides `query_vectors` and `document_vectors`, and says so by `has_roles`.

    Evaluators also pass the truth about a sentence, which only the control `oracle` reads: the
    class or the item that it stands for, by name, or several of them with weights.

    Attributes:
        evaluation: the settings with which it embeds.
        has_roles: whether queries and documents have other vectors than the same texts elsewhere.
        prompts: texts that are put before sentences, by role; stated in the identity of scores.
        seconds: spent in embedding so far.
        embedded: sentences embedded so far.
        cache_dir: where `stream` keeps its shards; None: nowhere.
        artifacts_dir: where an evaluator may leave files that go with its scores.
    """

    seconds, embedded, evaluation = 0.0, 0, Evaluation()
    has_roles = False
    prompts: dict[str, str] = {}
    cache_dir: Path | None = None
    artifacts_dir: Path | None = None

    @cached_property
    def known(self) -> dict[Any, np.ndarray]:
        """Vectors of the sentences embedded so far, and of queries and documents by (role,
        text)."""
        return {}

    def vectors(self, sentences: list[str]) -> np.ndarray:
        """(sentences, D) float32."""
        raise NotImplementedError

    def query_vectors(self, queries: list[str]) -> np.ndarray:
        """(queries, D) float32 of what a search looks for."""
        return self.vectors(queries)

    def document_vectors(self, documents: list[str]) -> np.ndarray:
        """(documents, D) float32 of what a search looks in."""
        return self.vectors(documents)

    def embed(self, sentences: list[str], truth: list | None = None) -> np.ndarray:
        """(sentences, D) float32; what has been embedded before is remembered."""
        new = list(dict.fromkeys(s for s in sentences if s not in self.known))
        if new:
            self.known.update(zip(new, self._timed(partial(self.vectors, new)), strict=True))
        vectors = np.stack([self.known[s] for s in sentences])
        check_distinct(sentences, vectors, self.evaluation.precision)
        return vectors

    def embed_queries(self, queries: list[str], truth: list | None = None) -> np.ndarray:
        """The same of what a search looks for."""
        if not self.has_roles:
            return self.embed(queries, truth)
        return self._embed_as("query", queries, self.query_vectors)

    def embed_documents(self, documents: list[str], truth: list | None = None) -> np.ndarray:
        """The same of what a search looks in, if it fits in memory; else see `stream`."""
        if not self.has_roles:
            return self.embed(documents, truth)
        return self._embed_as("document", documents, self.document_vectors)

    def _embed_as(
        self, role: str, texts: list[str], vectors: Callable[[list[str]], np.ndarray]
    ) -> np.ndarray:
        new = list(dict.fromkeys(text for text in texts if (role, text) not in self.known))
        if new:
            made = self._timed(partial(vectors, new))
            self.known.update(
                ((role, text), vector) for text, vector in zip(new, made, strict=True)
            )
        stacked = np.stack([self.known[role, text] for text in texts])
        check_distinct(texts, stacked, self.evaluation.precision)
        return stacked

    def fingerprint(self) -> str | None:
        """A hash by which models and settings are told apart: that of the vector of PROBE.

        None for a model that cannot embed a text which is not in the data. That is no reason to
        fail.
        """
        try:
            return hashlib.sha256(self.document_vectors([PROBE]).tobytes()).hexdigest()
        except Exception:  # of any library that embeds
            return None

    def pairs(self, pairs) -> tuple[np.ndarray, np.ndarray]:
        """Vectors of the left and right sentences of graded pairs (csebench.data.sts.Pairs)."""
        return self.embed(pairs.left), self.embed(pairs.right)

    def prepare(self, sentences: list[str]) -> Callable[[], np.ndarray]:
        """Return a function that computes the vectors of documents; what needs no device is done
        at once."""
        return partial(self.document_vectors, sentences)

    def _timed(self, embed: Callable[[], np.ndarray]) -> np.ndarray:
        started = time.perf_counter()
        vectors = embed()
        self.seconds += time.perf_counter() - started
        self.embedded += len(vectors)
        check_finite(vectors)
        return vectors

    def stream(
        self, texts: Iterable[str], name: str, truth: Iterable | None = None
    ) -> Iterator[np.ndarray]:
        """Vectors of the documents of a corpus of any size, in shards of SHARD rows, one in memory
        at a time.

        Every shard is kept below `cache_dir` under a hash of its texts, of the model and of its
        settings, so that a killed evaluation goes on behind the last one, and a second search of
        the corpus embeds nothing. Nothing is kept of a model without a fingerprint. While one shard
        is embedded, a thread prepares the next.
        """
        fingerprint = self.fingerprint()
        model = f"{self.evaluation} {fingerprint}"

        def prepare(number: int, shard: list[str]) -> Callable[[], np.ndarray]:
            if self.cache_dir is None or fingerprint is None:
                return partial(self._checked, shard, partial(self._timed, self.prepare(shard)))
            made_of = hashlib.sha256(
                "\0".join([model, *shard]).encode("utf-8", "surrogatepass")
            ).hexdigest()
            file = self.cache_dir / name / f"{number:05}-{made_of[:16]}.npy"
            if file.exists():
                return partial(self._checked, shard, partial(np.load, file))
            return partial(self._checked, shard, partial(self._kept, file, self.prepare(shard)))

        waiting = deque()
        with ThreadPoolExecutor(1) as thread:
            for numbered in enumerate(shards(texts)):
                waiting.append(thread.submit(prepare, *numbered))
                if len(waiting) == 2:
                    yield waiting.popleft().result()()
            for last in waiting:
                yield last.result()()

    def _checked(self, texts: list[str], embed: Callable[[], np.ndarray]) -> np.ndarray:
        vectors = embed()
        check_distinct(texts, vectors, self.evaluation.precision)
        return vectors

    def _kept(self, file: Path, embed: Callable[[], np.ndarray]) -> np.ndarray:
        vectors = self._timed(embed)
        with replacing(file) as temporary, open(temporary, "wb") as opened:
            np.save(opened, vectors)
        return vectors
