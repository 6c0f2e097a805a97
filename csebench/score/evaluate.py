"""Score models: run evaluators and write their rows into score JSONs.

`evaluate_model` scores any model once. `evaluate_run` makes the scores of a run and keeps them in
its folder, and `publish_scores` writes the JSON that pages are made from. How a score is measured
is in evaluators/, what a score JSON must state in csebench/score/score_file.py.
"""

import contextlib
import math
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from csebench.base import hub
from csebench.base.errors import BadInput, RunFailed, first_line, place, problem_of, shortened
from csebench.base.files import (
    DIGEST,
    DataRoot,
    digest,
    matches,
    read_typed,
    sha256,
    sha256_of_files,
    with_digest,
    write_json,
)
from csebench.base.gpus import acquire_gpus
from csebench.base.locks import locked
from csebench.base.models import (
    FACTS,
    REPORT,
    Report,
    check_model,
    model_sha256,
    read_facts,
    train_again,
)
from csebench.base.outputs import is_stream
from csebench.base.processes import use_threads
from csebench.base.provenance import Stopwatch
from csebench.base.runs import lock_run, read_report
from csebench.base.shown import visible_lines
from csebench.base.terminal import bar
from csebench.model.embedder import Embedder
from csebench.plan import code_versions
from csebench.plan.catalog.data_sources import from_hub, remedy
from csebench.plan.catalog.registry import (
    EVALUATORS,
    METHODS,
    Protocol,
    adapter_names,
    declaration,
    load,
    protocol,
)
from csebench.plan.schema.declarations import EncoderRef, Evaluation
from csebench.score import store
from csebench.score.replicates import make_replicates
from csebench.score.score_file import REMEDY, ScoreContent, refuse_file, row_defects, settings
from csebench.score.score_types import Items, Score

# ---------------------------------------------------------------- any model


def evaluate_model(
    model: str,
    evaluators: Sequence[str],
    data_root: Path | DataRoot,
    out: Path,
    pooler: str | None = None,
    evaluation: Evaluation = Evaluation(),
) -> dict:
    """Score a model and write the scores to `out`.

    The file is JSON with tidy rows `{evaluator, protocol, task, subset, metric, value}` under
    `scores`. Per-item values go into a second file, `out` with `.items.npz` appended, unless `out`
    is a stream such as /dev/stdout. If another process writes `out`, this one waits.

    Args:
        model: folder or hub id.

    Returns:
        The content of `out`.

    Raises:
        BadInput: an evaluator or the model is unknown, or data is missing. Nothing is written.
        RunFailed: an evaluator failed. The scores of the others are written.
    """
    for evaluator in evaluators:
        data_sha256(protocol(evaluator), data_root)  # refuses missing data before torch is imported
    folder = hub.folder_of(model)
    with holding_run(folder):
        if folder is not None:
            check_model(folder)
        pooler_used = pooler or read_facts(folder)["pooler"]
        request = ScoringRequest(model, evaluators, data_root, pooler_used, evaluation)
        before_loading = request.identities()

        from csebench.score.models import open_model

        opened = open_model(model, pooler, evaluation)
        request = replace(request, prompts=opened.prompts)
        if is_stream(out):
            lock = contextlib.nullcontext()
        else:
            lock = locked(out)
        with lock:
            check_unchanged(before_loading, request.identities())
            return score_model(opened, request, out)


@contextlib.contextmanager
def holding_run(model: Path | None) -> Iterator[None]:
    """Lock the run of a model, so that no other process trains it again or prunes it.

    Args:
        model: folder of the model. No lock is taken if it is None, or does not belong to a run.
    """
    if model is not None and model.name == "model" and is_run(model.parent):
        with lock_run(model.parent):
            yield
    else:
        yield


def is_run(folder: Path) -> bool:
    """Whether a folder belongs to a run that this user may lock."""
    return (folder / "spec.json").exists() and os.access(folder, os.W_OK)


# ---------------------------------------------------------------- a run, and its published scores


