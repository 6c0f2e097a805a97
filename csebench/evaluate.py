"""Evaluation of any model by any of the evaluators: score JSONs with their identity, items and provenance."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from csebench.data import sha256
from csebench.errors import BadInput
from csebench.provenance import Stopwatch, write_json
from csebench.registry import EVALUATORS, declaration, load
from csebench.schema import Evaluation
from csebench.spec import digest

SCHEMA = 1


def data_sha256(evaluator: str, data_root: Path) -> str:
    """One hash over the names and contents of the files that an evaluator reads.

    Raises:
        BadInput: a pattern of its declaration matches no file.
    """
    found = []
    for pattern in declaration(evaluator, EVALUATORS).files:
        matches = sorted(data_root.glob(pattern))
        if not matches:
            raise BadInput(f"{data_root / pattern}: no such file; --data or CSEBENCH_DATA names it (docs/data.md).")
        found += [f"{path.relative_to(data_root)} {sha256(path)}" for path in matches]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def protocol(evaluator: str, evaluation: Evaluation) -> dict:
    """What decides the scores of a given model on given data."""
    found = declaration(evaluator, EVALUATORS)
    return {"evaluator": found.name, "version": found.version, "protocol": found.protocol, **evaluation.model_dump()}


def evaluation_key(evaluator: str, evaluation: Evaluation) -> str:
    return digest(protocol(evaluator, evaluation))


def identity(evaluator: str, data_root: Path, pooler: str | None, evaluation: Evaluation) -> dict:
    """The protocol with the pooler and the data: kept in the score JSON, compared before anything is reused."""
    data = data_sha256(evaluator, data_root)
    return {**protocol(evaluator, evaluation), "pooler": pooler, "max_length": None, "data_sha256": data}


def evaluate(
    model: str, evaluators: list[str], data_root: Path, out: Path, pooler: str | None = None, evaluation=Evaluation()
) -> dict:
    """Score a model and write `out` (JSON) and `out` with suffix `.items.npz` (per-item values).

    Returns:
        what was written: tidy rows `{evaluator, protocol, task, subset, metric, value}` under `scores`.

    Raises:
        BadInput: unknown evaluator or model, or missing data; nothing is written.
        RunFailed: a score is not a number.
    """
    found = [declaration(e, EVALUATORS) for e in evaluators]
    for e in evaluators:
        data_sha256(e, data_root)  # refuses a data root before torch is imported

    import numpy as np

    from csebench.encoder import open_model, pooler_of

    watch = Stopwatch()
    opened = open_model(model, pooler, evaluation)
    scores, items, timings = [], {}, {}
    for declared in found:
        started, embedding = time.perf_counter(), getattr(opened, "seconds", 0.0)
        rows, of_items = load(declared.name, EVALUATORS)(opened, data_root)
        embedded = getattr(opened, "seconds", 0.0) - embedding
        timings[declared.name] = {
            "embedding_seconds": round(embedded, 3),
            "scoring_seconds": round(time.perf_counter() - started - embedded, 3),
        }
        scores += [{"evaluator": declared.name, "protocol": declared.protocol, **row} for row in rows]
        items |= {f"{declared.name}/{name}": values for name, values in of_items.items()}
    run = Path(model) / "csebench.json"
    result = {
        "schema": SCHEMA,
        "model": model,
        "run": json.loads(run.read_text()).get("run") if run.exists() else None,
        "evaluations": [identity(e, data_root, pooler or pooler_of(Path(model)), evaluation) for e in evaluators],
        "scores": scores,
        "items": str(out.with_suffix(".items.npz")),
        "timings": timings | {"sentences_embedded": len(getattr(opened, "known", {}))},
        "provenance": watch.record(),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.stem}.items.npz")
    np.savez_compressed(temporary, **items)
    temporary.replace(out.with_suffix(".items.npz"))
    write_json(out, result)
    return result


def evaluate_run(run: Path, evaluator: str, data_root: Path, evaluation: Evaluation) -> Path:
    """The score JSON of a run, kept in `run/scores/` under the hash of what decides it; made only if it is not there.

    Neither torch nor a model is loaded where the scores are already known.
    """
    facts = run / "model" / "csebench.json"
    if not facts.exists():
        raise BadInput(f"{run}/model: no finished model; delete {run} to have it trained again.")
    wanted = identity(evaluator, data_root, json.loads(facts.read_text()).get("pooler"), evaluation)
    kept = run / "scores" / f"{evaluator}-{digest(wanted)}.json"
    if not kept.exists():
        evaluate(str(run / "model"), [evaluator], data_root, kept, evaluation=evaluation)
    return kept


def publish(run: Path, evaluator: str, data_root: Path, evaluation: Evaluation, out: Path) -> None:
    """A run's scores with what was run and how it was trained: the JSON that tables are rendered from."""
    scores = json.loads(evaluate_run(run, evaluator, data_root, evaluation).read_text())
    training = json.loads((run / "train.json").read_text())
    spec = training.pop("spec")
    training.pop("losses", None)
    write_json(out, {"spec": spec, "training": training, **scores})
