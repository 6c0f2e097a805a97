"""One planned run from start to end, as a job of the workflow does it: train it, score it, publish its scores."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from csebench.base import gpus
from csebench.base.data_root import DataRoot
from csebench.base.processes import is_distributed, is_main_process
from csebench.base.progress import Progress
from csebench.base.runs import REPORT, finish, is_done, lock_run
from csebench.plan import catalog, recipe, targets
from csebench.plan.declarations import Scale
from csebench.plan.registry import protocol
from csebench.plan.spec import Spec
from csebench.plan.where_data_is import from_hub, require_files
from csebench.score.prune import prune


def work(
    run_id: str,
    scale_name: str,
    processes: int = 1,
    runs_per_gpu: int = 1,
    only: list[str] | None = None,
    chunk_size: int | None = None,
) -> None:
    """Train a planned run and score it by what pages show. The run is done when it is trained: an evaluator that
    fails leaves its reason, and the other scores are made (`publish` tries again, and fails). While another process
    works on the run, waits for it, and then does what is left.

    Args:
        only: evaluators that the pages show that are wanted; None: those of every page of the scale.
        processes: that share every batch, each on a GPU of its own.
        runs_per_gpu: runs that may be on one GPU at a time.
        chunk_size: sentences that an encoder in training has in memory at a time; None: the batch.

    Raises:
        BadInput: no page of the scale needs the run, or its data is missing.
        RunFailed: training failed.
    """
    for evaluator in only or ():
        protocol(evaluator)  # refuses an unknown name
    spec, scale = targets.run(run_id, scale_name), catalog.scale(scale_name)  # refuses before anything is waited for
    evaluators = [e for e in sorted(targets.evaluators(scale_name)[run_id]) if only is None or e in only]
    folder = catalog.RUNS / run_id
    if not (folder / "model" / REPORT).exists():
        require_files(recipe.training_files(spec, scale), scale)
    with lock_run(folder):
        if (folder / "model" / REPORT).exists():  # only a missing score waits for a GPU
            return train_and_score(spec, scale, evaluators, runs_per_gpu, chunk_size)
        with gpus.acquire_gpus(max(1, processes), runs_per_gpu):
            if processes > 1 and not is_distributed():
                torchrun = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
                command = [sys.executable, "-m", *torchrun, "csebench", "work", run_id, "--scale", scale_name]
                command += [] if only is None else ["--evaluators", ",".join(only)]
                command += [] if chunk_size is None else ["--chunk-size", str(chunk_size)]
                os.execv(sys.executable, command)
            return train_and_score(spec, scale, evaluators, runs_per_gpu, chunk_size)


def train_and_score(
    spec: Spec, scale: Scale, evaluators: list[str], runs_per_gpu: int, chunk_size: int | None = None
) -> None:
    folder, data_root = catalog.RUNS / spec.run_id, catalog.data_root(scale)
    with Progress(folder, spec.run_id):
        from csebench.score.evaluate import evaluate_run, has_data

        if is_done(folder, spec):  # then torch need not be imported
            finish(folder)
        else:
            from csebench.train.run import train

            corpus, positives = recipe.corpus_path(spec, scale), recipe.positives_path(spec)
            train(spec, folder, corpus, data_root, positives=positives, chunk_size=chunk_size)
        if is_main_process():
            ready = [evaluator for evaluator in in_order(evaluators, data_root) if has_data(evaluator, data_root)]
            evaluate_run(
                folder, ready, data_root, scale.evaluation, runs_per_gpu, keep_going=True, threads=spec.threads
            )


def in_order(evaluators: list[str], data_root: Path | DataRoot) -> list[str]:
    """What reads the data root, what declares itself first before the rest; then what has a large corpus of its own;
    last what comes from a hub: the surest and cheapest scores are there before another can fail."""

    def rank(evaluator: str) -> tuple:
        wanted = protocol(evaluator)
        return (from_hub(wanted, data_root), wanted.fetched is not None, not wanted.declaration.first, evaluator)

    return sorted(evaluators, key=rank)


def publish(run_id: str, evaluator: str, scale_name: str) -> Path:
    """Put the scores of a finished run into results/; returns the file. Where the scale keeps only scores, the run's
    last score ends with its model deleted."""
    from csebench.score.evaluate import publish as write_scores

    protocol(evaluator)  # refuses an unknown name
    spec, scale = targets.run(run_id, scale_name), catalog.scale(scale_name)
    out = targets.score_path(run_id, evaluator, scale_name)
    write_scores(catalog.RUNS / run_id, evaluator, catalog.data_root(scale), scale.evaluation, out, spec.threads)
    if scale.keep == "scores":
        prune(run_id, scale_name)
    return out
