"""Models as evaluators see them: sentences in, vectors out.

`Embedder` embeds every distinct sentence once, keeps the vectors of large corpora on disk, and
refuses a model that has collapsed. The models themselves are subclasses, for example in
csebench/model/sentence_encoder.py. This module does not import torch.
"""

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

from csebench.base.errors import Diverged, RunFailed, shortened
from csebench.base.files import replacing
from csebench.model.metrics import unit
from csebench.plan.schema.declarations import Evaluation, Precision

SHARD = 8192  # texts of a corpus that are embedded at a time, and kept in one file
COMPARED = 512  # at most this many sentences of a call are compared, to notice a collapsed model
FEW = 10  # among fewer sentences, half may have equal token ids by chance
# A cosine is 1 up to rounding if it differs from 1 by no more than this. Layers in bf16 round more.
EQUAL: dict[Precision, float] = {"fp32": 2.0**-23, "bf16": 2.0**-16}
PROBE = "a sentence longer than any model reads, whose vector tells models and settings apart " * 50


class Embedder:
    """A model that embeds sentences. A subclass overrides `vectors`.

    Some models treat the queries and documents of a search differently from other sentences. Such a
    subclass also overrides `query_vectors` and `document_vectors`, and sets `has_roles`.

    Evaluators also pass `truth`. It names the class or item that each sentence stands for, or
    several of them with weights. Only the control `oracle` reads it.

    Attributes:
        evaluation: the settings of the evaluation, such as its precision.
        has_roles: whether a text has another vector as a query or document than as a sentence.
        prompts: texts that are put before sentences, by role. They are part of a score's identity.
        seconds: time spent on embedding so far.
        embedded: number of sentences embedded so far.
        cache_dir: folder in which `stream` keeps its shards. None: they are not kept.
        artifacts_dir: folder in which an evaluator may leave files that go with its scores.
    """

    seconds = 0.0
    embedded = 0
    evaluation = Evaluation()
    has_roles = False
    prompts: dict[str, str] = {}
    cache_dir: Path | None = None
    artifacts_dir: Path | None = None

    @cached_property
    def known(self) -> dict[Any, np.ndarray]:
        """Vectors computed so far, by sentence, or by (role, text) of queries and documents."""
        return {}

    def vectors(self, sentences: list[str]) -> np.ndarray:
        """Compute the vectors of sentences, (sentences, D) float32."""
        raise NotImplementedError

    def query_vectors(self, queries: list[str]) -> np.ndarray:
        """Compute the vectors of the queries of a search, (queries, D) float32."""
        return self.vectors(queries)

    def document_vectors(self, documents: list[str]) -> np.ndarray:
        """Compute the vectors of the documents of a search, (documents, D) float32."""
        return self.vectors(documents)

    def embed(self, sentences: list[str], truth: list | None = None) -> np.ndarray:
        """Return the vectors of sentences, (sentences, D) float32.

        Only sentences that are new to this model are embedded. The others are looked up.

        Raises:
            RunFailed: the model has collapsed (see `check_distinct`).
            Diverged: a vector is not finite.
        """
        new = list(dict.fromkeys(text for text in sentences if text not in self.known))
        if new:
            computed = self._timed(partial(self.vectors, new))
            self.known.update(zip(new, computed, strict=True))
        vectors = np.stack([self.known[text] for text in sentences])
        check_distinct(sentences, vectors, self.evaluation.precision)
        return vectors

    def embed_queries(self, queries: list[str], truth: list | None = None) -> np.ndarray:
        """Return the vectors of the queries of a search, as `embed` does for sentences."""
        if not self.has_roles:
            return self.embed(queries, truth)
        return self._embed_as("query", queries, self.query_vectors)

    def embed_documents(self, documents: list[str], truth: list | None = None) -> np.ndarray:
        """Return the vectors of the documents of a search, as `embed` does for sentences.

        For documents that do not fit in memory, see `stream`.
        """
        if not self.has_roles:
            return self.embed(documents, truth)
        return self._embed_as("document", documents, self.document_vectors)

    def _embed_as(
        self, role: str, texts: list[str], compute: Callable[[list[str]], np.ndarray]
    ) -> np.ndarray:
        new = list(dict.fromkeys(text for text in texts if (role, text) not in self.known))
        if new:
            computed = self._timed(partial(compute, new))
            for text, vector in zip(new, computed, strict=True):
                self.known[role, text] = vector
        vectors = np.stack([self.known[role, text] for text in texts])
        check_distinct(texts, vectors, self.evaluation.precision)
        return vectors

    def fingerprint(self) -> str | None:
        """Hash the vector of PROBE, to tell models and settings apart.

        Returns:
            The hash, or None if the model can only embed texts of the data. It may still be scored.
        """
        try:
            return hashlib.sha256(self.document_vectors([PROBE]).tobytes()).hexdigest()
        except Exception:  # any library may embed, and each raises its own errors
            return None

    def pairs(self, pairs) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors of the left and of the right sentences of graded pairs.

        Args:
            pairs: csebench.data.sts.Pairs.
        """
        return self.embed(pairs.left), self.embed(pairs.right)

    def prepare(self, sentences: list[str]) -> Callable[[], np.ndarray]:
        """Return a function that computes the vectors of documents.

        A subclass may already do here what needs no GPU, such as tokenising.
        """
        return partial(self.document_vectors, sentences)

    def stream(
        self, texts: Iterable[str], name: str, truth: Iterable | None = None
    ) -> Iterator[np.ndarray]:
        """Yield the vectors of the documents of a corpus of any size, in shards of SHARD rows.

        The vectors of one shard are in memory at a time. While a shard is embedded, a thread
        prepares the next one.

        Each shard is kept below `cache_dir`, under a hash of its texts, the model and its settings.
        So a killed evaluation resumes after the last shard, and a second search of the corpus
        embeds nothing. If the model has no fingerprint, no shard is kept.

        Args:
            name: name of the folder below `cache_dir`.
        """
        fingerprint = self.fingerprint()
        model = f"{self.evaluation} {fingerprint}"
        folder = None
        if self.cache_dir is not None and fingerprint is not None:
            folder = self.cache_dir / name

        def prepare(number: int, shard: list[str]) -> Callable[[], np.ndarray]:
            """Return a function that computes or reads the vectors of a shard."""
            if folder is None:
                compute = partial(self._timed, self.prepare(shard))
                return partial(self._checked, shard, compute)
            content = "\0".join([model, *shard]).encode("utf-8", "surrogatepass")
            digest = hashlib.sha256(content).hexdigest()
            file = folder / f"{number:05}-{digest[:16]}.npy"
            if file.exists():
                return partial(self._checked, shard, partial(np.load, file))
            compute = partial(self._kept, file, self.prepare(shard))
            return partial(self._checked, shard, compute)

        waiting = deque()
        with ThreadPoolExecutor(1) as thread:
            for number, shard in enumerate(shards(texts)):
                waiting.append(thread.submit(prepare, number, shard))
                if len(waiting) == 2:
                    compute = waiting.popleft().result()
                    yield compute()
            for last in waiting:
                compute = last.result()
                yield compute()

    def _timed(self, embed: Callable[[], np.ndarray]) -> np.ndarray:
        """Compute vectors, count their time, and check that they are finite."""
        started = time.perf_counter()
        vectors = embed()
        self.seconds += time.perf_counter() - started
        self.embedded += len(vectors)
        check_finite(vectors)
        return vectors

    def _checked(self, texts: list[str], embed: Callable[[], np.ndarray]) -> np.ndarray:
        """Compute or read vectors, and check that the model has not collapsed."""
        vectors = embed()
        check_distinct(texts, vectors, self.evaluation.precision)
        return vectors

    def _kept(self, file: Path, embed: Callable[[], np.ndarray]) -> np.ndarray:
        """Compute vectors and write them to a file."""
        vectors = self._timed(embed)
        with replacing(file) as temporary, open(temporary, "wb") as opened:
            np.save(opened, vectors)
        return vectors


def shards(texts: Iterable) -> Iterator[list]:
    """Split texts into lists of SHARD texts. The last one may be shorter."""
    texts = iter(texts)
    while shard := list(islice(texts, SHARD)):
        yield shard


def check_finite(vectors: np.ndarray) -> None:
    """Refuse vectors that are not finite."""
    if not np.isfinite(vectors).all():
        raise Diverged("the model gives vectors that are not finite.")


def check_distinct(
    sentences: Sequence[str], vectors: np.ndarray, precision: Precision = "fp32"
) -> None:
    """Refuse a model that has collapsed: it gives different sentences the same vector.

    The scores of such a model mean nothing, but some would be high: if all answers tie, the right
    answer ties with the best. A few equal vectors are no collapse.

    At most COMPARED sentences are compared. Sentences that differ only in case or blanks count as
    one, because they may have the same vector. Vectors are equal if they have the same direction up
    to rounding, or if both are 0.

    Args:
        vectors: (sentences, D).
        precision: the precision in which the model computed `vectors`.

    Raises:
        RunFailed: at least half of the compared sentences share their vector with another one. If
            fewer than FEW are compared, all must share theirs, and there must be three or more.
    """
    # rows to compare: sentences that differ in more than case and blanks
    sample = np.linspace(0, len(sentences) - 1, min(len(sentences), COMPARED))
    row_of: dict[str, int] = {}
    for row in map(int, sample):
        normalised = " ".join(sentences[row].casefold().split())
        row_of.setdefault(normalised, row)
    rows = list(row_of.values())

    # pairs of equal vectors
    directions = unit(np.asarray(vectors)[rows])
    is_zero = np.square(directions).sum(axis=1) < 0.5  # too short to have a direction
    is_equal = directions @ directions.T >= 1 - EQUAL[precision]  # (rows, rows)
    is_equal |= is_zero[:, None] & is_zero
    np.fill_diagonal(is_equal, False)

    # how many are too many
    count = int(is_equal.any(axis=1).sum())
    limit = len(rows) / 2
    if len(rows) < FEW:
        # Two sentences may have equal token ids, for example with and without an accent.
        limit = max(3, len(rows))
    if count < limit or count == 0:
        return
    index_of_first, index_of_second = np.argwhere(is_equal)[0]
    first = shortened(repr(sentences[rows[index_of_first]]), 60)
    second = shortened(repr(sentences[rows[index_of_second]]), 60)
    raise RunFailed(
        "the model gives different sentences the same vector, up to rounding, and so has no score:"
        f" {count} of the {len(rows)} that were compared share theirs, such as {first} and"
        f" {second}. Either it has collapsed, or it reads only the beginning that they have in"
        " common."
    )
