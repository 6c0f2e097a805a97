"""Training of a method: its steps, evaluations on STS-B dev, the best weights. The loop:
csebench/train/loop.py."""

import contextlib
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from csebench.base.errors import BadInput, OutOfMemory, RunFailed, Untrainable, shortened
from csebench.base.processes import rank, stop_signals
from csebench.base.runs import Progress
from csebench.data.sts import Pairs
from csebench.model import metrics
from csebench.model.embedder import check_finite
from csebench.model.encoder import Encoder
from csebench.model.layers import Layers, to_device
from csebench.model.sentence_encoder import SentenceEncoder
from csebench.plan.catalog.registry import COMPONENTS, METHODS, declaration, load
from csebench.plan.schema.declarations import Evaluation, Precision
from csebench.plan.schema.spec import Spec
from csebench.train import checkpoint, in_place, parallel
from csebench.train.checkpoint import TrainState
from csebench.train.foreign import ForeignCode
from csebench.train.inputs import Inputs
from csebench.train.loop import run_steps
from csebench.train.method import Method, Views

VANISHED = 1e-4  # a loss below this share of its start trains next to nothing


class TrainingTask:
    """A method with its components, as a task of the loop."""

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
        self.method, self.components, self.optimizer = method, modules["components"], optimizer
        self.name, self.seed = spec.run_id, spec.seed_of("order")
        self.foreign = foreign
        self.precision: Precision = spec.precision
        self.sentences, self.dev = inputs.sentences, inputs.dev
        self.p, self.device = method.p, method.encoder.device
        processes, size = parallel.world_size(), method.sentences_per_step()
        self.least = 2 if processes == 1 else processes * method.group  # sentences of a batch
        if processes > 1 and size < self.least:
            raise BadInput(
                f"{self.name}: {processes} processes cannot share a batch of {size} sentences."
            )

    def make_step(self, step: int) -> torch.Tensor:
        batch = batch_at(
            step, self.sentences, self.method.sentences_per_step(), self.seed, self.least
        )
        batch = parallel.shard(batch, self.method.group)
        try:
            with self.foreign:
                return optimise(
                    self.method,
                    self.components,
                    self.optimizer,
                    batch,
                    self.precision,
                    check=step == 0,
                )
        except torch.OutOfMemoryError:
            pass  # leave the handler before probing: its traceback keeps the tensors of the step
        raise self.memory_error(batch)

    def memory_error(self, batch: list) -> RunFailed:
        """Return the error for a step that does not fit in GPU memory, with what would fit."""
        problem = f"{self.name}: {len(batch)} sentences do not fit in the memory of the GPU"
        if self.is_memory_shared():
            return RunFailed(f"{problem}, of which other processes have a part; another try may.")
        size = self.fitting_chunk(batch)
        if not size:
            return OutOfMemory(f"{problem}; take a smaller `batch_size` or `max_length`.")
        to_snakemake = f"to Snakemake: --set-resources train:chunk_size={size}"
        if parallel.world_size() == 1:
            return OutOfMemory(f"{problem}; give --chunk-size {size}, which fits ({to_snakemake}).")
        return OutOfMemory(f"{problem}; give --chunk-size {size} ({to_snakemake}).")

    def is_memory_shared(self) -> bool:
        """Whether other processes hold more of the GPU's memory than CUDA itself needs."""
        if self.device.type != "cuda":
            return False
        free, whole = torch.cuda.mem_get_info()
        return whole - free - torch.cuda.memory_reserved() > whole / 10

    def fitting_chunk(self, batch: list) -> int:
        """The largest chunk size, by halves, with which a step fits in memory; 0 where none
        does. It is tried, as the run has ended, unless several processes would have to."""
        size = self.method.encoder.chunk_size // 2 if self.method.encoder.chunk_size else len(batch)
        while size and parallel.world_size() == 1:
            self.optimizer.zero_grad()
            torch.cuda.empty_cache()
            with contextlib.suppress(torch.OutOfMemoryError):
                use_chunks(nn.ModuleList([self.method, self.components]), size)
                optimise(self.method, self.components, self.optimizer, batch, self.precision)
                break
            size //= 2
        return size

    def evaluate(self, state: TrainState) -> None:
        """Every encoder of the method on STS-B dev; of all steps, or of the last, the first of
        the best is kept."""
        keeps_last = self.method.keeps_last or self.p.selection == "last"
        about = {"step": state.step, "loss": state.losses[-1][1]}
        with self.foreign:
            learned = {name: float(value) for name, value in self.method.learned().items()}
        about |= {"learned": learned} if learned else {}
        for number, encoder in enumerate(self.method.encoders()):
            point = dev_point(encoder, self.p.pooler, self.dev, self.precision)
            # of equal vectors
            point = {key: value if np.isfinite(value) else None for key, value in point.items()}
            state.curve.append({**about, "encoder": number, **point})
            score = point["spearman"]
            newer = keeps_last and state.step > state.best.get("step", 0)
            if score is not None and (newer or score > state.best["score"]):
                weights = {
                    key: v.detach().to("cpu", copy=True)
                    for key, v in encoder.model.state_dict().items()
                }
                state.best = {
                    "score": score,
                    "step": state.step,
                    "encoder": number,
                    "weights": weights,
                }


