"""Train a method: its steps, its evaluations on STS-B dev, and its best weights.

`fit` trains a run. `TrainingTask` defines a step and an evaluation, which the loop in
csebench/train/loop.py calls. csebench/train/checkpoint.py saves the state that a run resumes from.
csebench/train/run.py writes the model.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from csebench.base.errors import BadInput, Diverged, OutOfMemory, RunFailed, Untrainable, shortened
from csebench.base.processes import rank, stop_signals
from csebench.base.runs import Progress
from csebench.data.sts import Pairs
from csebench.model import metrics
from csebench.model.bf16 import fast_products
from csebench.model.embedder import check_finite
from csebench.model.encoder import Encoder
from csebench.model.layers import Layers, to_device
from csebench.model.sentence_encoder import SentenceEncoder
from csebench.plan.catalog.registry import COMPONENTS, METHODS, declaration, load, typed_params
from csebench.plan.schema.declarations import Evaluation, Hyperparameters, Precision
from csebench.plan.schema.spec import Spec
from csebench.train import checkpoint, in_place, parallel
from csebench.train.checkpoint import TrainState
from csebench.train.foreign import ForeignCode
from csebench.train.inputs import Inputs, fitting_sentences
from csebench.train.loop import run_steps
from csebench.train.method import Method, Views

VANISHED = 1e-4  # a loss below this share of the first loss trains almost nothing


@dataclass(frozen=True)
class Trained:
    """The results of a training. The best weights are not here: they are in the trained encoder.

    If several processes share the run, only the main process has results. The others have empty
    ones.
    """

    report: dict = field(default_factory=dict)
    modules: dict[str, nn.Module] = field(default_factory=dict)  # that the method also exports
    # encoders whose vectors are added to those of the encoder, with their best weights
    added: list[Encoder] = field(default_factory=list)


def fit(
    spec: Spec,
    params: Hyperparameters,
    out: Path,
    encoder: Encoder,
    inputs: Inputs,
    progress: Progress,
    chunk_size: int | None = None,
) -> Trained:
    """Train a run, and leave its best weights on STS-B dev in `encoder`.

    Args:
        params: hyper-parameters of the method.
        out: folder of the run, which holds its checkpoint.
        chunk_size: number of sentences that an encoder computes at a time. None means the whole
            batch. See csebench/model/chunks.py.

    Raises:
        BadInput: the loss is not a scalar with a gradient, the class is no Method, or several
            processes cannot share the batch.
        RunFailed: a step does not fit in GPU memory, or code of the method changed a setting.
        Stopped: a signal was received. A checkpoint has been written.
        Diverged: a loss or a vector is not finite, or no evaluation on STS-B dev gave a score.
        Untrainable: the encoder gets no gradient.
    """
    plugins = {}
    for name, component in spec.components.items():
        plugins[name] = typed_params(name, component.params, COMPONENTS)
    foreign = ForeignCode(spec.run_id)
    with stop_signals() as received:
        # A process imports a file only once, perhaps in an earlier run. So random numbers that the
        # file draws on import must not change those of this run.
        with foreign, torch.random.fork_rng(devices=[]):
            load_code(spec)

        # Draw the new weights of heads.
        foreign.seed(spec.seed_of("head"))
        with foreign:
            modules, optimizer = assemble(spec.method, encoder, params, plugins, chunk_size)

        if declaration(spec.method).fits_map:
            method = modules["method"]
            assert isinstance(method, Method)
            with foreign:
                method.read_corpus(fitting_sentences(spec, inputs))

        # If the spec has no seeds by source, dropout continues the random numbers of the heads.
        if spec.seeds:
            foreign.seed(spec.seed_of("dropout"))
        task = TrainingTask(spec, modules, optimizer, inputs, foreign)
        state = TrainState(modules, optimizer)
        checkpoint.resume(state, out, task.name)
        first_step = state.step
        if rank() > 0:  # each process draws its own dropout masks
            foreign.seed(spec.seed_of("dropout") + 1_000_003 * rank() + first_step)
        foreign.accept_seeds()  # resuming from a checkpoint has restored the seeds saved there

        seconds_per_step = run_steps(task, state, out, progress, received)

    if rank() > 0:
        return Trained()
    best = state.best
    if "weights" not in best:
        raise Diverged(
            f"{spec.run_id}: STS-B dev gave no score at any step that may be kept (constant"
            " embeddings?)."
        )
    encoder.model.load_state_dict(best["weights"])
    added = task.method.added_encoders()
    # a checkpoint of an older version has no such weights, and its method adds no encoders
    for other, weights in zip(added, best.get("added_weights", []), strict=True):
        other.model.load_state_dict(weights)
    report = {
        "curve": state.curve,
        "losses": state.losses,
        "steps": state.step,
        "resumed_at": first_step or None,
        "best_step": best["step"],
        "best_encoder": best["encoder"],
        "best_dev": best["score"],
        "sentences": len(inputs.sentences),
        "processes": parallel.world_size(),
        "seconds_per_step": seconds_per_step,
    }
    if has_vanished(state.losses):
        report["loss_vanished"] = True
        print(vanished_text(spec.run_id, state.losses), file=sys.stderr, flush=True)
    with foreign:
        return Trained(report, task.method.exported(), added)


def untrained_report(
    spec: Spec, params: Hyperparameters, encoder: Encoder, inputs: Inputs, reason: str
) -> dict:
    """Report a run whose training diverged, and whose model is the encoder that it started from.

    Args:
        reason: how the training diverged.
    """
    scores = dev_point(encoder, params.pooler, inputs.dev, spec.precision)
    return {
        "diverged": reason,
        "best_dev": scores["spearman"],
        "sentences": len(inputs.sentences),
        "processes": parallel.world_size(),
    }


def has_vanished(losses: list[list[float]]) -> bool:
    """Whether every later reading is at most VANISHED times the first. A single reading must be 0.

    Args:
        losses: [step, mean loss since the previous reading] of every reading.
    """
    (_, start), *later = losses
    if not later:
        return start == 0
    return all(abs(loss) <= VANISHED * abs(start) for _, loss in later)


def vanished_text(run_id: str, losses: list[list[float]]) -> str:
    """Return the warning about a run whose loss `has_vanished`."""
    (first_step, start), *_ = losses
    if start == 0:
        finding = "the loss is 0 in all steps"
    else:
        finding = (
            f"the loss is {start:.3g} up to step {first_step} and below {VANISHED:g} of that from"
            " then on"
        )
    return (
        f"{run_id}: {finding}: training changes next to nothing. Check the loss, or raise its"
        " temperature."
    )


class TrainingTask:
    """A method with its components, in the form that the loop of steps needs."""

    def __init__(
        self,
        spec: Spec,
        modules: nn.ModuleDict,
        optimizer: torch.optim.Optimizer,
        inputs: Inputs,
        foreign: ForeignCode,
    ):
        method = modules["method"]
        assert isinstance(method, Method)
        self.method = method
        self.components = modules["components"]
        self.optimizer = optimizer
        self.foreign = foreign
        self.name = spec.run_id
        self.seed = spec.seed_of("order")
        self.precision: Precision = spec.precision
        self.sentences = inputs.sentences
        self.dev = inputs.dev
        self.p = method.p
        self.device = method.encoder.device

        processes = parallel.world_size()
        size = method.sentences_per_step()
        self.least = 2  # fewest sentences of a batch: a single one would have no negatives
        if processes > 1:
            self.least = processes * method.group
            if size < self.least:
                raise BadInput(
                    f"{self.name}: {processes} processes cannot share a batch of {size} sentences."
                )

    def make_step(self, step: int) -> torch.Tensor:
        """Train on the batch of a step, and return its loss.

        Raises:
            RunFailed: the step does not fit in GPU memory.
        """
        size = self.method.sentences_per_step()
        batch = batch_at(step, self.sentences, size, self.seed, self.least)
        batch = parallel.shard(batch, self.method.group)
        is_first = step == 0
        try:
            with self.foreign, fast_products(self.device, self.precision):
                return optimise(
                    self.method,
                    self.components,
                    self.optimizer,
                    batch,
                    self.precision,
                    check=is_first,
                )
        except torch.OutOfMemoryError:
            pass  # leave the handler before probing: its traceback keeps the tensors of the step
        raise self.memory_error(batch)

    def memory_error(self, batch: list) -> RunFailed:
        """Return the error for a step that does not fit in GPU memory, with advice."""
        problem = f"{self.name}: a step of {len(batch)} sentences does not fit in GPU memory"
        if self.is_memory_shared():
            return RunFailed(
                f"{problem}, because other processes use a part of it. Try again later."
            )
        size = self.fitting_chunk(batch)
        if size == 0:
            return OutOfMemory(f"{problem}. Use a smaller `batch_size` or `max_length`.")
        to_snakemake = f"to Snakemake: --set-resources train:chunk_size={size}"
        if parallel.world_size() == 1:
            return OutOfMemory(f"{problem}. Use --chunk-size {size}, which fits ({to_snakemake}).")
        return OutOfMemory(f"{problem}. Use --chunk-size {size} ({to_snakemake}).")

    def is_memory_shared(self) -> bool:
        """Whether other processes hold more of the GPU's memory than CUDA itself needs."""
        if self.device.type != "cuda":
            return False
        free, total = torch.cuda.mem_get_info()
        used_elsewhere = total - free - torch.cuda.memory_reserved()
        return used_elsewhere > total / 10

    def fitting_chunk(self, batch: list) -> int:
        """Find a chunk size with which a step fits in memory.

        Half of the present chunk size is tried, or the whole batch if there are no chunks, and then
        the half of that, until a step fits. Several processes cannot try a size together. They get
        half of the present size.

        Returns:
            The size, or 0 if no size fits.
        """
        chunk_size = self.method.encoder.chunk_size
        if parallel.world_size() > 1:
            return (chunk_size or len(batch)) // 2
        size = len(batch)
        if chunk_size:
            size = chunk_size // 2
        while size > 0 and not self.is_fitting(batch, size):
            size //= 2
        return size

    def is_fitting(self, batch: list, chunk_size: int) -> bool:
        """Train a step to find out whether it fits in memory. The run is over anyway."""
        self.optimizer.zero_grad()
        torch.cuda.empty_cache()
        use_chunks(nn.ModuleList([self.method, self.components]), chunk_size)
        try:
            optimise(self.method, self.components, self.optimizer, batch, self.precision)
        except torch.OutOfMemoryError:
            return False
        return True

    def evaluate(self, state: TrainState) -> None:
        """Score every encoder of the method on STS-B dev, and keep the weights of the best.

        The vectors of `added_encoders()` are added to those of each scored encoder, and their
        weights are kept together with those of the best encoder. The best of all steps is kept. If
        the method or the setting `selection` asks for the last step, only encoders of that step are
        compared. Of equal scores the first is kept.
        """
        if self.method.keeps_last or self.p.selection == "last":
            # forget earlier steps, even if this step has no score
            state.best = {"score": -np.inf}
        loss = state.losses[-1][1]
        with self.foreign:
            learned = {name: float(value) for name, value in self.method.learned().items()}

        added = self.method.added_encoders()
        for number, encoder in enumerate(self.method.encoders()):
            point: dict = {"step": state.step, "loss": loss}
            if learned:
                point["learned"] = learned
            point["encoder"] = number
            scores = dev_point(encoder, self.p.pooler, self.dev, self.precision, added)
            for metric, value in scores.items():
                # not finite: for example, if all vectors are equal, there is no correlation
                point[metric] = value if np.isfinite(value) else None
            state.curve.append(point)

            score = point["spearman"]
            if score is None:
                continue
            if score > state.best["score"]:
                state.best = {
                    "score": score,
                    "step": state.step,
                    "encoder": number,
                    "weights": copied_weights(encoder),
                    "added_weights": [copied_weights(other) for other in added],
                }


