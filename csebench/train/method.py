"""What a method is to the trainer. A method file overrides `loss`, often `views`, seldom more."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import torch
from torch import nn

from csebench.model.encoder import Encoder
from csebench.model.layers import Head, Projector, initialise, to_device
from csebench.model.pooling import Encoded, pool
from csebench.train import parallel


@dataclass
class View:
    """One view of a batch of N sentences."""

    z: torch.Tensor  # (N, D) what the loss compares: behind the head
    pooled: torch.Tensor  # (N, D) the sentence vector: before the head
    # the tokenised sentences, (N, T) each, on the host; with `labels` where masked
    batch: dict[str, torch.Tensor]
    # by layer (N, H, T, T), where a component asked
    attention: dict[int, torch.Tensor] = field(default_factory=dict)
    # (N,) bool on the host, rows whose other view is of the same text; None: all
    same: torch.Tensor | None = None
    # (N, D) at position 0 of every layer, if wanted
    states: list[torch.Tensor] = field(default_factory=list)
    blocks: int = 1  # how often the view shows the batch, one time behind the other

    def gathered(self) -> "View":
        """The vectors of all processes' sentences; tokens and attention stay this process's."""
        z, pooled, *states = (
            parallel.gather(x, self.blocks) for x in (self.z, self.pooled, *self.states)
        )
        same = (
            None
            if self.same is None
            else parallel.gather(to_device(self.same, z.device), self.blocks)
        )
        return replace(self, z=z, pooled=pooled, states=states, same=same)

    def rows(self, index) -> "View":
        batch = {key: value[index] for key, value in self.batch.items()}
        return View(
            self.z[index],
            self.pooled[index],
            batch,
            {i: a[index] for i, a in self.attention.items()},
        )

    @property
    def ids(self) -> torch.Tensor:
        return self.batch["input_ids"]

    @property
    def mask(self) -> torch.Tensor:
        return self.batch["attention_mask"].bool()


@dataclass
class Views:
    """What a loss compares: two views of a batch, and what stands beside them."""

    view1: View
    view2: View
    hard: View | None = None  # hard negatives, of supervised methods
    queue: torch.Tensor | None = None  # (Q, D) further negatives, where components give some

    def __iter__(self) -> Iterator[View]:
        return iter((self.view1, self.view2))

    @property
    def z1(self) -> torch.Tensor:
        return self.view1.z

    @property
    def z2(self) -> torch.Tensor:
        return self.view2.z

    def gathered(self) -> "Views":
        """Those of the whole batch, where several processes share it
        (csebench/train/parallel.py)."""
        if parallel.world_size() == 1:
            return self
        hard = None if self.hard is None else self.hard.gathered()
        return replace(self, view1=self.view1.gathered(), view2=self.view2.gathered(), hard=hard)


def concat_views(views: Views, padding_id: int) -> dict[str, torch.Tensor]:
    """The tokenised batch of both views, (2N, T): the rows of `view1`, then those of `view2`,
    padded to the longer."""
    batches, length = [view.batch for view in views], max(view.ids.shape[1] for view in views)
    padding = {"input_ids": padding_id, "labels": -100}  # 0 for the rest

    def padded(key, value):
        return torch.nn.functional.pad(
            value, (0, length - value.shape[1]), value=padding.get(key, 0)
        )

    return {key: torch.cat([padded(key, batch[key]) for batch in batches]) for key in batches[0]}


class Method(nn.Module):
    """Two views of a batch and a loss between them.

    Attributes:
        encoder: the encoder that is trained and exported.
        p: hyper-parameters, as attributes.
        edits: what components do to a tokenised batch before it is encoded; set once, when they are
            plugged in.
        keeps_last: the last step is exported instead of the best on STS-B dev (pre-training).
        decays_all: weight decay falls on biases and LayerNorm, too, which the trainer of
            transformers leaves out.
        group: sentences of a batch that belong together, and stay in one process.
    """

    keeps_last, decays_all, group = False, False, 1

    def __init__(self, encoder: Encoder, params: dict):
        super().__init__()
        self.encoder, self.p = encoder, SimpleNamespace(**params)
        self.head: nn.Module | None = None
        self.edits: list[Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]] = []

    def encoders(self) -> list[Encoder]:
        """The encoders that are scored on STS-B dev, of which the best is kept. What is trained
        is every parameter of the method's modules, unless its `requires_grad` is false."""
        return [self.encoder]

    def learned(self) -> dict[str, float]:
        """Learned values to be recorded at every evaluation, such as a temperature:
        {"temperature": 0.05}."""
        return {}

    def sentences_per_step(self) -> int:
        return self.p.batch_size

    def tokenize(self, sentences: list[str]) -> dict[str, torch.Tensor]:
        return self.encoder.tokenize(sentences, self.p.max_length, self.p.pooler)

    def tokenize_edited(self, sentences: list[str], edits: list) -> dict[str, torch.Tensor]:
        """The sentences after each edit (train/augment.py), (edits * N, T): all of the first,
        then the next."""
        rows, limit = self.encoder.ids(sentences, self.p.max_length), self.encoder.max_seq_length
        words = [
            (edit, row, torch.tensor(row[1:-1], dtype=torch.long)) for edit in edits for row in rows
        ]
        rows = [[row[0], *edit(ids).tolist(), row[-1]] for edit, row, ids in words]
        rows = [self.encoder.cut(row, limit) for row in rows]
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
        for edit in self.edits:
            batch = edit(batch)
        return self.as_view((encoder or self.encoder)(batch, self.reads()), batch)

    def reads(self) -> str | None:
        """The pooler whose states a forward pass computes; None: every hidden state."""
        return self.p.pooler

    def as_view(self, encoded: Encoded, batch: dict[str, torch.Tensor]) -> View:
        pooled = self.pool(encoded)
        return View(self.project(pooled), pooled, batch, encoded.attention)

    def views(self, sentences: list[str]) -> Views:
        """Two dropout masks over one forward pass; rows 2i and 2i+1 are the views of sentence i
        (SimCSE)."""
        both = self.view([sentence for sentence in sentences for _ in range(2)])
        return Views(both.rows(slice(0, None, 2)), both.rows(slice(1, None, 2)))

    def loss(self, views: Views) -> torch.Tensor:
        """Scalar to be minimised."""
        raise NotImplementedError(f"{type(self).__module__} must define loss(views)")

    def after_step(self) -> None:
        """Called after every optimiser step."""

    def exported(self) -> dict[str, nn.Module]:
        """Modules that are written beside the encoder, for a method that starts from this one."""
        return {}

    def learning_rate_factor(self, step: int) -> float:
        """Factor on the learning rate at a step (0-based): linear warm-up, then linear decay to
        0."""
        warmup, steps = self.p.warmup_steps, self.p.steps
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (steps - step) / max(1, steps - warmup))


