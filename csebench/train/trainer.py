"""Training: one loop for every method. `train` leaves a finished model, or nothing that looks like one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from csebench.base.errors import BadInput, RunFailed, Stopped
from csebench.base.progress import Progress
from csebench.base.run_dir import CHECKPOINT, UNFINISHED
from csebench.model import metrics
from csebench.model.encoder import Encoder
from csebench.model.sentence_encoder import SentenceEncoder
from csebench.model.tokens import IN_MEMORY, Tokens
from csebench.plan.registry import COMPONENTS, load
from csebench.plan.schema import Evaluation
from csebench.plan.spec import Spec
from csebench.train import parallel

LOG_EVERY = 10  # steps between readings of the loss (a reading waits for the GPU)
CHECKPOINT_SECONDS = 60


def fit(
    spec: Spec,
    out: Path,
    encoder: Encoder,
    sentences: Sequence,
    dev,
    checkpoint_seconds: float,
    progress: Progress,
    stop: threading.Event,
):
    """The training loop: leaves `encoder` at its best on STS-B dev (first best wins ties).

    Returns:
        the report, and the modules that the method exports beside its encoder.
    """
    device = encoder.device
    torch.manual_seed(spec.seed)
    plugins = {name: component.params for name, component in spec.components.items()}
    state, optimizer = assemble(spec.method, encoder, spec.params, plugins)
    method, components = state["method"], state["components"]
    p = method.p
    size, least = method.sentences_per_step(), 2  # sentences of a batch
    if parallel.count() > 1 and size < (least := parallel.count() * method.group):
        raise BadInput(f"{spec.run_id}: {parallel.count()} processes cannot share a batch of {size} sentences.")
    use_tokens(state, sentences, p.steps * size)
    step, curve, losses, best = 0, [], [], {"score": -np.inf}
    pending = []  # losses not yet read from the device
    checkpoint = out / CHECKPOINT
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device, weights_only=False)
        state.load_state_dict(saved["state"])
        optimizer.load_state_dict(saved["optimizer"])
        step, curve, losses, best = saved["step"], saved["curve"], saved["losses"], saved["best"]
        pending = saved.get("pending", [])  # there is none in what an older version left
        if "weights" in best:
            best["weights"] = {k: v.cpu() for k, v in best["weights"].items()}
        torch.set_rng_state(saved["rng"].cpu())
        if device.type == "cuda":
            torch.cuda.set_rng_state(saved["cuda_rng"].cpu())
        del saved  # a second copy of all weights
    if parallel.rank() > 0:  # each process has its own dropout masks
        torch.manual_seed(spec.seed + 1_000_003 * parallel.rank() + step)
    first, started, last_saved = step, time.perf_counter(), time.perf_counter()

    progress.start(step, p.steps, torch.cuda.get_device_name(device) if device.type == "cuda" else None)
    while step < p.steps:
        for group in optimizer.param_groups:
            group["lr"] = p.learning_rate * method.learning_rate_factor(step)
        batch = batch_at(step, sentences, size, spec.seed, least)
        loss = optimise(method, components, optimizer, parallel.share(batch, method.group), spec.precision)
        step += 1
        pending.append(loss)

        evaluate = step % p.evaluate_every == 0 or step == p.steps
        if evaluate or step % LOG_EVERY == 0:
            values = parallel.mean(torch.stack(pending)).tolist()
            for at, value in enumerate(values, step - len(values) + 1):
                if not np.isfinite(value):
                    checkpoint.unlink(missing_ok=True)
                    raise RunFailed(
                        f"{spec.run_id}: loss is {value} at step {at} (learning rate {p.learning_rate:g});"
                        " the run is stopped. Lower the learning rate or check the loss."
                    )
            losses.append([step, float(np.mean(values))])
            pending.clear()
        stopped = stop.is_set()
        if parallel.count() > 1:  # all stop together, where losses are read
            stopped = not pending and parallel.any_of(stopped, device)
        if parallel.rank() > 0 and not stopped:
            continue
        if evaluate and parallel.rank() == 0:
            for number, candidate in enumerate(method.encoders()):
                point = dev_point(candidate, p.pooler, dev, spec.precision)
                point = {k: v if np.isfinite(v) else None for k, v in point.items()}  # of constant vectors
                curve.append({"step": step, "encoder": number, "loss": losses[-1][1], **point})
                if point["spearman"] is not None and (method.keeps_last or point["spearman"] > best["score"]):
                    weights = {k: v.detach().cpu().clone() for k, v in candidate.model.state_dict().items()}
                    best = {"score": point["spearman"], "step": step, "encoder": number, "weights": weights}
        progress.step(step, losses[-1][1] if losses else None, best["score"] if "weights" in best else None)
        due = time.perf_counter() - last_saved >= checkpoint_seconds
        if parallel.rank() == 0 and (stopped or (due and not pending and step < p.steps)):
            saved = {"state": state.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
            saved |= {"step": step, "curve": curve, "losses": losses, "pending": pending, "best": best}
            if device.type == "cuda":
                saved["cuda_rng"] = torch.cuda.get_rng_state()
            torch.save(saved, out / UNFINISHED)
            os.replace(out / UNFINISHED, checkpoint)
            last_saved = time.perf_counter()
        if stopped:
            raise Stopped(f"{spec.run_id}: stopped by SIGTERM after step {step}; the next try goes on from there.")
    if parallel.rank() > 0:
        return {}, {}
    if "weights" not in best:
        raise RunFailed(f"{spec.run_id}: STS-B dev gave no score at any step (constant embeddings?).")
    encoder.model.load_state_dict(best["weights"])
    report = {"curve": curve, "losses": losses, "best_step": best["step"], "best_encoder": best["encoder"]}
    report |= {"best_dev": best["score"], "steps": step, "resumed_at": first or None, "sentences": len(sentences)}
    report |= {"processes": parallel.count()}
    seconds = time.perf_counter() - started
    return report | {"seconds_per_step": seconds / max(1, step - first)}, method.exported()


def assemble(name: str, encoder: Encoder, params: dict, plugins: dict[str, dict]):
    """A method with its components, ready to make steps, and the optimiser of what they train; compiled for a GPU."""
    method = load(name)(encoder, params)
    components = torch.nn.ModuleList(load(plugin, COMPONENTS)(method, own) for plugin, own in plugins.items())
    state = torch.nn.ModuleDict({"method": method, "components": components}).to(encoder.device).train()
    if encoder.device.type == "cuda":
        for module in encoders(state):
            module.compile_layers()
    return state, make_optimizer([w for w in state.parameters() if w.requires_grad], method.p)


def optimise(method, components, optimizer, batch: list, precision: str) -> torch.Tensor:
    """One step: views, loss and terms, gradients clipped, the optimiser, and what follows it. Returns the loss."""
    autocast = torch.autocast(method.encoder.device.type, torch.bfloat16, enabled=precision == "bf16")
    method.queue = next((c.queue for c in components if c.queue is not None), None)
    with autocast:
        one, two = method.views(batch)
        loss = method.loss(*method.gathered(one, two))
        for component in components:
            loss = loss + component.loss(method, one, two)
    loss.backward()
    parallel.average_gradients(optimizer.param_groups[0]["params"])
    torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], method.p.clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with autocast:
        method.after_step()
        for component in components:
            component.after_step(method, one)
    return loss.detach()


def encoders(state: torch.nn.Module) -> list[Encoder]:
    """Those of a method and its components: trained, momentum, auxiliary."""
    return [module for module in state.modules() if isinstance(module, Encoder)]


def use_tokens(state: torch.nn.Module, sentences: Sequence, seen: int) -> None:
    """Let the encoders of a run share the token ids of its sentences.

    Args:
        seen: how many sentences the run shows, with repetition.
    """
    texts = sentences if isinstance(sentences[0], str) else [text for row in sentences for text in row]
    tokens = Tokens(state["method"].encoder.tokenizer, state["method"].encoder.longest)
    if seen >= len(texts) > IN_MEMORY:
        tokens.keep(texts)
    for encoder in encoders(state):
        encoder.tokens = tokens


def make_optimizer(parameters, p):
    if p.optimizer == "rmsprop":  # TensorFlow's defaults, which CT's code leaves in place
        return torch.optim.RMSprop(parameters, lr=p.learning_rate, alpha=0.9, eps=1e-7, weight_decay=p.weight_decay)
    return torch.optim.AdamW(parameters, lr=p.learning_rate, weight_decay=p.weight_decay, fused=True)


def batch_at(step: int, sentences: Sequence, size: int, seed: int, least: int = 2) -> list:
    """The batch of a step: epochs are permutations by seed, the last, smaller batch of an epoch is kept.

    A function of the step alone, so that resuming needs no state. A last batch of fewer than `least` sentences (one
    has no negatives) joins the batch before it.
    """
    per_epoch = max(1, len(sentences) // size if len(sentences) % size < least else -(-len(sentences) // size))
    epoch, number = divmod(step, per_epoch)
    order = _permutation(len(sentences), seed, epoch)
    end = len(order) if number == per_epoch - 1 else (number + 1) * size
    return [sentences[i] for i in order[number * size : end]]


_last_permutation = {}


def _permutation(n: int, seed: int, epoch: int) -> np.ndarray:
    """Remembers the last one: a million sentences take longer to shuffle than a step takes."""
    if (n, seed, epoch) not in _last_permutation:
        _last_permutation.clear()
        _last_permutation[n, seed, epoch] = np.random.default_rng([seed, epoch]).permutation(n)
    return _last_permutation[n, seed, epoch]


def dev_point(encoder: Encoder, pooler: str, dev, precision: str) -> dict:
    """STS-B dev: Spearman of cosine, alignment of pairs graded above 4, uniformity over all sentences."""
    settings = Evaluation(precision=precision, **({"batch_size": 512} if encoder.device.type == "cuda" else {}))
    left, right = SentenceEncoder(encoder, pooler, evaluation=settings).pairs(dev)
    close = dev.gold > 4
    return {
        "spearman": metrics.spearman(metrics.cosine(left, right), dev.gold),
        "alignment": metrics.alignment(left[close], right[close]),
        "uniformity": metrics.uniformity(np.unique(np.concatenate([left, right]), axis=0)),
    }