def evaluate_run(
    run: Path,
    evaluators: Sequence[str],
    data_root: Path | DataRoot,
    evaluation: Evaluation,
    keep_going: bool = False,
) -> dict[str, Path]:
    """Make the score JSONs that a run does not have yet.

    They are kept in `run/scores/`, in files named by a hash of their `score_identity`. torch is
    imported only if a score is missing.

    Args:
        keep_going: if an evaluator fails, note the reason in `run/scores/` and go on with the next
            one.

    Returns:
        The files by evaluator; evaluators that failed are left out.

    Raises:
        BadInput: the run has no finished model, or a kept file states another identity than its
            name stands for.
    """
    folder = run / "model"
    if not (folder / FACTS).exists() or not (folder / REPORT).exists():
        raise BadInput(f"{folder}: no finished model. {train_again(run)}")
    check_model(folder)
    pooler = read_facts(folder)["pooler"]
    request = ScoringRequest(str(folder), evaluators, data_root, pooler, evaluation)
    identities = request.identities()
    kept = {e: kept_file(run, e, identity) for e, identity in identities.items()}
    if unscored_evaluators(kept):
        acquire_gpus(sharing=0)
        with lock_run(run):
            make_missing_scores(run, request, identities, kept, keep_going)
        kept = {e: path for e, path in kept.items() if path.exists()}
    check_kept(kept, identities)
    return kept


def make_missing_scores(
    run: Path,
    request: "ScoringRequest",
    identities: dict[str, dict],
    kept: dict[str, Path],
    keep_going: bool,
) -> None:
    """Score a run by the evaluators that have no file yet, with one model for all of them.

    Args:
        identities: by evaluator; the names of the `kept` files are made from them.
        keep_going: as in `evaluate_run`.
    """
    from csebench.score.models import open_model

    _, report = read_typed(run / "model" / REPORT, Report, train_again(run))
    threads = report.spec.get("threads")
    if threads is not None:
        use_threads(threads)  # as in training: another number of threads gives other bits
    opened = None
    # checked again under the lock, because another process may have made some scores before it
    for evaluator in unscored_evaluators(kept):
        single_request = replace(request, evaluators=[evaluator])
        try:
            if opened is None:
                opened = open_model(request.model, evaluation=request.evaluation)
            check_unchanged({evaluator: identities[evaluator]}, single_request.identities())
            score_model(opened, single_request, kept[evaluator])
            forget_failure(run, evaluator)
        except Exception as error:  # the evaluator, or a library that it uses, may raise anything
            store.note_failure(run, evaluator, error)
            if not keep_going:
                raise
            line = f"{run.name}: {evaluator} failed, going on with the others: {error}"
            print(visible_lines(line), file=sys.stderr, flush=True)


def kept_file(run: Path, evaluator: str, identity: dict) -> Path:
    """Name the file in which a run keeps its scores of an evaluator."""
    return run / "scores" / f"{protocol(evaluator).key}-{digest(identity)}.json"


def unscored_evaluators(kept: dict[str, Path]) -> list[str]:
    """List the evaluators whose score JSON or file of per-item values is missing."""
    missing = []
    for evaluator, path in kept.items():
        if not path.exists() or store.items_file({}, path) is None:
            missing.append(evaluator)
    return missing


def forget_failure(run: Path, evaluator: str) -> None:
    """Delete the note and the vectors that failed evaluations left in the folder of a run.

    Vectors are deleted for all settings of the evaluator.
    """
    store.failure_file(run, evaluator).unlink(missing_ok=True)
    for shards in (run / "scores").glob(f".{protocol(evaluator).key}-*.shards"):
        shutil.rmtree(shards, ignore_errors=True)


