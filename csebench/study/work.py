"""Make one run: train it from a spec, or train and score it as a job of the workflow does.

This module skips a run that is made already, and holds the lock of a run while it is made. The
trials of a search are runs, too: csebench/study/search.py chooses them, and makes each with
`train_and_score`.
"""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from csebench.base.errors import BadInput, RunFailed
from csebench.base.gpus import acquire_gpus
from csebench.base.models import REPORT
from csebench.base.processes import is_distributed, is_main_process
from csebench.base.runs import (
    Progress,
    finish,
    is_done,
    read_progress,
    read_report,
    work_on,
)
from csebench.base.supervision import announce_end
from csebench.plan import recipe, targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import no_file
from csebench.plan.catalog.registry import protocol
from csebench.plan.schema.declarations import Scale
from csebench.plan.schema.spec import Spec
from csebench.score.prune import prune
from csebench.train.inputs import Inputs, read_corpus_of, read_inputs


def work(
    run_id: str,
    scale_name: str,
    only: list[str] | None,
    processes: int,
    runs_per_gpu: int,
    chunk_size: int | None = None,
    attempt: int = 1,
) -> None:
    """Train a planned run, and score it with the evaluators that pages show.

    The run is done when it is trained. If an evaluator fails, its reason is kept and the others
    still score. `publish_planned` later calls the failed evaluator again and reports its error. If
    another process works on the run, this process waits for it, then does what is left.

    Args:
        only: evaluators to score with, if pages show them. None means all that pages show.
        processes: number of processes that share every batch, each on a GPU of its own. 0 means
            one process, on a GPU if there is one.
        runs_per_gpu: how many runs may use one GPU at a time.
        chunk_size: how many sentences the encoder holds in memory at a time during training. None
            means the whole batch.
        attempt: number of this attempt of the workflow. From the second on, a run that failed
            because of its own settings is not repeated.

    Raises:
        BadInput: no page of the scale needs the run, an evaluator is unknown, or data is missing.
        RunFailed: training failed.
    """
    # refuse bad input before waiting for a GPU or for another process
    for evaluator in only or ():
        protocol(evaluator)
    spec = targets.run(run_id, scale_name)
    scale = catalog.scale(scale_name)
    evaluators = sorted(targets.evaluators(run_id, scale_name))
    if only is not None:
        evaluators = [evaluator for evaluator in evaluators if evaluator in only]
    folder = catalog.RUNS / run_id
    if attempt > 1:
        refuse_final_failure(run_id)

    trained_model = folder / "model" / REPORT
    if not trained_model.exists():
        check_training_files(spec, scale)
        acquire_gpus(processes, runs_per_gpu, memory_of_other_seeds(spec, scale_name))
    # lock the run after the GPU: the process that holds the run then never waits for a GPU
    with work_on(folder, spec, run_id) as progress:
        if not trained_model.exists() and processes > 1 and not is_distributed():
            become_torchrun(run_id, scale_name, only, processes, chunk_size)
        train_and_score(spec, scale, progress, evaluators, chunk_size)


def refuse_final_failure(run_id: str) -> None:
    """Raise RunFailed if the run failed in a way that another attempt would only repeat."""
    progress = read_progress(catalog.RUNS / run_id)
    if progress is not None and progress["is_final"]:
        raise RunFailed(progress["message"])


def check_training_files(spec: Spec, scale: Scale) -> None:
    """Raise BadInput if a file that training reads is missing."""
    for name in recipe.training_files(spec, scale):
        if not (catalog.data_root(scale) / name).exists():
            raise BadInput(no_file(name, scale))


def memory_of_other_seeds(spec: Spec, scale_name: str) -> int:
    """Find how much GPU memory the same run with other seeds allocated at most.

    Returns:
        MiB, from the reports of these runs. 0 if none of them ran on a GPU.
    """
    peak_memory = 0
    for run_id, other in targets.runs_including(spec.run_id, scale_name).items():
        if other.cell_id != spec.cell_id:
            continue
        report = read_report(catalog.RUNS / run_id)
        if report is not None:
            used = report.get("provenance", {}).get("peak_gpu_mb") or 0
            peak_memory = max(peak_memory, used)
    return peak_memory


