"""`csebench try` refuses, plans, and judges methods that are equal, different, better or broken."""

import json
import os
import re
from types import SimpleNamespace

import pytest
from score_files import edit_score_file, write_scores

from csebench import cli
from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.plan import targets
from csebench.plan.catalog import registry
from csebench.report.numbers.refusals import Relation
from csebench.study import attempt, attempt_paper, attempt_results

EQUAL = (ROOT / "methods" / "simcse.py").read_text().replace('"name": "simcse"', '"name": "mine"')


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The file of a method that is SimCSE under another name, in a folder that joins the
    project."""
    file = tmp_path / "methods" / "mine.py"
    file.parent.mkdir()
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attempt, "can_be_reached", lambda: False)  # so that mini is the default
    write(file)
    yield file
    caches.clear()


def write(file, code=EQUAL):
    file.write_text(code)
    caches.clear()


def make_component_file(own):
    """Write AMI as component `mine`, and return its file."""
    code = (ROOT / "methods" / "components" / "ami.py").read_text()
    file = own.parent / "components" / "mine.py"
    file.parent.mkdir()
    write(file, code.replace('"name": "ami"', '"name": "mine"'))
    return file


def results(file, scores, component=False, change=None):
    """Return the record of a method whose three runs have these averages, against SimCSE's
    published scores.

    Args:
        change: edits the score files, after everything else.
    """
    tried = attempt_paper.open_attempt(
        file, component, against=("simcse",), scale="mini", evaluators=("sts",), seeds=3
    )
    attempt_paper.write_paper(tried)
    (page,) = tried.pages
    ours = []
    theirs = []
    for spec in page.runs().values():
        if "mine" in (spec.method, *spec.components):
            ours.append(spec)
        else:
            theirs.append(spec)
    (baseline,) = [spec for spec in theirs if spec.seed == ours[0].seed]
    published = json.loads(targets.score_path(baseline.run_id, "sts", "mini").read_text())

    def add_replicates(content):
        content["replicates"] = published["replicates"]

    for spec, score in zip(ours, scores, strict=True):
        write_scores(spec, "sts", "mini", [("Avg.", "spearman", score)])
        path = targets.score_path(spec.run_id, "sts", "mini")
        edit_score_file(path, add_replicates)
        if change:
            edit_score_file(path, change)
    caches.clear()
    (record,) = attempt_results.results(tried)
    return record


def test_only_ones_own_runs_are_left_to_make(own, capsys):
    assert cli.main(["try", "methods/mine.py", "--settings", "1", "--plan"]) == 0
    assert "5 runs, 5 scores" in capsys.readouterr().err  # SimCSE's are published
    assert not (own.parent.parent / "runs").exists()


@pytest.mark.parametrize(
    ("relation", "scores", "following"),
    [
        ("better", [0.80, 0.81, 0.82], "More seeds would change little"),
        ("not shown", [0.53, 0.55, 0.57], "would take about"),
    ],
)
def test_a_comparison_says_what_it_shows_and_what_more_seeds_can_do(
    relation, scores, following, own, controls_hold
):
    record = results(own, scores)
    assert record["relation"] == relation
    assert record["differs"] == ""
    assert following in record["next"]


def test_a_shared_setting_that_differs_is_named(own):
    write(own, EQUAL.replace('"params": {', '"params": {"dropout": (0.2, "ours"), '))

    record = results(own, [0.80, 0.81, 0.82])

    assert "dropout (0.2 vs. 0.1)" in record["differs"]
    assert "these settings differ: " in attempt_results.comparison_lines(record)[0]


def on_other_data(content):
    content["evaluations"][0]["data_sha256"] = "f" * 64


def without_replicates(content):
    del content["replicates"]


@pytest.mark.parametrize("is_component", [False, True])
@pytest.mark.parametrize(
    ("change", "relation", "reason"),
    [
        (
            on_other_data,
            "other data",
            "3 of 3 runs are scored on other test data than the table (sts: data ffffffffffff",
        ),
        (without_replicates, "unpaired", "have no replicates over the test items of sts"),
    ],
)
def test_scores_of_other_data_than_the_published_ones_are_not_compared(
    change, relation, reason, is_component, own
):
    file = own
    if is_component:
        own.unlink()
        file = make_component_file(own)

    record = results(file, [0.80, 0.81, 0.82], is_component, change)

    assert record["relation"] == relation
    assert record["gain"] == ""
    assert reason in record["reason"]
    assert " is not tested: " in record["sentence"]


def test_a_component_is_compared_on_each_host(own):
    tried = attempt_paper.open_attempt(
        make_component_file(own),
        True,
        against=("simcse", "ct"),
        scale="mini",
        evaluators=("sts",),
        seeds=2,
    )
    attempt_paper.write_paper(tried)

    (page,) = tried.pages
    with_it = {spec.method for spec in page.runs().values() if "mine" in spec.components}
    assert with_it == {"simcse", "ct"}
    assert set(tried.searches()) == {"simcse+mine", "ct+mine"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine.py"], "no such file"),
        (["methods/mien.py"], "no such file. Did you mean 'mine.py'?"),
        (["methods/mine.py", "--against", "simcsee"], "Did you mean 'simcse'?"),
        (["methods/mine.py", "--against", "mine"], "cannot be compared with itself"),
        (["methods/mine.py", "--trials", "7"], "--trials: is for the settings of one search"),
        (["methods/mine.py", "--seeds", "3"], "--seeds: is for the settings of one search"),
        (["methods/mine.py", "--settings", "1", "--trials", "7"], "have 39 trials"),
        (
            ["methods/mine.py", "--settings", "1", "--trials", "3", "--scale", "small"],
            "takes no settings from searches",
        ),
        (["methods/mine.py", "--evaluators", "beir:nothere"], "beir:nothere: no beir/nothere/"),
        (["methods/mine.py", "--component"], "is not in a folder methods/components/"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(arguments, message, own, capsys):
    assert cli.main(["try", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(os.listdir(own.parent.parent)) == ["methods"]


@pytest.mark.slow
def test_one_that_fails_is_refused_by_name_with_line_and_reason(own, capsys):
    write(own, f"{EQUAL}\n    def loss(self, views):\n        return views.z3\n")
    last_line = own.read_text().count("\n")

    assert cli.main(["try", "methods/mine.py", "--scale", "smoke"]) == 1

    place = f"2 steps of training fail at methods/mine.py, line {last_line}"
    reason = f"{place}: AttributeError: 'Views' object has no"
    assert f"try: mine: {reason}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("classless", "", "methods/classless.py: defines no 'Method'"),
        (
            "importing",
            "import nothing_there",
            "methods/importing.py: line 2: ModuleNotFoundError: No module named",
        ),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named(name, code, message, own):
    declared = EQUAL.partition("class Method")[0].replace('"mine"', f'"{name}"')
    write(own.with_stem(name), f'"""A method."""\n{code}\n{declared}')

    with pytest.raises(BadInput, match=re.escape(message)):
        registry.load(name)


def test_no_advice_asks_for_more_seeds_than_the_command_takes(monkeypatch):
    estimate = SimpleNamespace(gain=0.01, seeds=5)
    comparison = SimpleNamespace(
        estimate=estimate,
        p=0.5,
        p_family=0.5,
        differs=(),
        relation=Relation.NOT_SHOWN,
        over_settings=None,
    )
    monkeypatch.setattr("csebench.report.numbers.power.seeds_needed", lambda *_: 2000.0)
    assert "2,000 seeds, which is out of reach" in attempt_results.advice_on_runs(comparison)


def test_two_steps_need_no_model_of_a_pre_training(own):
    """InfoCSE starts from a run of Condenser, which may not be there yet."""
    file = make_component_file(own)
    tried = attempt_paper.open_attempt(
        file, True, against=("infocse",), scale="smoke", evaluators=("sts",), seeds=1
    )
    assert attempt.spec_of_check(tried).run_before is None


def test_untrained_rows_have_no_training_that_could_be_the_same(monkeypatch):
    spec = SimpleNamespace(run_id="bert-0000000000")
    plan = SimpleNamespace(specs=[spec], evaluator="sts")
    grid = SimpleNamespace(row=lambda label: 0)
    view = SimpleNamespace(rows=[[SimpleNamespace(plan=plan)]], score_grid=grid, scale="mini")
    monkeypatch.setattr(attempt_results, "stored_score", lambda *_: ({"training": {}}, False))
    assert attempt_results.training_curves(view, "BERT") == []


@pytest.mark.slow
def test_one_that_is_equal_has_no_effect_and_is_not_made_twice(own, capsys):
    def try_it():
        """Run the command, and return what it prints."""
        options = ["--scale", "smoke", "--settings", "2", "--json"]
        assert cli.main(["try", "methods/mine.py", *options]) == 0
        return capsys.readouterr().out

    first = try_it()
    assert try_it() == first
    (record,) = json.loads(first)
    assert record["next"] == attempt_results.SAME_TRAINING
    assert (own.parent.parent / record["page"]).exists()

    planned = set(targets.page("table1", "smoke", "try_mine").runs())
    assert {run.partition("-")[0] for run in planned} == {"mine", "simcse"}
    score_files = (ROOT / "results/scores").glob("*.sts.json")
    published = {path.name.partition(".")[0] for path in score_files}
    made = {run for run in os.listdir("runs") if not run.startswith(".")}
    assert made == planned - published


def test_a_loss_that_vanished_is_said_on_the_page(own, capsys):
    def let_the_loss_vanish(content):
        content["training"]["loss_vanished"] = True

    results(own, [0.53, 0.55, 0.57])
    for path in (own.parent.parent / "results" / "mini" / "scores").glob("mine-*.json"):
        edit_score_file(path, let_the_loss_vanish)
    caches.clear()
    capsys.readouterr()

    assert cli.main(["render", "try_mine/table1", "--scale", "mini"]) == 0

    assert "in all 3 runs the loss is 0, or below 1e-4 of its start" in capsys.readouterr().out


@pytest.mark.parametrize(("answers", "scale"), [(True, "small"), (False, "mini")])
def test_the_default_scale_is_the_one_that_can_tell_methods_apart(answers, scale, monkeypatch):
    monkeypatch.setattr(attempt, "can_be_reached", lambda: answers)

    assert attempt.answering_scale() == scale


def test_a_scale_that_cannot_tell_says_so_before_anything_runs(own, capsys):
    assert cli.main(["try", "methods/mine.py", "--plan"]) == 0

    first_line, *_ = capsys.readouterr().err.splitlines()
    assert first_line.startswith(
        "There will be numbers and no verdict: scale mini does not tell methods trained without"
        " labels apart (2 of its 3 controls fail)."
    )


def test_a_try_at_a_scale_that_cannot_tell_has_numbers_and_no_verdict(own):
    record = results(own, [0.80, 0.81, 0.82])

    assert record["relation"] == "cannot tell"
    assert record["gain"] > 20
    assert record["sentence"].startswith("Cannot tell SimCSE (unsupervised) (mine) from")
    assert record["next"] == attempt_results.OTHER_SCALE