def copied_weights(encoder: Encoder) -> dict[str, torch.Tensor]:
    """Copy the weights of an encoder to the host."""
    weights = {}
    for key, value in encoder.model.state_dict().items():
        weights[key] = value.detach().to("cpu", copy=True)
    return weights


# ---------------------------------------------------------------- before the first step


def load_code(spec: Spec) -> None:
    """Import the files of the method and its components."""
    load(spec.method)
    for name in spec.components:
        load(name, COMPONENTS)


def assemble(
    name: str,
    encoder: Encoder,
    params: Hyperparameters,
    plugins: dict[str, Hyperparameters],
    chunk_size: int | None = None,
) -> tuple[nn.ModuleDict, torch.optim.Optimizer]:
    """Make a method with its components, and the optimiser of the weights that they train.

    On a GPU, the layers of encoders are compiled.

    Args:
        name: of the method.
        params: hyper-parameters of the method.
        plugins: hyper-parameters of the components, by name.
    """
    method = load(name)(encoder, params)
    if not isinstance(method, Method):
        file = f"{METHODS / name}.py"
        raise BadInput(
            f"{file}: class Method: must extend Method of csebench/train/method.py, or a class that"
            " does."
        )
    components = nn.ModuleList()
    for plugin, values in plugins.items():
        components.append(load(plugin, COMPONENTS)(method, values))
    modules = nn.ModuleDict({"method": method, "components": components})
    modules.to(encoder.device).train()
    use_chunks(modules, chunk_size)

    share_token_ids(modules)
    for module in modules.modules():
        if isinstance(module, Encoder) and module.device.type == "cuda":
            module.compile_layers()

    weights = [weight for weight in modules.parameters() if weight.requires_grad]
    return modules, make_optimizer(weights, method)