def fit(
    spec: Spec,
    out: Path,
    encoder: Encoder,
    inputs: Inputs,
    progress: Progress,
    chunk_size: int | None = None,
) -> tuple[dict, dict[str, nn.Module]]:
    """Train; leaves `encoder` at its best on STS-B dev. Returns the report, and what the method
    exports beside it.

    Raises BadInput where the loss is no scalar that trains, Untrainable where a loss or the vectors
    are not finite, there is no gradient, or STS-B dev gave no score.

    Args:
        chunk_size: sentences that an encoder has in memory at a time; None: the batch. See
        csebench/model/chunks.py.
    """
    plugins = {name: component.params for name, component in spec.components.items()}
    foreign = ForeignCode(spec.run_id)
    with stop_signals() as received:
        # a file is imported once in a process: what it draws or seeds then is no part of a run
        with foreign, torch.random.fork_rng(devices=[]):
            load_code(spec)
        foreign.seed(spec.seed_of("head"))
        with foreign:
            modules, optimizer = assemble(spec.method, encoder, spec.params, plugins, chunk_size)
        if spec.seeds:  # else dropout goes on with the generator that made the new weights
            foreign.seed(spec.seed_of("dropout"))
        task = TrainingTask(spec, modules, optimizer, inputs, foreign)
        state = TrainState(modules, optimizer)
        checkpoint.resume(state, out, task.name)
        first = state.step
        if rank() > 0:  # each process has its own dropout masks
            foreign.seed(spec.seed_of("dropout") + 1_000_003 * rank() + first)
        foreign.accept_seeds()  # those of the checkpoint
        seconds = run_steps(task, state, out, progress, received)
    if rank() > 0:
        return {}, {}
    best = state.best
    if "weights" not in best:
        raise Untrainable(
            f"{spec.run_id}: STS-B dev gave no score at any step (constant embeddings?)."
        )
    encoder.model.load_state_dict(best["weights"])
    report = {
        "curve": state.curve,
        "losses": state.losses,
        "steps": state.step,
        "resumed_at": first or None,
    }
    report |= {
        "best_step": best["step"],
        "best_encoder": best["encoder"],
        "best_dev": best["score"],
    }
    report |= {
        "sentences": len(inputs.sentences),
        "processes": parallel.world_size(),
        "seconds_per_step": seconds,
    }
    if has_vanished(state.losses):
        report["loss_vanished"] = True
        print(vanished_text(spec.run_id, state.losses), file=sys.stderr, flush=True)
    with foreign:
        return report, task.method.exported()


def has_vanished(losses: list[list[float]]) -> bool:
    """Whether a loss is 0, or below VANISHED of its start, through a run.

    Args:
        losses: [step, mean loss since the reading before] of every reading. The first is the start.
    """
    (_, start), *later = losses
    if not later:
        return start == 0
    return all(abs(loss) <= VANISHED * abs(start) for _, loss in later)