def check_kept(kept: dict[str, Path], identities: dict[str, dict]) -> None:
    """Check that kept score JSONs state the identities that their names were made from.

    Raises:
        BadInput: a file states another identity.
    """
    for evaluator, path in kept.items():
        content, _ = read_typed(path, ScoreContent, REMEDY)
        stated = content["evaluations"]
        identity = identities[evaluator]
        if len(stated) == 1 and digest(stated[0]) == digest(identity):
            continue
        keys = sorted(identity.keys() | stated[0].keys())
        differing = [key for key in keys if stated[0].get(key) != identity.get(key)]
        raise BadInput(
            f"{path}: evaluations: {', '.join(differing) or 'their number'}: not what the file's"
            f" name stands for, so its scores may be of another model or data. {REMEDY}"
        )


def publish_scores(
    run: Path, evaluator: str, data_root: Path | DataRoot, evaluation: Evaluation, out: Path
) -> None:
    """Write the score JSON that pages are made from.

    It holds the scores, the spec of the run, the report of its training, and replicates over test
    items. Per-item values stay in the folder of the run.
    """
    path = evaluate_run(run, [evaluator], data_root, evaluation)[evaluator]
    declaration = protocol(evaluator).declaration
    content, checked = read_typed(path, ScoreContent, REMEDY)
    refuse_file(path, row_defects(checked.scores, declaration))
    report = read_report(run)
    if report is None:
        raise BadInput(f"{run}: its training is not finished.")
    not_published = ("spec", "losses", DIGEST)
    training = {key: value for key, value in report.items() if key not in not_published}
    published = {"spec": report.get("spec"), "training": training, **content}

    items_by_evaluator = store.items(content, path) or {}
    items = items_by_evaluator.get(evaluator, {})
    rows = [Score(row.task, row.subset, row.metric, row.value) for row in checked.scores]
    replicates = make_replicates(rows, items, declaration.items)
    if replicates is not None:
        published["replicates"] = replicates
    texts = declaration.texts
    if texts is not None and texts.retrieved in items:
        published["texts"] = {
            "queries": items[texts.queries].tolist(),
            "retrieved": items[texts.retrieved].tolist(),
            "printed": items[texts.printed].tolist(),
        }
    write_json(out, with_digest(published))


# ---------------------------------------------------------------- what is scored


@dataclass(frozen=True)
class ScoringRequest:
    """A model, and the evaluators that are to score it."""

    model: str  # folder or hub id
    evaluators: Sequence[str]
    data_root: Path | DataRoot
    pooler: str | None  # None: the model has a pooling of its own
    evaluation: Evaluation
    prompts: dict[str, str] = field(default_factory=dict)  # put before texts, by role

    def identities(self) -> dict[str, dict]:
        """Compute the `score_identity` of every evaluator from the present files."""
        identities = {}
        for evaluator in self.evaluators:
            identity = score_identity(
                evaluator, self.model, self.data_root, self.pooler, self.evaluation
            )
            if self.prompts:
                identity["prompts"] = self.prompts
            identities[evaluator] = identity
        return identities


def score_identity(
    evaluator: str,
    model: str,
    data_root: Path | DataRoot,
    pooler: str | None,
    evaluation: Evaluation,
) -> dict:
    """State everything that decides a score: settings, model, pooler and data.

    The score JSON states this identity, and a score is reused only if its identity is the same. A
    folder is identified by its sha256, a model of the hub by its commit.
    """
    evaluator_protocol = protocol(evaluator)
    ref = EncoderRef.parse(model)
    identity = settings(evaluator_protocol, evaluation)
    folder = hub.local_folder(ref)
    if folder is not None:
        identity["model_sha256"] = model_sha256(folder)
    else:
        cached = hub.cached_model(ref)
        identity["model_commit"] = ref.revision if cached is None else cached.name
    identity["pooler"] = pooler
    identity["data_sha256"] = data_sha256(evaluator_protocol, data_root)
    return identity


def data_sha256(evaluator_protocol: Protocol, data_root: Path | DataRoot) -> str:
    """Hash the names and contents of all files that an evaluator reads.

    A task that mteb loads from the hub has no files here. The version of mteb pins its data.

    Raises:
        BadInput: a file is missing.
    """
    if from_hub(evaluator_protocol, data_root):
        return sha256_of_files([])
    sums = []
    for pattern in evaluator_protocol.files:
        files = matches(data_root, pattern)
        if not files:
            raise BadInput(f"{data_root / pattern}: no such file; {remedy(pattern, data_root)}")
        sums += [(name, sha256(path)) for name, path in files.items()]
    return sha256_of_files(sums)


