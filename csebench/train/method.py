"""What a method is to the trainer. A method file overrides `loss`, often `views`, seldom more."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import torch
from torch import nn

from csebench.model.encoder import Encoder
from csebench.model.layers import Head, Projector, initialise, to_device
from csebench.model.pooling import Encoded, pool
from csebench.train import parallel
from csebench.train.augment import edited


@dataclass
class View:
    """One view of a batch."""

    z: torch.Tensor  # (N, D) what the loss compares: behind the head
    pooled: torch.Tensor  # (N, D) the sentence vector: before the head
    batch: dict[str, torch.Tensor]  # the tokenised sentences, (N, T) each, on the host; with `labels` where masked
    attention: list[torch.Tensor] = field(default_factory=list)  # (N, H, T, T) of the layers a component asked for
    same: torch.Tensor | None = None  # (N,) bool on the host, rows whose other view is of the same text; None: all
    states: list[torch.Tensor] = field(default_factory=list)  # (N, D) at position 0 of every layer, if wanted

    def gathered(self, blocks: int = 1) -> View:
        """The vectors of all processes' sentences; tokens and attention stay this process's."""
        z, pooled, *states = (parallel.gather(x, blocks) for x in (self.z, self.pooled, *self.states))
        same = None if self.same is None else parallel.gather(to_device(self.same, z.device), blocks)
        return replace(self, z=z, pooled=pooled, states=states, same=same)

    def rows(self, index) -> View:
        batch = {k: v[index] for k, v in self.batch.items()}
        return View(self.z[index], self.pooled[index], batch, [a[index] for a in self.attention])

    @property
    def ids(self):
        return self.batch["input_ids"]

    @property
    def mask(self):
        return self.batch["attention_mask"].bool()


def both(one: View, two: View, padding_id: int) -> dict[str, torch.Tensor]:
    """The tokenised batch of both views, (2N, T): the rows of `one`, then those of `two`, padded to the longer."""
    longest = max(one.ids.shape[1], two.ids.shape[1])
    padding = {"input_ids": padding_id, "labels": -100}  # 0 for the rest

    def padded(key, value):
        return torch.nn.functional.pad(value, (0, longest - value.shape[1]), value=padding.get(key, 0))

    return {key: torch.cat([padded(key, one.batch[key]), padded(key, two.batch[key])]) for key in one.batch}


class Method(nn.Module):
    """Two views of a batch and a loss between them.

    Attributes:
        encoder: the encoder that is trained and exported.
        p: hyper-parameters, as attributes.
        queue: (Q, D) further negatives, set by the trainer where a component (MoCo) provides them.
        corrupt: what a component does to a tokenised batch before it is encoded, or None.
        hard: the view of hard negatives, which supervised methods set in `views`.
        keeps_last: the last step is exported instead of the best on STS-B dev (pre-training).
        group: sentences of a batch that belong together, and stay in one process.
        blocks: how often a view shows the batch, one time behind the other.
    """

    keeps_last, group, blocks = False, 1, 1

    def __init__(self, encoder: Encoder, params: dict):
        super().__init__()
        self.encoder, self.p = encoder, SimpleNamespace(**params)
        self.queue = self.hard = None
        self.head = None
        self.corrupt = None

    def encoders(self) -> list[Encoder]:
        """The encoders trained; of several, the better on STS-B dev is kept."""
        return [self.encoder]

    def sentences_per_step(self) -> int:
        return self.p.batch_size

    def tokenize(self, sentences: list[str]) -> dict[str, torch.Tensor]:
        return self.encoder.tokenize(sentences, self.p.max_length, self.p.pooler)

    def tokenize_edited(self, sentences: list[str], edits: list) -> dict[str, torch.Tensor]:
        """The sentences after each edit (train/augment.py), (edits * N, T): all of the first, then the next."""
        rows = self.encoder.ids(sentences, self.p.max_length)
        rows = [row for edit in edits for row in edited(rows, edit)]
        rows = [
            row if len(row) <= self.encoder.longest else [*row[: self.encoder.longest - 1], row[-1]] for row in rows
        ]
        return self.encoder.pad(self.encoder.in_template(rows, self.p.pooler))

    def pool(self, encoded: Encoded) -> torch.Tensor:
        return pool(self.p.pooler, encoded)

    def project(self, pooled: torch.Tensor) -> torch.Tensor:
        """From the sentence vector to what the loss compares: the head, if there is one."""
        return pooled if self.head is None else self.head(pooled)

    def view(self, sentences: list[str], encoder: Encoder | None = None) -> View:
        """One pass, through `self.encoder` unless another is given."""
        return self.encode(self.tokenize(sentences), encoder)

    def encode(self, batch: dict[str, torch.Tensor], encoder: Encoder | None = None) -> View:
        if self.corrupt is not None:
            batch = self.corrupt(batch)
        return self.as_view((encoder or self.encoder)(batch, self.reads()), batch)

    def reads(self) -> str | None:
        """The pooler whose states a forward pass computes; None: every hidden state."""
        return self.p.pooler

    def as_view(self, encoded: Encoded, batch: dict[str, torch.Tensor]) -> View:
        pooled = self.pool(encoded)
        return View(self.project(pooled), pooled, batch, encoded.attention)

    def views(self, sentences: list[str]) -> tuple[View, View]:
        """Two dropout masks over one forward pass; rows 2i and 2i+1 are the views of sentence i (SimCSE)."""
        rows = self.view([s for s in sentences for _ in range(2)])
        return rows.rows(slice(0, None, 2)), rows.rows(slice(1, None, 2))

    def gathered(self, one: View, two: View) -> tuple[View, View]:
        """The views of the whole batch where several processes share it (csebench/train/parallel.py)."""
        if parallel.count() == 1:
            return one, two
        if self.hard is not None:
            self.hard = self.hard.gathered()
        return one.gathered(self.blocks), two.gathered(self.blocks)

    def loss(self, one: View, two: View) -> torch.Tensor:
        """Scalar to be minimised."""
        raise NotImplementedError(f"{type(self).__module__} must define loss(one, two)")

    def after_step(self) -> None:
        """Called after every optimiser step."""

    def exported(self) -> dict[str, nn.Module]:
        """Modules that are written beside the encoder, for a method that starts from this one."""
        return {}

    def learning_rate_factor(self, step: int) -> float:
        """Factor on the learning rate at a step (0-based): linear warm-up, then linear decay to 0."""
        warmup, steps = self.p.warmup_steps, self.p.steps
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (steps - step) / max(1, steps - warmup))


class ClsHeadMethod(Method):
    """A method with a head in training (`mlp_only_train`); with the pooler `cls` the head stays at test.

    The parameter `projector`, where it has one, says which: `mlp` (also without it): SimCSE's, where [CLS] is
    pooled; `linear`: one layer; `batchnorm`: DiffCSE's; `none`.
    """

    def __init__(self, encoder, params):
        super().__init__(encoder, params)
        if self.p.pooler == "cls":  # a new one, in the place of the checkpoint's (SimCSE issue #179)
            initialise(encoder.model.pooler.dense)
        projector = getattr(self.p, "projector", "mlp")
        if projector == "batchnorm":
            self.head = Projector(encoder.size)
        elif projector == "linear":
            self.head = nn.Linear(encoder.size, encoder.size)
        elif projector == "mlp" and self.p.pooler == "cls_before_pooler":
            self.head = Head(encoder.size)


class Component(nn.Module):
    """A plug-in that any two-view method can take: it may add a term to the loss, or give it a queue of negatives.

    Attributes:
        queue: (Q, D) negatives for the method's own loss, or None.
    """

    queue: torch.Tensor | None = None

    def __init__(self, method: Method, params: dict):
        super().__init__()
        self.p = SimpleNamespace(**params)

    def loss(self, method: Method, one: View, two: View) -> torch.Tensor | float:
        """The term added to the method's loss, weight included."""
        return 0.0

    def after_step(self, method: Method, one: View) -> None:
        """Called after every optimiser step with the first view of its batch."""