def vanished_text(run_id: str, losses: list[list[float]]) -> str:
    """Word the notice for a run whose loss `has_vanished`."""
    (first_step, start), *_ = losses
    if start == 0:
        found = "the loss is 0 in all steps"
    else:
        found = (
            f"the loss is {start:.3g} up to step {first_step} and below {VANISHED:g} of that from"
            " then on"
        )
    return (
        f"{run_id}: {found}: training changes next to nothing. Check the loss, or raise its"
        " temperature."
    )


# ---------------------------------------------------------------- a step


def load_code(spec: Spec) -> None:
    """Import the files of the method and its components."""
    load(spec.method)
    for name in spec.components:
        load(name, COMPONENTS)


def assemble(
    name: str,
    encoder: Encoder,
    params: dict,
    plugins: dict[str, dict],
    chunk_size: int | None = None,
) -> tuple[nn.ModuleDict, torch.optim.Optimizer]:
    """A method with its components, ready to make steps, and the optimiser of what they train;
    compiled for a GPU."""
    method = load(name)(encoder, declaration(name).unstated | params)
    if not isinstance(method, Method):
        file = f"{METHODS / name}.py"
        raise BadInput(
            f"{file}: class Method: must extend Method of csebench/train/method.py, or a class that"
            " does."
        )
    components = nn.ModuleList(
        load(plugin, COMPONENTS)(method, values) for plugin, values in plugins.items()
    )
    modules = nn.ModuleDict({"method": method, "components": components}).to(encoder.device).train()
    use_chunks(modules, chunk_size)
    known_ids = {}  # of the run's sentences, which all encoders share: trained, momentum, auxiliary
    for module in (module for module in modules.modules() if isinstance(module, Encoder)):
        module.known_ids = known_ids
        if module.device.type == "cuda":
            module.compile_layers()
    return modules, make_optimizer([w for w in modules.parameters() if w.requires_grad], method)


def use_chunks(modules: nn.Module, size: int | None) -> None:
    for module in modules.modules():
        if isinstance(module, Encoder | Layers):
            module.chunk_size = size