class ClsHeadMethod(Method):
    """A method with a head in training (`mlp_only_train`); with the pooler `cls` the head stays at
    test.

    The parameter `projector`, where it has one, says which: `mlp` (also without it): SimCSE's,
    where [CLS] is pooled; `linear`: one layer; `batchnorm`: DiffCSE's; `none`.
    """

    def __init__(self, encoder, params):
        super().__init__(encoder, params)
        # a new one, in the place of the checkpoint's (SimCSE issue #179)
        if self.p.pooler == "cls":
            initialise(encoder.model.pooler.dense)
        projector = getattr(self.p, "projector", "mlp")
        if projector == "batchnorm":
            self.head = Projector(encoder.size)
        elif projector == "linear":
            self.head = nn.Linear(encoder.size, encoder.size)
        elif projector == "mlp" and self.p.pooler == "cls_before_pooler":
            self.head = Head(encoder.size)


class Component(nn.Module):
    """A plug-in for two-view methods: it adds a term to the loss, gives it negatives, or edits what
    is encoded.

    Attributes:
        queue: (Q, D) negatives for the method's own loss, or None.
    """

    queue: torch.Tensor | None = None

    def __init__(self, method: Method, params: dict):
        super().__init__()
        self.p = SimpleNamespace(**params)

    def term(self, method: Method, views: Views) -> torch.Tensor | float:
        """What is added to the method's loss, weight included."""
        return 0.0

    def after_step(self, method: Method, views: Views) -> None:
        """Called after every optimiser step with the views of its batch."""
