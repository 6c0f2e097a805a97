"""The rows of `scores.csv`: every score of a scale, from its score JSONs.

Rows with the same protocol were computed on the same test data, so that they can be averaged. If a
score was computed on other data than most scores of its evaluator, the name of its protocol says
so. Never imports torch.
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
    """List every score of a scale as a row with the keys SCORES.

    Scores of an evaluator that is gone or broken are left out.
    """
    contents = sorted(newest(scale).items(), key=lambda item: item[1]["run"])
    by_evaluator: dict[str, list[Scored]] = defaultdict(list)
    for (_, evaluator), content in contents:
        by_evaluator[evaluator].append(with_age(content))
    usual_data = {evaluator: data_of_most(scores) for evaluator, scores in by_evaluator.items()}
    for (_, evaluator), content in contents:
        run_columns = describe_run(Spec.model_validate(content["spec"]))
        suffix = other_data(with_age(content).data, usual_data[evaluator])
        for row in content["scores"]:
            declaration = valid_evaluators().get(row["evaluator"])
            if declaration is None:
                continue
            columns = {**run_columns, **row}
            if suffix:
                columns["protocol"] = f"{row.get('protocol', '')}{suffix}"
            columns["unit"] = declaration.unit_of(row["metric"])
            yield columns


def with_age(content: dict) -> Scored:
    """Mark a score JSON as outdated if its evaluator has another version today, or is gone."""
    evaluation = content["evaluations"][0]
    declaration = valid_evaluators().get(evaluation["evaluator"])
    is_outdated = declaration is None or declaration.version != evaluation["version"]
    return Scored(content, is_outdated)


def other_data(data: EvaluationData, usual_data: EvaluationData) -> str:
    """Say on which test data a score was computed, if most scores were computed on other data.

    Returns:
        Suffix for the name of a protocol, ` on data 0123456789ab`. Empty for the data of most
        scores.
    """
    if data.is_same_as(usual_data):
        return ""
    return f" on {data.text_beside(usual_data)}"


def describe_run(spec: Spec) -> dict:
    """Describe a run as columns of `scores.csv`.

    The column `settings` lists the settings that differ from the defaults of the method, and all
    settings of components. If the method is gone or broken, it lists all settings.
    """
    method = valid_declarations(METHODS).get(spec.method)
    defaults = method.hyperparameters().model_dump() if method else {}
    changed = []
    for name, value in sorted(spec.settings.items()):
        if name not in defaults or value != defaults[name]:
            changed.append(f"{name}={value}")
    return {
        "method": spec.method,
        "settings": " ".join(changed),
        "encoder": spec.encoder.name,
        "corpus": spec.corpus.name if spec.corpus else "",
        "size": spec.corpus.size if spec.corpus else "",
        "subset_seed": spec.corpus.subset_seed if spec.corpus else "",
        "seed": spec.seed,
        "components": "+".join(spec.components),
        "run": spec.run_id,
        "cell": spec.cell_id,
    }
