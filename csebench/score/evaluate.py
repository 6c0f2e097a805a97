"""Evaluation of any model by any of the evaluators: score JSONs with their identity, items and
provenance."""

import contextlib
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
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
from csebench.plan.catalog.registry import EVALUATORS, Protocol, load, protocol
from csebench.plan.schema.declarations import EncoderRef, Evaluation
from csebench.score import store
from csebench.score.replicates import make_replicates
from csebench.score.score_file import REMEDY, ScoreContent, refuse_file, row_defects, settings
from csebench.score.score_types import Items, Score


def data_sha256(wanted: Protocol, data_root: Path | DataRoot) -> str:
    """One hash over the names and contents of the files that an evaluator reads; of no file
    where mteb takes a task from its hub, at the revision that its package pins. Raises BadInput
    where a file is missing."""
    sums = []
    for pattern in [] if from_hub(wanted, data_root) else wanted.files:
        files = matches(data_root, pattern)
        if not files:
            raise BadInput(f"{data_root / pattern}: no such file; {remedy(pattern, data_root)}")
        sums += [(name, sha256(path)) for name, path in files.items()]
    return sha256_of_files(sums)


def has_data(evaluator: str, data_root: Path | DataRoot) -> bool:
    """Whether a training job can score by it at once; else that is left to a job that waits for
    the data."""
    return problem_of(data_sha256, protocol(evaluator), data_root) is None


def score_identity(
    evaluator: str,
    model: str,
    data_root: Path | DataRoot,
    pooler: str | None,
    evaluation: Evaluation,
) -> dict:
    """The settings with the model, its pooler and the data: kept in the score JSON, compared before
    anything is reused. A model is the sha256 of its folder; one of the hub, which is in the cache
    by now, its commit.
    """
    wanted, ref = protocol(evaluator), EncoderRef.parse(model)
    folder = hub.local_folder(ref)
    if folder is not None:
        made_by = {"model_sha256": model_sha256(folder)}
    else:
        made_by = {
            "model_commit": cached.name if (cached := hub.cached_model(ref)) else ref.revision
        }
    return {
        **settings(wanted, evaluation),
        **made_by,
        "pooler": pooler,
        "data_sha256": data_sha256(wanted, data_root),
    }


def check_unchanged(before: dict[str, dict], after: dict[str, dict]) -> None:
    """Raises RunFailed where files of the model or of the data changed between two identities.

    Args:
        before, after: `score_identity` by evaluator.
    """
    for evaluator, made_by in before.items():
        for key, what in (("model_sha256", "the model"), ("data_sha256", "the test data")):
            if key in made_by and made_by[key] != after[evaluator].get(key):
                raise RunFailed(
                    f"{evaluator}: files of {what} changed while the model was scored. Nothing is"
                    " written; score it again when nobody changes them."
                )


