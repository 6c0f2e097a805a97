"""`csebench try`: what it refuses and plans, and what it says of methods that are equal, other, better or broken."""

import json
import os
import re

import pytest
from score_files import write_scores

from csebench import cli
from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.cli import attempt
from csebench.plan import registry, targets

EQUAL = (ROOT / "methods" / "simcse.py").read_text().replace('"name": "simcse"', '"name": "mine"')
LINES = EQUAL.count("\n")
BROKEN = {  # what `class Method` has more, and why it is refused
    "after_step(self):\n        [p.data.zero_() for p in self.encoder.parameters()]": "(constant embeddings?)",
    'loss(self, views):\n        return (views.z1 * float("inf")).sum()': "loss is nan at step 1",
    "loss(self, views):\n        return views.z3": f"at line {LINES + 3}: AttributeError: 'Views' object has no",
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a method that is SimCSE under another name, and what `try` says of it at scale mini."""
    (tmp_path / "methods").mkdir()
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    caches.clear()
    yield tmp_path / "methods" / "mine.py"
    caches.clear()


def write(file, code=EQUAL):
    file.write_text(code)
    caches.clear()


def results(file, scores, seeds=3, **settings):
    """What is said of a method whose runs have these averages, against SimCSE's published scores."""
    tried = attempt.open_attempt(file, against=("simcse",), scale="mini", evaluators=("sts",), seeds=seeds, **settings)
    attempt.write_paper(tried)
    (page,) = tried.pages
    own = [(run, evaluator, spec) for (run, evaluator), spec in page.scores().items() if spec.method == "mine"]
    for (_, evaluator, spec), score in zip(own, scores, strict=True):
        write_scores(spec, evaluator, "mini", [("Avg.", "spearman", score)])
    caches.clear()
    (record,) = attempt.results(tried)
    return record


def test_only_ones_own_runs_are_left_to_make(own, capsys):
    write(own)
    assert cli.main(["try", "methods/mine.py", "--plan"]) == 0
    assert "5 runs, 5 scores" in capsys.readouterr().err  # SimCSE's are published
    assert not (own.parent.parent / "runs").exists()


@pytest.mark.parametrize(
    ("scores", "relation", "following"),
    [
        ([0.80, 0.81, 0.82], "better", "More seeds would change little"),
        ([0.53, 0.55, 0.57], "not shown", "would take about"),
    ],
)
def test_a_comparison_says_what_it_shows_and_what_more_seeds_can_do(scores, relation, following, own):
    write(own)
    record = results(own, scores)
    assert (record["relation"], record["differs"]) == (relation, "") and following in record["next"]


def test_a_shared_setting_that_differs_is_named(own):
    write(own, EQUAL.replace('"params": {', '"params": {"dropout": (0.2, "ours"), '))
    record = results(own, [0.80, 0.81, 0.82])
    assert "dropout 0.2 against 0.1" in record["differs"] and "Not matched" in attempt.details(record)[0]


def test_a_component_is_compared_on_each_host(own):
    components = own.parent / "components"
    components.mkdir()
    code = (ROOT / "methods" / "components" / "ami.py").read_text().replace('"name": "ami"', '"name": "mine"')
    (components / "mine.py").write_text(code)
    caches.clear()
    settings = {"scale": "mini", "evaluators": ("sts",), "seeds": 2}
    tried = attempt.open_attempt(components / "mine.py", True, against=("simcse", "ct"), **settings)
    attempt.write_paper(tried)
    (page,) = tried.pages
    with_it = {spec.method for spec in page.runs().values() if "mine" in spec.components}
    assert with_it == {"simcse", "ct"} and {*tried.searches()} == {"simcse+mine", "ct+mine"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine.py"], "no such file"),
        (["methods/mine.py", "--against", "simcsee"], "Did you mean 'simcse'?"),
        (["methods/mine.py", "--against", "mine"], "is what is tried"),
        (["methods/mine.py", "--evaluators", "stss"], "Did you mean 'sts'?"),
        (["methods/mine.py", "--trials", "7"], "have 39 trials"),
        (["methods/mine.py", "--trials", "3", "--scale", "small"], "takes no settings from searches"),
        (["methods/mine.py", "--evaluators", "beir:nothere"], "beir:nothere: no beir/nothere/"),
        (["methods/mine.py", "--component"], "is not in a folder methods/components/"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(arguments, message, own, capsys):
    write(own)
    assert cli.main(["try", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(os.listdir(own.parent.parent)) == ["methods"]


@pytest.mark.slow
@pytest.mark.parametrize("code", BROKEN)
def test_one_that_collapses_or_fails_is_refused_by_name_with_the_reason(code, own, capsys):
    write(own, f"{EQUAL}\n    def {code}\n")
    assert cli.main(["try", "methods/mine.py", "--scale", "smoke"]) == 1
    assert re.search(f"try: mine: 2 steps of training fail.*{re.escape(BROKEN[code])}", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("classless", "", "methods/classless.py: defines no 'Method'"),
        ("importing", "import nothing_there", "methods/importing.py: line 2: ModuleNotFoundError: No module named"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named(name, code, message, own):
    declared = EQUAL.partition("class Method")[0].replace('"mine"', f'"{name}"')
    (own.parent / f"{name}.py").write_text(f'"""A method."""\n{code}\n{declared}')
    caches.clear()
    with pytest.raises(BadInput, match=re.escape(message)):
        registry.load(name)


@pytest.mark.slow
def test_one_that_is_equal_has_no_effect_and_is_not_made_twice(own, capsys):
    write(own)
    for _ in range(2):
        assert cli.main(["try", "methods/mine.py", "--scale", "smoke", "--seeds", "2", "--json"]) == 0
    first, again = capsys.readouterr().out.split("\n]\n")[:2]
    (record,) = json.loads(f"{again}]")
    assert first == again and record["next"] == attempt.SAME_TRAINING
    assert (own.parent.parent / record["page"]).exists()
    assert {run.partition("-")[0] for run in os.listdir("runs") if run[0] != "."} == {"mine", "simcse"}
    assert targets.page("table1", "smoke", "try_mine").runs().keys() == {
        run for run in os.listdir("runs") if run[0] != "."
    }
