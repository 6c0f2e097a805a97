"""Every score of a scale as a tidy row: `scores.csv`. Derived from the score JSONs. Never imports
torch.

Rows of one protocol are of one set of test data, so that they can be averaged. Scores on other data
than most of the scale's are of a protocol of their own.
"""

from collections import defaultdict
from collections.abc import Iterable

from csebench.plan.catalog.registry import METHODS, valid_declarations, valid_evaluators
from csebench.plan.schema.spec import Spec
from csebench.score.data_of_scores import EvaluationData, Scored, data_of_most
from csebench.score.store import newest

SCORES = ["method", "settings", "encoder", "corpus", "size", "subset_seed", "seed", "components"]
SCORES += ["evaluator", "protocol", "task", "subset", "metric", "value", "unit", "run", "cell"]


def score_rows(scale: str) -> Iterable[dict]:
    """The rows, under SCORES; without those of an evaluator that is gone or broken."""
    contents = sorted(newest(scale).items(), key=lambda item: item[1]["run"])
    by_evaluator: dict[str, list[Scored]] = defaultdict(list)
    for (_, evaluator), content in contents:
        by_evaluator[evaluator].append(with_age(content))
    data = {evaluator: data_of_most(scores) for evaluator, scores in by_evaluator.items()}
    for (_, evaluator), content in contents:
        about = describe_run(Spec.model_validate(content["spec"]))
        other = other_data(with_age(content).data, data[evaluator])
        for row in (row for row in content["scores"] if row["evaluator"] in valid_evaluators()):
            unit = valid_evaluators()[row["evaluator"]].unit_of(row["metric"])
            if other:
                row = row | {"protocol": f"{row.get('protocol', '')}{other}"}
            yield {**about, **row, "unit": unit}


def with_age(content: dict) -> Scored:
    """A score JSON with whether its evaluator is of another version today."""
    evaluation = content["evaluations"][0]
    declared = valid_evaluators().get(evaluation["evaluator"])
    return Scored(content, declared is None or declared.version != evaluation["version"])


def other_data(data: EvaluationData, of_most: EvaluationData) -> str:
    """What a protocol's name gets behind it where a score is not on the data of most: ` on data
    0123456789ab`."""
    if data.is_same_as(of_most):
        return ""
    return f" on {data.text_beside(of_most)}"


def describe_run(spec: Spec) -> dict:
    """What was run, as columns of `scores.csv`. `settings` are those that are not the defaults
    of its method, with all of its components; of a method that is gone or broken, all."""
    method = valid_declarations(METHODS).get(spec.method)
    defaults = method.hyperparameters().model_dump() if method else {}
    changed = {
        key: v for key, v in spec.settings.items() if key not in defaults or v != defaults[key]
    }
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
