"""scores.csv and cells.csv: what pandas reads from them is what pages show."""

import json

import pandas
import pytest

from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT
from csebench.plan import recipe
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.files import RESULTS
from csebench.plan.schema.paper import Recipe
from csebench.plan.schema.spec import Spec
from csebench.score.scores_csv import describe_run, score_rows

MINI = ROOT / RESULTS / "mini"


def test_cells_are_means_of_their_runs():
    """Which scores.csv has under the ids that the cell names: no mixture of variants."""
    cells, scores = (
        pandas.read_csv(MINI / f"{name}.csv", low_memory=False) for name in ("cells", "scores")
    )
    scored = cells[(cells.n > 0) & cells.task.notna()]
    wanted = scores[scores.subset.isin(["all", "printed"])]
    groups = wanted.groupby(["evaluator", "task", "subset", "metric"])
    by_key = {key: group.set_index("run").value for key, group in groups}
    for cell in scored.itertuples():
        subset, evaluator = (
            "printed" if cell.task == "Avg." else "all",
            cell.evaluator.partition(":")[0],
        )
        first = wanted[(wanted.evaluator == evaluator) & (wanted.task == cell.task)].metric.iloc[0]
        values = by_key[
            evaluator, cell.task, subset, first if cell.metric == "main score" else cell.metric
        ]
        assert cell.factor * values.loc[cell.runs.split()].mean() == pytest.approx(cell.ours), cell


def test_scores_of_older_code_give_way_to_newer_ones(tmp_path, monkeypatch):
    """Of the same run, one row per score."""
    monkeypatch.chdir(tmp_path)
    content = json.loads(next((MINI / "scores").glob("simcse-*.sts.json")).read_text())
    runs = [
        Spec.model_validate(content["spec"] | {"trainer_version": version}) for version in (7, 8, 6)
    ]
    for run in runs:
        older = content | {"spec": run.model_dump(), "run": run.run_id}
        older["training"] = {"provenance": content["provenance"]}
        write_json(RESULTS / "mini" / "scores" / f"{run.run_id}.sts.json", with_digest(older))
    assert {row["run"] for row in score_rows("mini")} == {runs[1].run_id}


def spec(**row):
    scale = catalog.scale("paper")
    return recipe.make_spec(
        Recipe(**row), scale.encoders["bert-base"], 10_000, 3, recipe.conditions(scale), "test"
    )


def test_a_run_is_described_by_what_it_changes():
    about = describe_run(
        spec(method="simcse", params={"temperature": 0.1}, components={"ami": {"weight": 0.5}})
    )
    assert {"temperature=0.1", "ami.weight=0.5"} <= {*about["settings"].split()}
    assert (about["components"], about["subset_seed"], about["seed"]) == ("ami", 3, 3)
    assert describe_run(spec(method="simcse"))["settings"] == ""
