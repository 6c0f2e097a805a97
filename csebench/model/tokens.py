"""Token ids of sentences that training sees again: in memory, or for a large corpus in a file that all runs share."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from csebench import ROOT
from csebench.base.locks import locked

FOLDER = ROOT / "runs" / ".tokens"
CHUNK = 20_000  # sentences tokenised at a time
IN_MEMORY = 100_000  # sentences of a corpus that gets no file


class Tokens:
    """Rows of token ids by sentence, cut at what the encoder reads; what is not known yet is tokenised and remembered.

    Args:
        tokenizer: of the encoder.
        max_seq_length: tokens that it reads.
    """

    def __init__(self, tokenizer, max_seq_length: int):
        self.tokenizer, self.max_seq_length = tokenizer, max_seq_length
        self.known: dict[str, np.ndarray] = {}
        self.lines: dict[str, int] = {}  # of the corpus file
        self.ids = self.ends = None  # of the corpus file: (tokens,), (sentences,)

    def rows(self, sentences: list[str]) -> list[list[int]]:
        new = list(dict.fromkeys(s for s in sentences if s not in self.known and s not in self.lines))
        if new:
            self.known.update(zip(new, map(self._small, self._tokenise(new)), strict=True))
        return [(self.known[s] if s in self.known else self._line(self.lines[s])).tolist() for s in sentences]

    def _tokenise(self, sentences):
        return self.tokenizer(sentences, truncation=True, max_length=self.max_seq_length)["input_ids"]

    def _small(self, row: list[int]) -> np.ndarray:
        return np.array(row, np.uint16 if len(self.tokenizer) <= 2**16 else np.uint32)

    def _line(self, number: int) -> np.ndarray:
        start = self.ends[number - 1] if number else 0
        return self.ids[start : self.ends[number]]

    def keep(self, sentences: Sequence[str], folder: Path | None = None) -> None:
        """Tokenise a corpus as a whole, once for all runs, processes and seeds: memory-mapped arrays under the hash of
        its sentences and of the tokenizer. One process makes them, others that want them wait for it."""
        key = hashlib.sha256(f"{self.max_seq_length}\0{self.tokenizer.backend_tokenizer.to_str()}\0".encode())
        key.update("\n".join(sentences).encode("utf-8", "surrogatepass"))
        folder = folder or FOLDER
        path = folder / key.hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        with locked(path):
            if not path.exists():
                self._write(sentences, path)
        self.ids, self.ends = (np.load(path / f"{name}.npy", mmap_mode="r") for name in ("ids", "ends"))
        self.lines = {sentence: number for number, sentence in enumerate(sentences)}

    def _write(self, sentences: list[str], path: Path) -> None:
        part = Path(tempfile.mkdtemp(prefix=f"{path.name}.part-", dir=path.parent))
        ids, lengths = [], []
        for start in range(0, len(sentences), CHUNK):
            rows = self._tokenise(sentences[start : start + CHUNK])
            ids.append(np.concatenate([self._small(row) for row in rows]))
            lengths += map(len, rows)
        np.save(part / "ids.npy", np.concatenate(ids))
        np.save(part / "ends.npy", np.cumsum(lengths))
        part.chmod(0o755)  # other users of the project read it, too
        try:
            part.rename(path)
        except OSError:  # a file system without locks, and another process was first
            shutil.rmtree(part)
