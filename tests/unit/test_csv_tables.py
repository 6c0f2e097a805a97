"""The CSV files of a scale: pandas reads from them what pages show."""

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
from csebench.report.numbers.claims import ClaimVerdict
from csebench.score.scores_csv import describe_run, score_rows

MINI = ROOT / RESULTS / "mini"


def test_cells_are_means_of_their_runs():
    """scores.csv has the runs under the ids that the cell names, so no variants are mixed."""
    cells = pandas.read_csv(MINI / "cells.csv", low_memory=False)
    scores = pandas.read_csv(MINI / "scores.csv", low_memory=False)
    shown = scores[scores.subset.isin(["all", "printed"])]
    values_of_runs = {}
    for key, group in shown.groupby(["evaluator", "task", "subset", "metric"]):
        values_of_runs[key] = group.set_index("run").value

    scored_cells = cells[(cells.n > 0) & cells.task.notna()]
    for cell in scored_cells.itertuples():
        evaluator = cell.evaluator.partition(":")[0]
        subset = "all"
        if cell.task == "Avg.":
            subset = "printed"
        metric = cell.metric
        if metric == "main score":
            of_task = shown[(shown.evaluator == evaluator) & (shown.task == cell.task)]
            metric = of_task.metric.iloc[0]

        values = values_of_runs[evaluator, cell.task, subset, metric]
        mean = values.loc[cell.runs.split()].mean()
        assert cell.factor * mean == pytest.approx(cell.ours), cell


def test_claims_have_a_verdict_at_every_deviation():
    claims = pandas.read_csv(MINI / "claims.csv")
    supported = ClaimVerdict.SUPPORTED
    counts = [
        (claims[column] == supported).sum()
        for column in ("printed", "printed_at_0.5", "printed_at_0.35")
    ]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    text = (MINI / "claims.md").read_text(encoding="utf-8")
    assert f"**{len(claims)} sentences" in text
    assert f"{counts[0]} to {counts[-1]} {supported}" in text


def test_scores_of_older_code_give_way_to_newer_ones(tmp_path, monkeypatch):
    """A run that was made with three versions of the trainer has one row per score."""
    monkeypatch.chdir(tmp_path)
    first_file = next((MINI / "scores").glob("simcse-*.sts.json"))
    content = json.loads(first_file.read_text())
    run_ids = {}
    for version in (7, 8, 6):
        run = Spec.model_validate(content["spec"] | {"trainer_version": version})
        run_ids[version] = run.run_id
        scored = content | {"spec": run.model_dump(), "run": run.run_id}
        scored["training"] = {"provenance": content["provenance"]}
        path = RESULTS / "mini" / "scores" / f"{run.run_id}.sts.json"
        write_json(path, with_digest(scored))
    assert {row["run"] for row in score_rows("mini")} == {run_ids[8]}


def spec(**recipe_keys):
    """Make the spec of a run on a subset, at the papers' own scale."""
    scale = catalog.scale("paper")
    encoder = scale.encoders["bert-base"]
    conditions = recipe.conditions(scale)
    return recipe.make_spec(Recipe(**recipe_keys), encoder, 10_000, 3, conditions, "test")


def test_a_run_is_described_by_what_it_changes():
    changed = spec(
        method="simcse", params={"temperature": 0.1}, components={"ami": {"weight": 0.5}}
    )
    description = describe_run(changed)
    assert {"temperature=0.1", "ami.weight=0.5"} <= set(description["settings"].split())
    assert description["components"] == "ami"
    assert description["subset_seed"] == 3
    assert description["seed"] == 3
    assert describe_run(spec(method="simcse"))["settings"] == ""
