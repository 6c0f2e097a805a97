"""Every score of a scale as a tidy row: `scores.csv`. Derived from the score JSONs. Never imports torch."""

from collections.abc import Iterable

from csebench.plan.registry import METHODS, valid_declarations, valid_evaluators
from csebench.plan.spec import Spec
from csebench.score.store import newest

SCORES = ["method", "settings", "encoder", "corpus", "size", "subset_seed", "seed", "components"]
SCORES += ["evaluator", "protocol", "task", "subset", "metric", "value", "unit", "run", "cell"]


def score_rows(scale: str) -> Iterable[dict]:
    """The rows, under SCORES; without those of an evaluator that is gone or broken."""
    for content in sorted(newest(scale).values(), key=lambda content: content["run"]):
        about = describe_run(Spec.model_validate(content["spec"]))
        for row in (row for row in content["scores"] if row["evaluator"] in valid_evaluators()):
            yield {**about, **row, "unit": valid_evaluators()[row["evaluator"]].unit_of(row["metric"])}


def describe_run(spec: Spec) -> dict:
    """What was run, as columns of `scores.csv`. `settings` are those that are not the defaults of its method, with all
    of its components; of a method that is gone or broken, all."""
    method = valid_declarations(METHODS).get(spec.method)
    defaults = method.hyperparameters().model_dump() if method else {}
    changed = {key: v for key, v in spec.settings.items() if key not in defaults or v != defaults[key]}
    return {
        "method": spec.method,
        "settings": " ".join(f"{name}={value}" for name, value in sorted(changed.items())),
        "encoder": spec.encoder.name,
        "corpus": spec.corpus.name if spec.corpus else "",
        "size": spec.corpus.size if spec.corpus else "",
        "subset_seed": spec.corpus.subset_seed if spec.corpus else "",
        "seed": spec.seed,
        "components": "+".join(spec.components),
        "run": spec.run_id,
        "cell": spec.cell_id,
    }