def share_token_ids(modules: nn.Module) -> None:
    """Let encoders with the same tokenizer share the token ids that they keep by sentence.

    Copies of an encoder have its tokenizer. A teacher has one of its own.
    """
    ids_by_tokenizer: dict[int, dict] = {}
    for module in modules.modules():
        if isinstance(module, Encoder):
            module.known_ids = ids_by_tokenizer.setdefault(id(module.tokenizer), {})


def use_chunks(modules: nn.Module, size: int | None) -> None:
    """Set how many sentences encoders and layers compute at a time. None: the whole batch."""
    for module in modules.modules():
        if isinstance(module, Encoder | Layers):
            module.chunk_size = size


def make_optimizer(weights: list[nn.Parameter], method) -> torch.optim.Optimizer:
    """Make the optimiser that the method asks for.

    As in transformers, biases and the weights of LayerNorm do not decay, unless the method
    `decays_all`.
    """
    p = method.p
    groups = [{"params": weights}]
    if p.weight_decay and not method.decays_all:
        matrices = [weight for weight in weights if weight.ndim > 1]
        biases_and_norms = [weight for weight in weights if weight.ndim <= 1]
        groups = [{"params": matrices}, {"params": biases_and_norms, "weight_decay": 0.0}]
    if p.optimizer == "rmsprop":  # with TensorFlow's defaults, which CT's code uses
        return torch.optim.RMSprop(
            groups, lr=p.learning_rate, alpha=0.9, eps=1e-7, weight_decay=p.weight_decay
        )
    return torch.optim.AdamW(groups, lr=p.learning_rate, weight_decay=p.weight_decay, fused=True)


