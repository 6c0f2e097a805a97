"""What evaluators see of a model: sentences in, vectors out, every distinct sentence embedded once. No torch."""

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

import numpy as np

from csebench.base.errors import Untrainable
from csebench.base.files import replacing
from csebench.plan.declarations import Evaluation

SHARD = 8192  # texts of a corpus that are embedded, and kept on disk, at a time
PROBE = "a sentence longer than any model reads, whose vector tells models and settings apart " * 50


def shards(texts: Iterable) -> Iterator[list]:
    texts = iter(texts)
    while shard := list(islice(texts, SHARD)):
        yield shard


def check_finite(vectors: np.ndarray) -> None:
    if not np.isfinite(vectors).all():
        raise Untrainable("the model gives vectors that are not finite.")


class Embedder:
    """A model behind one method, `vectors`. Evaluators also pass the truth about a sentence, which only the control
    `oracle` reads: the class or the item that it stands for, by name, or several of them with weights."""

    evaluation = Evaluation()  #: the settings with which it embeds
    seconds = 0.0  #: spent in embedding so far
    embedded = 0  #: sentences embedded so far
    cache_dir: Path | None = None  #: where `stream` keeps its shards; None: nowhere
    artifacts_dir: Path | None = None  #: where an evaluator may leave files that go with its scores

    @cached_property
    def known(self) -> dict[str, np.ndarray]:
        """Vectors of the sentences embedded so far."""
        return {}

    def vectors(self, sentences: list[str]) -> np.ndarray:
        """(sentences, D) float32."""
        raise NotImplementedError

    def embed(self, sentences: list[str], truth: list | None = None) -> np.ndarray:
        """(sentences, D) float32; what has been embedded before is remembered."""
        new = list(dict.fromkeys(s for s in sentences if s not in self.known))
        if new:
            self.known.update(zip(new, self._timed(partial(self.vectors, new)), strict=True))
        return np.stack([self.known[s] for s in sentences])

    def pairs(self, pairs) -> tuple[np.ndarray, np.ndarray]:
        """Vectors of the left and right sentences of graded pairs (csebench.data.sts.Pairs)."""
        return self.embed(pairs.left), self.embed(pairs.right)

    def prepare(self, sentences: list[str]) -> Callable[[], np.ndarray]:
        """What gives the vectors of sentences; what can be done before the device is free, is done."""
        return partial(self.vectors, sentences)

    def _timed(self, embed: Callable[[], np.ndarray]) -> np.ndarray:
        started = time.perf_counter()
        vectors = embed()
        self.seconds += time.perf_counter() - started
        self.embedded += len(vectors)
        check_finite(vectors)
        return vectors

    def stream(self, texts: Iterable[str], name: str, truth: Iterable | None = None) -> Iterator[np.ndarray]:
        """Vectors of a corpus of any size, in shards of SHARD rows that are never in memory together. Each is kept
        below `cache_dir` under a hash of its texts, of the model and of its settings, so that a killed evaluation goes
        on behind the last one, and a second search embeds nothing. A thread prepares the next one meanwhile."""
        model = f"{self.evaluation} {hashlib.sha256(self.vectors([PROBE]).tobytes()).hexdigest()}"

        def prepare(number: int, shard: list[str]) -> Callable[[], np.ndarray]:
            if self.cache_dir is None:
                return partial(self._timed, self.prepare(shard))
            made_of = hashlib.sha256("\0".join([model, *shard]).encode("utf-8", "surrogatepass")).hexdigest()
            file = self.cache_dir / name / f"{number:05}-{made_of[:16]}.npy"
            return partial(np.load, file) if file.exists() else partial(self._kept, file, self.prepare(shard))

        waiting = deque()
        with ThreadPoolExecutor(1) as thread:
            for numbered in enumerate(shards(texts)):
                waiting.append(thread.submit(prepare, *numbered))
                if len(waiting) == 2:
                    yield waiting.popleft().result()()
            for last in waiting:
                yield last.result()()

    def _kept(self, file: Path, embed: Callable[[], np.ndarray]) -> np.ndarray:
        vectors = self._timed(embed)
        with replacing(file) as temporary, open(temporary, "wb") as opened:
            np.save(opened, vectors)
        return vectors
