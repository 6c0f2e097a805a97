"""What a method is to the trainer. A method file overrides `loss`, often `views`, seldom more."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import torch
from torch import nn

from csebench.encoder import Encoded, Encoder, Head, pool


@dataclass
class View:
    """One view of a batch."""

    z: torch.Tensor  # (N, D) what the loss compares
    batch: dict[str, torch.Tensor]  # the tokenised sentences, (N, T) each
    attention: list[torch.Tensor] = field(default_factory=list)  # (N, H, T, T) of the layers a component asked for
    same: torch.Tensor | None = None  # (N,) bool, rows whose other view is of the same sentence; None: all

    @property
    def ids(self):
        return self.batch["input_ids"]

    @property
    def mask(self):
        return self.batch["attention_mask"].bool()


class Method(nn.Module):
    """Two views of a batch and a loss between them.

    Attributes:
        encoder: the encoder that is trained and exported.
        p: hyper-parameters, as attributes.
        queue: (Q, D) further negatives, set by the trainer where a component (MoCo) provides them.
    """

    def __init__(self, encoder: Encoder, params: dict):
        super().__init__()
        self.encoder, self.p = encoder, SimpleNamespace(**params)
        self.queue = None
        self.head = None

    def encoders(self) -> list[Encoder]:
        """The encoders trained; of several, the better on STS-B dev is kept."""
        return [self.encoder]

    def sentences_per_step(self) -> int:
        return self.p.batch_size

    def project(self, encoded: Encoded) -> torch.Tensor:
        """From the encoder's output to the vector that the loss compares: pooling, then the head if there is one."""
        z = pool(self.p.pooler, encoded.output, encoded.mask)
        return z if self.head is None else self.head(z)

    def views(self, sentences: list[str]) -> tuple[View, View]:
        """Two dropout masks over one forward pass; rows 2i and 2i+1 are the views of sentence i (SimCSE)."""
        twice = [s for s in sentences for _ in range(2)]
        batch = self.encoder.tokenize(twice, self.p.max_length)
        encoded = self.encoder(batch, self.p.pooler)
        z = self.project(encoded)
        return tuple(
            View(z[i::2], {k: v[i::2] for k, v in batch.items()}, [a[i::2] for a in encoded.attention]) for i in (0, 1)
        )

    def loss(self, one: View, two: View) -> torch.Tensor:
        """Scalar to be minimised."""
        raise NotImplementedError(f"{type(self).__module__} must define loss(one, two)")

    def after_step(self) -> None:
        """Called after every optimiser step."""

    def learning_rate_factor(self, step: int) -> float:
        """Factor on the learning rate at a step (0-based): linear warm-up, then linear decay to 0."""
        warmup, steps = self.p.warmup_steps, self.p.steps
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (steps - step) / max(1, steps - warmup))


class ClsHeadMethod(Method):
    """A method with SimCSE's head in training where it pools [CLS] (`mlp_only_train`), and none for averages."""

    def __init__(self, encoder, params):
        super().__init__(encoder, params)
        if self.p.pooler == "cls_before_pooler":
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
