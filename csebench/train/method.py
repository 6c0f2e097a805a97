"""Base classes of methods and components, with all that the trainer calls.

The file of a method extends `Method`. It overrides `loss`, often `views`, and seldom more. A
component extends `Component`. Both work on `Views`: two views of a batch. Losses that several
methods share are in csebench/train/losses.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from csebench.model.encoder import Encoder
from csebench.model.layers import Head, Projector, initialise, to_device
from csebench.model.pooling import Encoded, pool
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train import parallel


@dataclass
class View:
    """One view of a batch of N sentences."""

    # (N, D) vectors that the loss compares: the output of the head; a method may add dimensions
    z: torch.Tensor
    pooled: torch.Tensor  # (N, D) sentence vectors: the input of the head
    # the tokenised sentences, (N, T) each, on the host; with `labels` if tokens are masked
    batch: dict[str, torch.Tensor]
    # attention maps by layer, (N, H, T, T), if a component asked for them
    attention: dict[int, torch.Tensor] = field(default_factory=dict)
    # (N,) bool on the host, True at rows whose other view shows the same text; None: at all rows
    same: torch.Tensor | None = None
    # states at position 0, (N, D) for every layer, if the loss reads them
    states: list[torch.Tensor] = field(default_factory=list)
    blocks: int = 1  # how often the view shows the batch, one block of N rows after the other

    def gathered(self) -> "View":
        """Return the view with the vectors of all processes.

        Tokens and attention maps remain those of this process alone.
        """
        z = parallel.gather(self.z, self.blocks)
        pooled = parallel.gather(self.pooled, self.blocks)
        states = [parallel.gather(state, self.blocks) for state in self.states]
        same = None
        if self.same is not None:
            same = parallel.gather(to_device(self.same, z.device), self.blocks)
        return replace(self, z=z, pooled=pooled, states=states, same=same)

    def rows(self, index) -> "View":
        """Return a view of some rows, without `same`, `states` and `blocks`.

        Args:
            index: any index of a tensor's first dimension.
        """
        batch = {key: value[index] for key, value in self.batch.items()}
        attention = {layer: maps[index] for layer, maps in self.attention.items()}
        return View(self.z[index], self.pooled[index], batch, attention)

    @property
    def ids(self) -> torch.Tensor:
        return self.batch["input_ids"]

    @property
    def mask(self) -> torch.Tensor:
        return self.batch["attention_mask"].bool()


@dataclass
class Views:
    """The input of a loss: two views of a batch, and further negatives."""

    view1: View
    view2: View
    hard: View | None = None  # hard negatives of supervised methods
    queue: torch.Tensor | None = None  # (Q, D) further negatives, if components give some

    def __iter__(self) -> Iterator[View]:
        return iter((self.view1, self.view2))

    @property
    def z1(self) -> torch.Tensor:
        return self.view1.z

    @property
    def z2(self) -> torch.Tensor:
        return self.view2.z

    def gathered(self) -> "Views":
        """Return the views of the whole batch, if several processes share it.

        See csebench/train/parallel.py.
        """
        if parallel.world_size() == 1:
            return self
        hard = self.hard
        if hard is not None:
            hard = hard.gathered()
        return replace(self, view1=self.view1.gathered(), view2=self.view2.gathered(), hard=hard)


def concat_views(views: Views, padding_id: int) -> dict[str, torch.Tensor]:
    """Join the tokenised batches of both views, padded to the longer one.

    Returns:
        (2N, T) for each key: the rows of `view1`, then those of `view2`.
    """
    batches = [view.batch for view in views]
    length = max(view.ids.shape[1] for view in views)
    padding = {"input_ids": padding_id, "labels": -100}  # 0 for the rest

    def padded(key: str, value: torch.Tensor) -> torch.Tensor:
        missing = length - value.shape[1]
        return torch.nn.functional.pad(value, (0, missing), value=padding.get(key, 0))

    joined = {}
    for key in batches[0]:
        joined[key] = torch.cat([padded(key, batch[key]) for batch in batches])
    return joined


class Method(nn.Module):
    """Two views of a batch and a loss between them.

    Attributes:
        encoder: the encoder that is trained and exported.
        p: hyper-parameters, as attributes.
        edits: functions of components that change a tokenised batch before it is encoded. A
            component adds its own when it is made.
        keeps_last: export the last step instead of the best on STS-B dev (for pre-training).
        decays_all: let weight decay change biases and LayerNorm, too. The trainer of transformers
            leaves them out.
        group: number of consecutive sentences of a batch that must stay in one process.
    """

    keeps_last = False
    decays_all = False
    group = 1

    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__()
        layer = self.feature_layer(encoder.size, params)
        if layer is not None:
            encoder.add_feature_layer(layer)
            encoder.check_pooler(params.pooler, type(self).__module__)
        self.encoder = encoder
        self.p = params
        self.head: nn.Module | None = None
        self.edits: list[Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]] = []

    @staticmethod
    def feature_layer(size: int, params: Hyperparameters) -> nn.Module | None:
        """Make the layer between the states of tokens and their mean. None: there is none.

        The layer is trained, scored on STS-B dev, and exported with the encoder. When an exported
        model is opened, this function makes its layer again, before it gets its weights.

        Args:
            size: H, the width of the encoder's states.

        Returns:
            A module that `Encoder.add_feature_layer` takes.
        """
        return None

    def encoders(self) -> list[Encoder]:
        """Return the encoders that are scored on STS-B dev. The best of them is kept.

        Other encoders are trained, too: the trainer trains every parameter of the method's modules
        unless its `requires_grad` is false.
        """
        return [self.encoder]

    def added_encoders(self) -> list[Encoder]:
        """Return the encoders whose vectors are added to those of the encoder that is scored.

        They are scored, kept and exported together with it.
        """
        return []

    def learned(self) -> dict[str, float]:
        """Return learned values to record at every evaluation, such as {"temperature": 0.05}."""
        return {}

    def read_corpus(self, sentences: list[str]) -> None:
        """Read the sentences that the method's map is fitted on after training.

        The trainer calls this before the first step, if the method has the parameter
        `fit_sentences`.
        """

    def sentences_per_step(self) -> int:
        """Return the number of sentences of the corpus that a step trains on."""
        return self.p.batch_size

    def tokenize(self, sentences: list[str]) -> dict[str, torch.Tensor]:
        """Tokenise sentences, in the template of the pooler if it has one."""
        return self.encoder.tokenize(sentences, self.p.max_length, self.p.pooler)

    def tokenize_edited(self, sentences: list[str], edits: list) -> dict[str, torch.Tensor]:
        """Tokenise sentences, and make an edited copy of all of them for each edit.

        Args:
            edits: functions of token ids, such as those of csebench/train/augment.py.

        Returns:
            (edits * N, T): all sentences after the first edit, then all after the next.
        """
        limit = self.encoder.max_seq_length
        rows = self.encoder.ids(sentences, self.p.max_length)
        edited_rows = []
        for edit in edits:
            for row in rows:
                words = torch.tensor(row[1:-1], dtype=torch.long)
                edited = [row[0], *edit(words).tolist(), row[-1]]
                edited_rows.append(self.encoder.cut(edited, limit))
        return self.encoder.pad(self.encoder.in_template(edited_rows, self.p.pooler))

    def pool(self, encoded: Encoded) -> torch.Tensor:
        """Return the sentence vectors (N, D) of a forward pass."""
        return pool(self.p.pooler, encoded)

    def project(self, pooled: torch.Tensor) -> torch.Tensor:
        """Apply the head, if there is one, to get the vectors that the loss compares."""
        if self.head is None:
            return pooled
        return self.head(pooled)

    def triplet_views(self, triplets: list[tuple[str, str, str]]) -> Views:
        """Encode N anchors, positives and hard negatives in one pass."""
        # anchor, positive, hard negative, anchor, …
        joined = self.view([sentence for triplet in triplets for sentence in triplet])
        view1, view2, hard = (joined.rows(slice(i, None, 3)) for i in range(3))
        return Views(view1, view2, hard)

    def view(self, sentences: list[str], encoder: Encoder | None = None) -> View:
        """Encode sentences in one pass, with `self.encoder` unless another one is given."""
        return self.encode(self.tokenize(sentences), encoder)

    def encode(
        self,
        batch: dict[str, torch.Tensor],
        encoder: Encoder | None = None,
        scale: torch.Tensor | None = None,
    ) -> View:
        """Encode a tokenised batch in one pass, after the edits of components.

        Args:
            encoder: None: `self.encoder`.
            scale: factors on the output of the embedding layer (`Encoder.forward`).
        """
        if encoder is None:
            encoder = self.encoder
        for edit in self.edits:
            batch = edit(batch)
        encoded = encoder(batch, self.reads(), scale=scale, words=self.words(batch))
        return self.as_view(encoded, batch)

    def reads(self) -> str | None:
        """Return the pooler whose states a forward pass computes. None: every hidden state."""
        return self.p.pooler

    def words(self, batch: dict[str, torch.Tensor]) -> torch.Tensor | None:
        """Return the word vectors (N, T, D) that `self.encoder` reads. None: its own.

        A method that changes word vectors overrides this.
        """
        return None

    def as_view(self, encoded: Encoded, batch: dict[str, torch.Tensor]) -> View:
        """Pool and project the result of a forward pass."""
        pooled = self.pool(encoded)
        return View(self.project(pooled), pooled, batch, encoded.attention)

    def views(self, sentences: list[str]) -> Views:
        """Return two views of a batch: here, two dropout masks in one forward pass (SimCSE).

        The pass has 2N rows. Rows 2i and 2i+1 are the views of sentence i.
        """
        twice = []
        for sentence in sentences:
            twice += [sentence, sentence]
        both = self.view(twice)
        return Views(both.rows(slice(0, None, 2)), both.rows(slice(1, None, 2)))

    def loss(self, views: Views) -> torch.Tensor:
        """Return the scalar to minimise."""
        raise NotImplementedError(f"{type(self).__module__} must define loss(views)")

    def after_step(self) -> None:
        """Update state after a step of the optimiser. The trainer calls this after every step."""

    def exported(self) -> dict[str, nn.Module]:
        """Return modules to export with the encoder, for a run that starts from this one."""
        return {}

    def learning_rate_factor(self, step: int) -> float:
        """Return the factor on the learning rate at a step, counted from 0.

        The factor rises linearly during warm-up, and then falls linearly to 0.
        """
        warmup = self.p.warmup_steps
        steps = self.p.steps
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (steps - step) / max(1, steps - warmup))


class ClsHeadMethod(Method):
    """A method with a head that is only used in training (SimCSE's `mlp_only_train`).

    The parameter `projector` selects the head: `mlp` is SimCSE's, `linear` is one layer,
    `batchnorm` is DiffCSE's, and `none` is no head. A method without the parameter has `mlp`.

    SimCSE's head is only added to the pooler `cls_before_pooler`. With the pooler `cls`, the
    encoder's own pooler layer takes its place, and is used at test, too.
    """

    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        if self.p.pooler == "cls":
            # SimCSE trains this layer from new weights, not the checkpoint's (SimCSE issue #179).
            initialise(encoder.model.pooler.dense)
        projector = getattr(self.p, "projector", "mlp")
        if projector == "batchnorm":
            self.head = Projector(encoder.size)
        elif projector == "linear":
            self.head = nn.Linear(encoder.size, encoder.size)
        elif projector == "mlp" and self.p.pooler == "cls_before_pooler":
            self.head = Head(encoder.size)


class Component(nn.Module):
    """A plug-in for two-view methods.

    It adds a term to the loss, gives the loss negatives, or edits what is encoded.

    Attributes:
        queue: (Q, D) negatives for the method's own loss, or None.
    """

    queue: torch.Tensor | None = None

    def __init__(self, method: Method, params: Hyperparameters):
        super().__init__()
        self.p = params

    def term(self, method: Method, views: Views) -> torch.Tensor | float:
        """Return the term to add to the method's loss, weight included."""
        return 0.0

    def after_step(self, method: Method, views: Views) -> None:
        """Update state after a step of the optimiser. The trainer calls this after every step.

        Args:
            views: the views of the batch of this step.
        """