def has_data(evaluator: str, data_root: Path | DataRoot) -> bool:
    """Whether a training job can score by an evaluator at once, because the data is here.

    If the data is missing, another job waits for it and then scores the run.
    """
    return problem_of(data_sha256, protocol(evaluator), data_root) is None


def check_unchanged(before: dict[str, dict], after: dict[str, dict]) -> None:
    """Check that the model and the data stayed the same.

    Args:
        before, after: `score_identity` by evaluator, at two moments.

    Raises:
        RunFailed: files changed in between.
    """
    for evaluator, identity in before.items():
        for key, files in (("model_sha256", "the model"), ("data_sha256", "the test data")):
            if key in identity and identity[key] != after[evaluator].get(key):
                raise RunFailed(
                    f"{evaluator}: files of {files} changed while the model was scored. Nothing is"
                    " written; score it again when nobody changes them."
                )


# ---------------------------------------------------------------- scoring


def score_model(opened: Embedder, request: ScoringRequest, out: Path) -> dict:
    """Score an open model and write `out` with its per-item values, as `evaluate_model` describes.

    The model remembers the vectors of sentences, so that no evaluator embeds them again.

    Returns:
        The content of `out`.

    Raises:
        RunFailed: every evaluator failed, or files of the model or the data changed while the model
            was scored. Nothing is written. Or some evaluators failed, and the scores of the others
            are written.
    """
    identities = request.identities()
    watch = Stopwatch()
    facts = read_facts(hub.folder_of(request.model))
    versions = code_versions.mark(units_of_scores(identities, facts["method"]))
    keeps_files = not is_stream(out)
    if keeps_files:
        opened.cache_dir = store.shards_folder(out)
        opened.artifacts_dir = store.beside(out, store.ARTIFACTS)

    # score by one evaluator after the other
    scores: list[dict] = []
    items: Items = {}
    timings: dict[str, dict] = {}
    failed: list[RunFailed] = []
    progress = bar(identities, "evaluators", "evaluator")
    for evaluator in progress:
        progress.set_description(evaluator)
        timer = EvaluatorTimer(opened)
        try:
            rows, items_of_evaluator = run_evaluator(evaluator, opened, request.data_root)
        except RunFailed as error:
            failed.append(error)
            continue
        timings[evaluator] = timer.read()
        scores += tidy(evaluator, identities[evaluator], rows)
        for name, array in items_of_evaluator.items():
            items[f"{protocol(evaluator).text}/{name}"] = array
    if failed and not scores:
        raise failed[0]
    check_unchanged(identities, request.identities())

    # write the per-item values
    items_reference = {"items": "", "items_sha256": None}
    if keeps_files:
        items_reference = store.write_items(store.beside(out, store.ITEMS), items)
        if not failed:
            # Before the scores are written: if the process is killed here, a later one makes the
            # scores again. In the other order it would leave vectors that nobody deletes.
            shutil.rmtree(store.shards_folder(out), ignore_errors=True)

    # write the scores
    content = {
        "schema": 1,
        "model": request.model,
        "run": facts["run"],
        "evaluations": [identities[evaluator] for evaluator in timings],
        "scores": scores,
        **items_reference,
        "timings": timings,
        "provenance": watch.record(**versions),
    }
    content = with_digest(content)
    write_json(out, content)
    if failed:
        raise RunFailed("\n".join(map(str, failed)))
    return content


def units_of_scores(evaluators: Iterable[str], method: str | None) -> set[str]:
    """Name the units of code that score a model by these evaluators.

    Args:
        method: that made the model. If it fitted a map of its own, it also computes it.
    """
    computes = method in adapter_names(METHODS) and declaration(method).kind == "fitted"
    names = set()
    for evaluator in evaluators:
        name = protocol(evaluator).declaration.name
        names.update(code_versions.units_of_score(name, method if computes else None))
    return names


