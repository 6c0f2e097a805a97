"""A run from a spec, a planned run as a job of the workflow makes it, and the trials of a
search, each an ordinary run in runs/. Which trials, and the file of a search:
csebench/plan/tuning.py."""

import os
import sys
from collections.abc import Iterable

from csebench.base.errors import BadInput, RunFailed
from csebench.base.gpus import acquire_gpus
from csebench.base.models import REPORT
from csebench.base.processes import is_distributed
from csebench.base.runs import (
    Progress,
    lock_run,
    read_progress,
    read_report,
)
from csebench.base.supervision import announce_end
from csebench.plan import recipe, targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import no_file
from csebench.plan.catalog.registry import protocol
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.spec import Spec
from csebench.score.prune import prune


def train_spec(spec: Spec, *inputs) -> None:
    """Train a run that no page needs; arguments as of csebench/train/run.py: train."""
    acquire_gpus()
    from csebench.train.run import train

    train(spec, *inputs)


def work(
    run_id: str,
    scale_name: str,
    only: list[str] | None,
    processes: int,
    runs_per_gpu: int,
    chunk_size: int | None = None,
    attempt: int = 1,
) -> None:
    """Train a planned run and score it by what pages show. The run is done when it is trained: an
    evaluator that fails leaves its reason, and the other scores are made (`publish_planned` tries
    again, and fails). While another process works on the run, waits for it, and then does what is
    left. Raises BadInput where no page of the scale needs the run, or its data is missing;
    RunFailed where training failed.

    Args:
        only: evaluators that the pages show that are wanted; None: those of every page of the
            scale.
        processes: that share every batch, each on a GPU of its own; 0: one, on a GPU if there is
            one.
        runs_per_gpu: that may be on one GPU at a time.
        chunk_size: sentences that an encoder in training has in memory at a time; None: the batch.
        attempt: which try of the workflow this is; a later one repeats no run that its own settings
            ended.
    """
    for evaluator in only or ():
        protocol(evaluator)  # refuses an unknown name
    # refuses before anything is waited for
    spec, scale = targets.run(run_id, scale_name), catalog.scale(scale_name)
    evaluators = sorted(
        e for e in targets.evaluators(scale_name)[run_id] if only is None or e in only
    )
    folder = catalog.RUNS / run_id
    if attempt > 1 and (failed := read_progress(folder)) and failed["is_final"]:
        raise RunFailed(failed["message"])
    trained_model = folder / "model" / REPORT
    if not trained_model.exists():
        for name in recipe.training_files(spec, scale):
            if not (catalog.data_root(scale) / name).exists():
                raise BadInput(no_file(name, scale))
        acquire_gpus(processes, runs_per_gpu, memory_of_other_seeds(spec, scale_name))
    # behind the lock of a GPU, which a process keeps while it waits for a run
    with lock_run(folder):
        if not trained_model.exists() and processes > 1 and not is_distributed():
            torchrun = [
                "torch.distributed.run",
                "--standalone",
                f"--nproc-per-node={processes}",
                "-m",
            ]
            command = [
                sys.executable,
                "-m",
                *torchrun,
                "csebench",
                "work",
                run_id,
                "--scale",
                scale_name,
            ]
            command += [] if only is None else ["--evaluators", ",".join(only)]
            command += [] if chunk_size is None else ["--chunk-size", str(chunk_size)]
            announce_end()  # torchrun's exit code can be trusted: each of its processes is watched
            os.execv(sys.executable, command)
        train_and_score(spec, scale, evaluators, chunk_size)


def memory_of_other_seeds(spec: Spec, scale_name: str) -> int:
    """MiB that the run allocated on a GPU with other seeds, at most, as their reports state; 0
    where none was run."""
    runs = (
        run_id
        for run_id, other in targets.runs(scale_name).items()
        if other.cell_id == spec.cell_id
    )
    reports = (read_report(catalog.RUNS / run_id) for run_id in runs)
    return max(
        (r.get("provenance", {}).get("peak_gpu_mb") or 0 for r in reports if r is not None),
        default=0,
    )


def train_and_score(
    spec: Spec, scale: Scale, evaluators: Iterable[str] = (), chunk_size: int | None = None
) -> None:
    folder, data_root = catalog.RUNS / spec.run_id, catalog.data_root(scale)
    with Progress(folder, spec.run_id):
        from csebench.score.evaluate import evaluate_run, has_data
        from csebench.train.run import train

        corpus, positives = recipe.corpus_path(spec, scale), recipe.positives_path(spec)
        train(spec, folder, corpus, data_root, positives=positives, chunk_size=chunk_size)
        # else the GPUs of all processes would wait: `publish_planned` makes the scores, on one
        if not is_distributed():
            ready = [evaluator for evaluator in evaluators if has_data(evaluator, data_root)]
            evaluate_run(folder, ready, data_root, scale.evaluation, keep_going=True)


def publish_planned(run_id: str, evaluator: str, scale_name: str) -> None:
    """Put the scores of a finished run into results/. After the last, a scale that keeps scores
    deletes the model."""
    from csebench.score.evaluate import publish_scores as write_scores

    # refuses an unknown one, as `score_file` does an unknown evaluator
    targets.run(run_id, scale_name)
    scale = catalog.scale(scale_name)
    out = targets.score_file(run_id, evaluator, scale_name)
    write_scores(catalog.RUNS / run_id, evaluator, catalog.data_root(scale), scale.evaluation, out)
    if scale.keep == "scores":
        prune(run_id, scale_name)


# ---------------------------------------------------------------- the trials of a search
