"""A map that follows pooling: a vector, and how it ranks the sentences of a corpus.

RankEncoder compares two sentences by their cosine, and by whether they rank a corpus alike.
"""

import numpy as np

from csebench.base.errors import RunFailed
from csebench.base.files import memory_of_machine
from csebench.model.metrics import unit

ROWS = 256  # number of vectors whose ranks are computed at a time


class CorpusRanks:
    """The fitted map x -> [√λ · x/|x|, √(1-λ) · r/|r|].

    r are the ranks of the cosines of x with the sentences of the corpus, less their mean. So the
    cosine of two mapped vectors is λ · cosine + (1-λ) · Spearman's correlation of their cosines
    with the corpus.

    Args:
        corpus: (C, D) vectors of the sentences of the corpus, of length 1.
        cosine_share: λ, between 0 and 1; a number, or an array of one number.
    """

    def __init__(self, corpus: np.ndarray, cosine_share: float | np.ndarray):
        self.corpus = corpus
        self.cosine_share = float(np.asarray(cosine_share).item())

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Map vectors, (N, D) -> (N, D + C) float32.

        Raises:
            RunFailed: the machine has too little memory for the mapped vectors.
        """
        from scipy.stats import rankdata  # here, because importing it takes a second

        count, size = vectors.shape
        check_memory(count, size + len(self.corpus))
        mapped = np.empty((count, size + len(self.corpus)), dtype=np.float32)
        for start in range(0, count, ROWS):
            rows = slice(start, start + ROWS)
            directions = unit(vectors[rows])
            # Equal cosines share their rank.
            ranks = rankdata(directions @ self.corpus.T, axis=1)  # (rows, C)
            centred = ranks - ranks.mean(axis=1, keepdims=True)
            mapped[rows, :size] = np.sqrt(self.cosine_share) * directions
            mapped[rows, size:] = np.sqrt(1 - self.cosine_share) * unit(centred)
        return mapped

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file of the map holds, by name of the argument."""
        return {
            "corpus": np.ascontiguousarray(self.corpus),
            "cosine_share": np.array([self.cosine_share], dtype=np.float64),
        }


def check_memory(count: int, size: int) -> None:
    """Refuse to map more vectors than the machine has memory for.

    An evaluator holds each vector at least twice: as computed, and in the order of its sentences.
    Vectors of earlier calls, which may be held, too, are not counted.

    Args:
        count: number of vectors.
        size: number of dimensions of a mapped vector.
    """
    needed = 2 * count * size * np.dtype(np.float32).itemsize
    available = memory_of_machine()
    if needed > available:
        raise RunFailed(
            f"{count:,} vectors of {size:,} dimensions need {needed / 1e9:.1f} GB, and the machine"
            f" has {available / 1e9:.1f} GB: each holds the ranks of all sentences of the corpus."
            " Use a machine with more memory, or train with a smaller `fit_sentences`."
        )
