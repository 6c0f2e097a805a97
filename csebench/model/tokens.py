"""Token ids of sentences that training sees again, in memory."""

import numpy as np


class Tokens:
    """Rows of token ids by sentence, cut at what the encoder reads; what is not known yet is tokenised and remembered.

    Args:
        tokenizer: of the encoder.
        max_seq_length: tokens that it reads.
    """

    def __init__(self, tokenizer, max_seq_length: int):
        self.tokenizer, self.max_seq_length = tokenizer, max_seq_length
        self.known: dict[str, np.ndarray] = {}

    def rows(self, sentences: list[str]) -> list[list[int]]:
        if new := list(dict.fromkeys(s for s in sentences if s not in self.known)):
            rows = self.tokenizer(new, truncation=True, max_length=self.max_seq_length)["input_ids"]
            small = np.uint16 if len(self.tokenizer) <= 2**16 else np.uint32
            self.known.update((s, np.array(row, small)) for s, row in zip(new, rows, strict=True))
        return [self.known[s].tolist() for s in sentences]