def optimise(
    method, components, optimizer, batch: list, precision: str, check: bool = False
) -> torch.Tensor:
    """One step: views, loss and terms, gradients clipped, the optimiser, and what follows it.
    Returns the loss; with `check` a loss, term or gradient that cannot train is refused."""
    loss, views = forward(method, components, batch, precision, check)
    try:
        with parallel.averaged_gradients([method, *components]):
            loss.backward()
    except RuntimeError as error:
        if not in_place.is_changed_in_place(error) or parallel.world_size() > 1:
            raise
        raise in_place.explained(
            error, lambda: forward(method, components, batch, precision)[0]
        ) from error
    if check:
        check_gradient(method, loss)
    weights = [w for group in optimizer.param_groups for w in group["params"]]
    torch.nn.utils.clip_grad_norm_(weights, method.p.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with autocast(method, precision):
        method.after_step()
        for component in components:
            component.after_step(method, views)
    return loss.detach()


def forward(
    method, components, batch: list, precision: str, check: bool = False
) -> tuple[torch.Tensor, Views]:
    """The loss of a batch, with the terms of components, and the views that it is computed from."""
    with autocast(method, precision):
        views = method.views(batch)
        compared = views.gathered()
        if queues := [component.queue for component in components if component.queue is not None]:
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
    """The context in which a method computes: bf16 where the run's precision says so."""
    return torch.autocast(method.encoder.device.type, torch.bfloat16, enabled=precision == "bf16")


def check_scalar(value, module: nn.Module, call: str, may_be_zero: bool = False) -> None:
    """Raises BadInput, with the file of a method or component, where what it gives is no scalar
    with a gradient, nor, where it `may_be_zero`, a constant 0, as of a component with nothing to
    compare yet."""
    is_tensor, has_gradient = (
        isinstance(value, torch.Tensor),
        getattr(value, "requires_grad", False),
    )
    is_scalar = value.ndim == 0 if is_tensor else isinstance(value, int | float)
    if is_scalar and (has_gradient or (may_be_zero and value == 0)):
        return
    kind = f"a tensor of shape {tuple(value.shape)}" if is_tensor else shortened(repr(value), 60)
    raise BadInput(
        f"{file_of(module)}: {call} gives {kind}{'' if has_gradient else ' without gradient'},"
        " expected a scalar with one. Compute it from views.z1 and views.z2, without detach() or"
        " no_grad()."
    )


def check_gradient(method, loss: torch.Tensor) -> None:
    """Raises Untrainable where loss and terms have no gradient in the encoders that are trained.
    A loss of 0 may have none: InfoNCE without negatives at a low temperature has nothing left to
    learn."""
    weights = [w for encoder in method.encoders() for w in encoder.parameters() if w.requires_grad]
    if weights and loss != 0 and not any(w.grad is not None and w.grad.any() for w in weights):
        raise Untrainable(
            f"{file_of(method)}: the gradient of loss(views) is zero in all weights of the encoder:"
            " training would change nothing. Compute the loss from views.z1 and views.z2, without"
            " detach() or no_grad()."
        )


def file_of(module: nn.Module) -> str:
    """`methods/simcse.py`"""
    return f"{type(module).__module__.replace('.', '/')}.py"


def make_optimizer(weights: list[nn.Parameter], method) -> torch.optim.Optimizer:
    """As the method asks; weight decay leaves out biases and LayerNorm, as in transformers,
    unless it `decays_all`."""
    p = method.p
    groups = [{"params": weights}]
    # what has one dimension: biases, and weights of normalisation
    if p.weight_decay and not method.decays_all:
        decayed, rest = [w for w in weights if w.ndim > 1], [w for w in weights if w.ndim <= 1]
        groups = [{"params": decayed}, {"params": rest, "weight_decay": 0.0}]
    if p.optimizer == "rmsprop":  # TensorFlow's defaults, which CT's code leaves in place
        return torch.optim.RMSprop(
            groups, lr=p.learning_rate, alpha=0.9, eps=1e-7, weight_decay=p.weight_decay
        )
    return torch.optim.AdamW(groups, lr=p.learning_rate, weight_decay=p.weight_decay, fused=True)


# ---------------------------------------------------------------- batches


def batch_at(step: int, sentences: Sequence, size: int, seed: int, least: int = 2) -> list:
    """The batch of a step: epochs are permutations by seed, the last, smaller batch of an epoch is
    kept.

    A function of the step alone, so that resuming needs no state. A last batch of fewer than
    `least` sentences (one has no negatives) joins the batch before it.
    """
    per_epoch = max(
        1, len(sentences) // size if len(sentences) % size < least else -(-len(sentences) // size)
    )
    epoch, number = divmod(step, per_epoch)
    order = _permutation(len(sentences), seed, epoch)
    end = len(order) if number == per_epoch - 1 else (number + 1) * size
    return [sentences[i] for i in order[number * size : end]]


@lru_cache(maxsize=1)  # a million sentences take longer to shuffle than a step takes
def _permutation(n: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(n)


# ---------------------------------------------------------------- STS-B dev


def dev_point(
    encoder: Encoder, pooler: str, dev: Pairs | None, precision: Precision
) -> dict[str, float]:
    """STS-B dev: Spearman of cosine, alignment of pairs graded above 4, uniformity over all
    sentences."""
    assert dev is not None
    settings = Evaluation(
        precision=precision, **({"batch_size": 512} if encoder.device.type == "cuda" else {})
    )
    model, first = SentenceEncoder(encoder, pooler, evaluation=settings), dict.fromkeys(dev.left)
    second = [sentence for sentence in dict.fromkeys(dev.right) if sentence not in first]
    vectors = torch.cat(
        [model.on_device(model.token_ids(each)) for each in ([*first], second) if each]
    )
    places = {sentence: place for place, sentence in enumerate((*first, *second))}

    def rows(sentences: Sequence[str]) -> torch.Tensor:
        return vectors[to_device(torch.tensor([places[s] for s in sentences]), vectors.device)]

    cosines = metrics.cosine(rows(dev.left), rows(dev.right))
    check_finite(cosines)  # which they are not where a vector is not
    close = np.flatnonzero(dev.gold > 4)
    return {
        "spearman": metrics.spearman(cosines, dev.gold),
        "alignment": metrics.alignment(
            *(rows([side[i] for i in close]) for side in (dev.left, dev.right))
        ),
        "uniformity": metrics.uniformity(torch.unique(vectors, dim=0)),
    }