class EvaluatorTimer:
    """Measures one evaluator, from construction to `read`."""

    def __init__(self, model: Embedder):
        self.model = model
        self.started = time.perf_counter()
        self.seconds_before = model.seconds
        self.embedded_before = model.embedded

    def read(self) -> dict:
        """Return the seconds of embedding and of the rest, and the number of sentences embedded."""
        embedding = self.model.seconds - self.seconds_before
        return {
            "embedding_seconds": round(embedding, 3),
            "scoring_seconds": round(time.perf_counter() - self.started - embedding, 3),
            "sentences_embedded": self.model.embedded - self.embedded_before,
        }


def run_evaluator(
    evaluator: str, model: Embedder, data_root: Path | DataRoot
) -> tuple[list[Score], Items]:
    """Run one evaluator and check its result, so that evaluators need no checks of their own.

    Returns:
        Its rows, and its per-item values.

    Raises:
        BadInput: it cannot use its data, or this kind of model.
        RunFailed: it failed, or its scores or items are not valid.
    """
    evaluator_protocol = protocol(evaluator)
    declaration = evaluator_protocol.declaration
    file = EVALUATORS / f"{declaration.name}.py"
    try:
        evaluate = load(declaration.name, EVALUATORS)
        result = evaluate(model, data_root, **evaluator_protocol.params)
    except (BadInput, RunFailed, KeyboardInterrupt):
        raise
    except BaseException as error:  # also `sys.exit`, which must not look like success
        raise RunFailed(
            f"{evaluator}: {place(error)}: {type(error).__name__}: {first_line(error)}."
        ) from error
    if not is_result(result):
        raise RunFailed(
            f"{evaluator}: {file}: evaluate gave {shortened(repr(result), 60)}; it must give a"
            " list of at least one Score, whose value is a number, and a dict of arrays."
        )
    scores, items = result
    not_finite = first_not_finite(scores, items)
    if not_finite is not None:
        cause = "Usually the model gives every sentence the same vector."
        raise RunFailed(f"{evaluator}: {not_finite} is not a finite number. {cause}")
    problem = next(row_defects(scores, declaration), None)
    if problem is not None:
        raise RunFailed(f"{file}: {problem} Correct the evaluator, or its `bounds` or `units`.")
    return scores, items


def is_result(result: Any) -> bool:
    """Whether an evaluator returned a list of at least one Score, and a dict of arrays."""
    match result:
        case ([_, *_] as scores, dict() as items):
            return all(map(is_score, scores)) and all(map(is_plain_array, items.values()))
    return False


def is_score(row: Any) -> bool:
    return isinstance(row, Score) and isinstance(row.value, Real)


def is_plain_array(array: Any) -> bool:
    """Whether it is an array that can be saved without pickle."""
    return isinstance(array, np.ndarray) and array.dtype != object


def first_not_finite(scores: list[Score], items: Items) -> str | None:
    """Name the first value that is infinite or not a number; None if all are finite."""
    for score in scores:
        if not math.isfinite(score.value):
            return f"{score.task}, {score.subset}, {score.metric}: the score"
    for name, array in items.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return f"{name}: a per-item value"
    return None


def tidy(evaluator: str, identity: dict, rows: list[Score]) -> list[dict]:
    """Turn the rows of an evaluator into rows of a score JSON.

    The name of the protocol contains settings of the identity, such as the pooler.
    """
    evaluator_protocol = protocol(evaluator)
    declaration = evaluator_protocol.declaration
    fields = {
        **identity,
        "pooler": identity["pooler"] or "own",
        "max_length": identity["max_length"] or "full",
        **evaluator_protocol.params,
    }
    protocol_name = declaration.protocol.format(**fields)
    columns = {"evaluator": declaration.name, "protocol": protocol_name}
    return [{**columns, **row._asdict()} for row in rows]