@contextlib.contextmanager
def holding_run(model: Path | None) -> Iterator[None]:
    """Keep the run of a model from being trained again or pruned.

    Args:
        model: its folder; None, or another folder than that of a run, needs no lock.
    """
    if model is None or model.name != "model" or not is_run(model.parent):
        yield
        return
    with lock_run(model.parent):
        yield


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run, and this user can lock it."""
    return (folder / "spec.json").exists() and os.access(folder, os.W_OK)


def run_evaluator(
    evaluator: str, model: Embedder, data_root: Path | DataRoot
) -> tuple[list[Score], Items]:
    """The rows and the per-item values of one evaluator. Raises BadInput where its data or the
    kind of model cannot be used, RunFailed where it failed, or gave what cannot be, which it
    need not check itself."""
    wanted = protocol(evaluator)
    file = EVALUATORS / f"{wanted.declaration.name}.py"
    try:
        made = load(wanted.declaration.name, EVALUATORS)(model, data_root, **wanted.params)
    except (BadInput, RunFailed, KeyboardInterrupt):
        raise
    except BaseException as error:  # also `sys.exit`, which must not pass for done
        raise RunFailed(
            f"{evaluator}: {place(error)}: {type(error).__name__}: {first_line(error)}."
        ) from error
    if not is_result(made):
        result = "a list of at least one Score, whose value is a number, and a dict of arrays"
        raise RunFailed(
            f"{evaluator}: {file}: evaluate gave {shortened(repr(made), 60)}; it must give"
            f" {result}."
        )
    scores, items = made
    broken = [
        f"{s.task}, {s.subset}, {s.metric}: the score" for s in scores if not math.isfinite(s.value)
    ]
    numbers = {name: array for name, array in items.items() if array.dtype.kind == "f"}
    broken += [
        f"{name}: a per-item value"
        for name, array in numbers.items()
        if not np.isfinite(array).all()
    ]
    if broken:
        cause = "Usually the model gives every sentence the same vector."
        raise RunFailed(f"{evaluator}: {broken[0]} is not a finite number. {cause}")
    for problem in row_defects(scores, wanted.declaration):
        raise RunFailed(f"{file}: {problem} Correct the evaluator, or its `bounds` or `units`.")
    return scores, items


def is_result(made: Any) -> bool:
    """Whether it is what an evaluator must give."""
    match made:
        case ([_, *_] as scores, dict() as items):
            arrays = all(
                isinstance(array, np.ndarray) and array.dtype != object for array in items.values()
            )
            return arrays and all(
                isinstance(s, Score) and isinstance(s.value, Real) for s in scores
            )
    return False


def evaluate_model(
    model: str,
    evaluators: list[str],
    data_root: Path | DataRoot,
    out: Path,
    pooler: str | None = None,
    evaluation=Evaluation(),
) -> dict:
    """Score a model, and write and return the content of `out`: JSON with tidy rows `{evaluator,
    protocol, task, subset, metric, value}` under `scores`. Beside it goes a file of per-item
    values, named `out` and `.items.npz`. There is none where `out` is a stream, such as
    /dev/stdout. Waits while another process writes `out`.

    Raises:
        BadInput: an evaluator or model is unknown, or data is missing. Nothing is written.
        RunFailed: evaluators failed. The scores of the others are written.
    """
    for evaluator in evaluators:
        data_sha256(protocol(evaluator), data_root)  # refuses a data root before torch is imported
    folder = hub.folder_of(model)
    with holding_run(folder):
        if folder is not None:
            check_model(folder)
        pooler_used = pooler or read_facts(folder)["pooler"]

        def identify(prompts: dict[str, str]) -> dict[str, dict]:
            """State the identity by evaluator, as files are now; a model may have prompts."""
            identities = {}
            for e in evaluators:
                identities[e] = score_identity(e, model, data_root, pooler_used, evaluation)
                if prompts:
                    identities[e]["prompts"] = prompts
            return identities

        before = identify({})
        from csebench.score.models import open_model

        opened = open_model(model, pooler, evaluation)
        identify_opened = partial(identify, opened.prompts)
        with contextlib.nullcontext() if is_stream(out) else locked(out):
            check_unchanged(before, identify_opened())
            return score_model(opened, model, identify_opened, data_root, out)


def score_model(
    opened: Embedder,
    model: str,
    identify: Callable[[], dict[str, dict]],
    data_root: Path | DataRoot,
    out: Path,
) -> dict:
    """Score an open model and write `out`, as `evaluate_model` does; what one evaluator embeds is
    there for the next.

    Args:
        identify: gives the `score_identity` of every evaluator that is wanted, as files are now.

    Raises:
        RunFailed: evaluators failed, or the model or the data changed meanwhile.
    """
    identities = identify()
    watch = Stopwatch()
    keeps_files = not is_stream(out)
    if keeps_files:
        opened.cache_dir, opened.artifacts_dir = (
            store.shards_folder(out),
            store.beside(out, store.ARTIFACTS),
        )
    scores, items, timings, failed = [], {}, {}, []
    for evaluator in (progress := bar(identities, "evaluators", "evaluator")):
        progress.set_description(evaluator)
        started, embedding, embedded = time.perf_counter(), opened.seconds, opened.embedded
        try:
            rows, values = run_evaluator(evaluator, opened, data_root)
        except RunFailed as error:
            failed.append(error)
            continue
        embedding = opened.seconds - embedding
        timings[evaluator] = {
            "embedding_seconds": round(embedding, 3),
            "scoring_seconds": round(time.perf_counter() - started - embedding, 3),
            "sentences_embedded": opened.embedded - embedded,
        }
        scores += tidy(evaluator, identities[evaluator], rows)
        items |= {f"{protocol(evaluator).text}/{item}": array for item, array in values.items()}
    if failed and not scores:
        raise failed[0]
    check_unchanged(identities, identify())
    about_items = {"items": "", "items_sha256": None}
    if keeps_files:
        about_items = store.write_items(store.beside(out, store.ITEMS), items)
        # before the scores are written: who is killed in between has not to look for them
        if not failed:
            shutil.rmtree(store.shards_folder(out), ignore_errors=True)
    used = {
        unit for e in timings for unit in code_versions.units_of_score(protocol(e).declaration.name)
    }
    content = {
        "schema": 1,
        "model": model,
        "run": read_facts(hub.folder_of(model))["run"],
        "evaluations": [identities[e] for e in timings],
        "scores": scores,
        **about_items,
        "timings": timings,
        "provenance": watch.record(**code_versions.mark(used)),
    }
    write_json(out, result := with_digest(content))
    if failed:
        raise RunFailed("\n".join(map(str, failed)))
    return result


def tidy(evaluator: str, made_by: dict, rows: list[Score]) -> list[dict]:
    """The rows of an evaluator as a score JSON has them; its protocol's name states settings of
    the identity."""
    declaration, params = protocol(evaluator).declaration, protocol(evaluator).params
    named = {"pooler": made_by["pooler"] or "own", "max_length": made_by["max_length"] or "full"}
    name = declaration.protocol.format(**made_by | named | params)
    return [{"evaluator": declaration.name, "protocol": name, **row._asdict()} for row in rows]


def evaluate_run(
    run: Path,
    evaluators: list[str],
    data_root: Path | DataRoot,
    evaluation: Evaluation,
    keep_going: bool = False,
) -> dict[str, Path]:
    """Make the score JSONs of a run that are not there; torch is loaded only then.

    They are kept in `run/scores/` under the hash of what decides them, and made from one model that
    embeds a sentence once for all of them.

    Args:
        keep_going: where an evaluator fails, the others are made, and the reason is noted beside
            the scores.

    Returns:
        the files by evaluator.

    Raises:
        BadInput: the run has no finished model, or a file is not what its name stands for.
    """
    folder, model = run / "model", str(run / "model")
    if not all((folder / name).exists() for name in (FACTS, REPORT)):
        raise BadInput(f"{folder}: no finished model. {train_again(run)}")
    check_model(folder)
    pooler = read_facts(folder)["pooler"]

    def identify(e: str) -> dict:
        return score_identity(e, model, data_root, pooler, evaluation)

    identities = {e: identify(e) for e in evaluators}
    kept = {e: kept_file(run, e, made_by) for e, made_by in identities.items()}
    if not unscored_evaluators(kept):
        check_kept(kept, identities)
        return kept
    acquire_gpus(sharing=0)
    with lock_run(run):
        from csebench.score.models import open_model

        report = read_typed(folder / REPORT, Report, train_again(run))[1]
        if (threads := report.spec.get("threads")) is not None:
            use_threads(threads)  # as it was trained: another number gives other bits
        opened = None
        for e in unscored_evaluators(kept):  # without those that another process made meanwhile
            try:
                if opened is None:
                    opened = open_model(model, evaluation=evaluation)
                check_unchanged({e: identities[e]}, {e: identify(e)})
                score_model(opened, model, lambda e=e: {e: identify(e)}, data_root, kept[e])
                forget_failure(run, e)
            except Exception as error:  # of the evaluator, or of a library below it
                store.note_failure(run, e, error)
                if not keep_going:
                    raise
                line = f"{run.name}: {e} failed, other scores are made: {error}"
                print(visible_lines(line), file=sys.stderr, flush=True)
    made = {e: path for e, path in kept.items() if path.exists()}
    check_kept(made, identities)
    return made


def kept_file(run: Path, evaluator: str, made_by: dict) -> Path:
    """Return the place where a run keeps its scores by an evaluator."""
    return run / "scores" / f"{protocol(evaluator).key}-{digest(made_by)}.json"


def unscored_evaluators(kept: dict[str, Path]) -> list[str]:
    """Name the evaluators of which a run has no scores, or not the per-item values behind them."""
    missing = []
    for evaluator, path in kept.items():
        if not path.exists() or store.items_file({}, path) is None:
            missing.append(evaluator)
    return missing


def forget_failure(run: Path, evaluator: str) -> None:
    """Delete what a failed evaluation left in the folder of a run, also with other settings."""
    store.failure_file(run, evaluator).unlink(missing_ok=True)
    for shards in (run / "scores").glob(f".{protocol(evaluator).key}-*.shards"):
        shutil.rmtree(shards, ignore_errors=True)


def check_kept(kept: dict[str, Path], identities: dict[str, dict]) -> None:
    """Raises BadInput where a kept score JSON does not state the identity that its name stands
    for."""
    for evaluator, path in kept.items():
        content, _ = read_typed(path, ScoreContent, REMEDY)
        stated, wanted = content["evaluations"], identities[evaluator]
        if [digest(made_by) for made_by in stated] == [digest(wanted)]:
            continue
        differing = sorted(
            k for k in wanted.keys() | stated[0].keys() if stated[0].get(k) != wanted.get(k)
        )
        raise BadInput(
            f"{path}: evaluations: {', '.join(differing) or 'their number'}: not what the file's"
            f" name stands for, so its scores may be of another model or data. {REMEDY}"
        )


def publish_scores(
    run: Path, evaluator: str, data_root: Path | DataRoot, evaluation: Evaluation, out: Path
) -> None:
    """A run's scores with what was run, how it was trained, and replicates over test items: the
    JSON that tables are rendered from. Per-item values stay with the run."""
    path = evaluate_run(run, [evaluator], data_root, evaluation)[evaluator]
    scores, checked = read_typed(path, ScoreContent, REMEDY)
    refuse_file(path, row_defects(checked.scores, protocol(evaluator).declaration))
    if (report := read_report(run)) is None:
        raise BadInput(f"{run}: its training is not finished.")
    training = {
        key: value for key, value in report.items() if key not in ("spec", "losses", DIGEST)
    }
    of_items = (store.items(scores, path) or {}).get(evaluator, {})
    rows = [Score(row.task, row.subset, row.metric, row.value) for row in checked.scores]
    replicates = make_replicates(rows, of_items, protocol(evaluator).declaration.items)
    published = {"spec": report.get("spec"), "training": training, **scores}
    published |= {} if replicates is None else {"replicates": replicates}
    if (
        declared := protocol(evaluator).declaration.texts
    ) is not None and declared.retrieved in of_items:
        names = ("queries", "retrieved", "printed")
        published["texts"] = {name: of_items[getattr(declared, name)].tolist() for name in names}
    write_json(out, with_digest(published))