def become_torchrun(
    run_id: str, scale_name: str, only: list[str] | None, processes: int, chunk_size: int | None
) -> None:
    """Replace this process by torchrun, which starts `csebench work` on several GPUs.

    The locks of the GPUs and of the run stay held.
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={processes}", "-m"]
    command += ["csebench", "work", run_id, "--scale", scale_name]
    if only is not None:
        command += ["--evaluators", ",".join(only)]
    if chunk_size is not None:
        command += ["--chunk-size", str(chunk_size)]
    # torchrun never announces its end, so this process does. The exit code of torchrun can be
    # trusted, because every process that it starts has a supervisor of its own.
    announce_end()
    os.execv(sys.executable, command)


def train_and_score(
    spec: Spec,
    scale: Scale,
    progress: Progress,
    evaluators: Iterable[str] = (),
    chunk_size: int | None = None,
) -> None:
    """Train a run, then score it with the evaluators whose data is there.

    A process that torchrun started only trains. If it also scored, the GPUs of the other processes
    would idle. `publish_planned` makes the scores later, on one GPU.

    Args:
        progress: of the run, whose lock this process holds.
    """
    data_root = catalog.data_root(scale)

    def planned_inputs() -> Inputs:
        corpus = read_corpus_of(spec, recipe.corpus_path(spec, scale))
        return read_inputs(spec, corpus, data_root, recipe.positives_path(spec))

    make_model_once(spec, planned_inputs, progress, chunk_size)
    if not is_distributed():
        from csebench.score.evaluate import evaluate_run, has_data

        ready = [evaluator for evaluator in evaluators if has_data(evaluator, data_root)]
        evaluate_run(progress.folder, ready, data_root, scale.evaluation, keep_going=True)


def make_model_once(
    spec: Spec, inputs: Callable[[], Inputs], progress: Progress, chunk_size: int | None
) -> None:
    """Make the model of a run, if its folder has none, and mark the run as done.

    Args:
        inputs: reads the inputs. It is called only if the model is missing.
        progress: of the run, whose lock this process holds.
    """
    if not is_done(progress.folder):
        ready_inputs = inputs()
        # Imported here, so that `csebench status` shows the run while torch loads for seconds.
        from csebench.train.run import make_model

        make_model(spec, ready_inputs, progress, chunk_size)
    if is_main_process():
        finish(progress.folder)


def publish_planned(run_id: str, evaluator: str, scale_name: str) -> None:
    """Put the scores of a finished run into results/.

    If the scale keeps only scores, the model is deleted after the last score.

    Raises:
        BadInput: no page of the scale needs the run, or the evaluator is unknown.
    """
    from csebench.score.evaluate import publish_scores as write_scores

    targets.run(run_id, scale_name)  # refuses an unknown run
    scale = catalog.scale(scale_name)
    out = targets.score_file(run_id, evaluator, scale_name)  # refuses an unknown evaluator
    write_scores(catalog.RUNS / run_id, evaluator, catalog.data_root(scale), scale.evaluation, out)
    if scale.keep == "scores":
        prune(run_id, scale_name)


def train_spec(
    spec: Spec,
    out: Path,
    inputs: Inputs,
    chunk_size: int | None = None,
    log_to: str | None = None,
) -> None:
    """Train a run that no page needs.

    A finished model in `out` stays as it is. If another process trains the run, this process waits
    until the model is there.

    Args:
        out: folder of the run.
        chunk_size: see csebench/train/trainer.py: fit.
        log_to: tracker that shows the run while it trains (csebench/base/trackers.py).
    """
    acquire_gpus()
    with work_on(out, spec, spec.run_id, log_to) as progress:
        make_model_once(spec, lambda: inputs, progress, chunk_size)