# ---------------------------------------------------------------- a step


def optimise(
    method, components, optimizer, batch: list, precision: str, check: bool = False
) -> torch.Tensor:
    """Make one step: forward and backward pass, clipping, optimiser, and the hooks that follow.

    Args:
        check: refuse a loss, term or gradient that cannot train.

    Returns:
        The loss, with the terms of components, without gradient.
    """
    # forward and backward
    loss, views = forward(method, components, batch, precision, check)
    try:
        loss.backward()
    except RuntimeError as error:
        # The explanation needs a second forward pass, which several processes would have to share.
        if not in_place.is_changed_in_place(error) or parallel.world_size() > 1:
            raise
        raise in_place.explained(
            error, lambda: forward(method, components, batch, precision)[0]
        ) from error
    parallel.average_gradients([method, *components])
    if check:
        check_gradient(method, loss)

    # weights
    weights = []
    for group in optimizer.param_groups:
        weights.extend(group["params"])
    torch.nn.utils.clip_grad_norm_(weights, method.p.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

    # hooks
    with autocast(method, precision):
        method.after_step()
        for component in components:
            component.after_step(method, views)
    return loss.detach()


def forward(
    method, components, batch: list, precision: str, check: bool = False
) -> tuple[torch.Tensor, Views]:
    """Compute the loss of a batch, with the terms of components.

    Returns:
        The loss, and the views of this process's share of the batch.
    """
    with autocast(method, precision):
        views = method.views(batch)
        compared = views.gathered()
        queues = [component.queue for component in components if component.queue is not None]
        if queues:
            compared.queue = torch.cat(queues)
        loss = method.loss(compared)
        if check:
            check_scalar(loss, method, "loss(views)")
        for component in components:
            term = component.term(method, views)
            if check:
                check_scalar(term, component, "term(method, views)", may_be_zero=True)
            loss = loss + term
    return loss, views


def autocast(method, precision: str) -> torch.autocast:
    """Return the context in which a method computes in the precision of the run."""
    return torch.autocast(method.encoder.device.type, torch.bfloat16, enabled=precision == "bf16")


def check_scalar(value, module: nn.Module, call: str, may_be_zero: bool = False) -> None:
    """Check that a loss or a term is a scalar with a gradient.

    Args:
        module: the method or component that computed it. The message names its file.
        call: the call that returned the value, for the message.
        may_be_zero: accept a constant 0, which a component returns while it has nothing to compare.

    Raises:
        BadInput: the value is not a scalar, or has no gradient.
    """
    if isinstance(value, torch.Tensor):
        is_scalar = value.ndim == 0
        has_gradient = value.requires_grad
        description = f"a tensor of shape {tuple(value.shape)}"
    else:
        is_scalar = isinstance(value, int | float)
        has_gradient = False
        description = shortened(repr(value), 60)
    if is_scalar and has_gradient:
        return
    if is_scalar and may_be_zero and value == 0:
        return

    if not has_gradient:
        description += " without gradient"
    raise BadInput(
        f"{file_of(module)}: {call} gives {description}, expected a scalar with a gradient."
        " Compute it from views.z1 and views.z2, without detach() or no_grad()."
    )


def check_gradient(method, loss: torch.Tensor) -> None:
    """Check that the backward pass gave the encoders a gradient.

    If the loss is 0, no gradient is needed. InfoNCE can reach 0 at a low temperature, and then has
    nothing left to learn.

    Raises:
        Untrainable: no weight of an encoder has a gradient other than 0.
    """
    weights = []
    for encoder in method.encoders():
        weights.extend(weight for weight in encoder.parameters() if weight.requires_grad)
    if not weights or loss == 0:
        return
    if any(weight.grad is not None and weight.grad.any() for weight in weights):
        return
    raise Untrainable(
        f"{file_of(method)}: the gradient of loss(views) is zero in all weights of the encoder:"
        " training would change nothing. Compute the loss from views.z1 and views.z2, without"
        " detach() or no_grad()."
    )


def file_of(module: nn.Module) -> str:
    """Return the file of a method or component, such as `methods/simcse.py`."""
    return f"{type(module).__module__.replace('.', '/')}.py"


# ---------------------------------------------------------------- batches


def batch_at(step: int, sentences: Sequence, size: int, seed: int, least: int = 2) -> list:
    """Return the batch of a step.

    Each epoch is a permutation of the sentences. The last batch of an epoch may be smaller. If it
    would have fewer than `least` sentences, they join the batch before it.

    The batch depends only on the arguments, so resuming a run needs no state.
    """
    batches, rest = divmod(len(sentences), size)
    if rest >= least:
        batches += 1
    batches = max(1, batches)
    epoch, number = divmod(step, batches)
    order = _permutation(len(sentences), seed, epoch)
    start = size * number
    end = start + size
    if number == batches - 1:
        end = len(order)
    return [sentences[index] for index in order[start:end]]


@lru_cache(maxsize=1)  # shuffling a million sentences takes longer than a step
def _permutation(n: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(n)


# ---------------------------------------------------------------- STS-B dev


def dev_point(
    encoder: Encoder,
    pooler: str,
    dev: Pairs | None,
    precision: Precision,
    added: Sequence[Encoder] = (),
) -> dict[str, float]:
    """Score an encoder on STS-B dev.

    Args:
        added: encoders whose vectors are added.

    Returns:
        `spearman` of the cosines with the grades, `alignment` of the pairs graded above 4, and
        `uniformity` over all distinct vectors.
    """
    assert dev is not None
    evaluation = Evaluation(precision=precision)
    if encoder.device.type == "cuda":
        evaluation = Evaluation(precision=precision, batch_size=512)
    model = SentenceEncoder(encoder, pooler, evaluation=evaluation, added=added)

    # Embed every distinct sentence once: first the left side, then sentences of the right side
    # only. These are the batches that an evaluation of STS-B makes, too.
    left = list(dict.fromkeys(dev.left))
    seen = set(left)
    only_right = [sentence for sentence in dict.fromkeys(dev.right) if sentence not in seen]
    parts = []
    for sentences in (left, only_right):
        if sentences:
            parts.append(model.on_device(model.token_ids(sentences)))
    vectors = torch.cat(parts)
    row_of = {sentence: row for row, sentence in enumerate([*left, *only_right])}

    def vectors_of(sentences: Sequence[str]) -> torch.Tensor:
        rows = torch.tensor([row_of[sentence] for sentence in sentences])
        return vectors[to_device(rows, vectors.device)]

    cosines = metrics.cosine(vectors_of(dev.left), vectors_of(dev.right))
    check_finite(cosines)  # a cosine is not finite if a vector is not
    close_pairs = np.flatnonzero(dev.gold > 4)
    close_left = vectors_of([dev.left[pair] for pair in close_pairs])
    close_right = vectors_of([dev.right[pair] for pair in close_pairs])
    return {
        "spearman": metrics.spearman(cosines, dev.gold),
        "alignment": metrics.alignment(close_left, close_right),
        "uniformity": metrics.uniformity(torch.unique(vectors, dim=0)),
    }
