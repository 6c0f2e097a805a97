"""Verdicts on systems are those of the project's statistics: paired by item, independent by seed,
corrected for the number of comparisons."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import csebench
from csebench import cli
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.judging.comparison import judge_systems, times_as_many_items
from csebench.judging.figure import draw_judgement
from csebench.judging.systems import JudgedSystem, JudgedSystems
from csebench.judging.task_scores import ItemValue, TaskScore, score_of_items
from csebench.judging.words import (
    judgement_content,
    judgement_in_words,
    verdict_with_interval,
)
from csebench.report.numbers.stats import quantile

ITEMS = 400
GENERATOR = np.random.default_rng(0)
DIFFICULTY = GENERATOR.normal(0.5, 0.1, ITEMS)
NOISE = GENERATOR.normal(0, 0.02, (40, ITEMS))


def task_score(values):
    """Make the score of a task from values of its items."""
    return score_of_items("x", {str(number): ItemValue(v) for number, v in enumerate(values)})


def system(name, gain=0.0, seeds=(0,)):
    """Make a system that is better than the mean by `gain`. Each number of a seed gives noise."""
    scores = [task_score(DIFFICULTY + gain + NOISE[seed] - NOISE[seed].mean()) for seed in seeds]
    return JudgedSystem(name, {"x": tuple(scores)})


def without_items(name, *values):
    """Make a system of which only the score of each seed is known."""
    return JudgedSystem(name, {"x": tuple(TaskScore(value, "x") for value in values)})


def judged(*systems, within=None):
    """Judge systems on the task x."""
    return judge_systems(JudgedSystems(systems, ("x",), ()), within)


def verdict(*systems, within=None):
    """Return the verdict on the first of two systems."""
    return judged(*systems, within=within).pairs[0].overall.relation.word


# ---------------------------------------------------------------- verdicts


def test_a_better_system_is_higher_and_the_other_one_lower():
    better, worse = system("a", gain=0.01), system("b", seeds=(1,))
    assert verdict(better, worse) == "higher"
    assert verdict(worse, better) == "lower"


def test_equal_files_are_the_same():
    assert verdict(system("a"), system("b")) == "same"


def test_a_small_difference_is_the_same_only_within_the_stated_limit():
    systems = system("a", gain=0.001), system("b", seeds=(1,))
    assert verdict(*systems) == "unclear"
    assert verdict(*systems, within=1.0) == "same"


def test_scores_without_items_and_seeds_are_not_tested():
    pair = judged(without_items("a", 0.9), without_items("b", 0.1)).pairs[0]
    assert verdict_with_interval(pair.overall) == "not tested: +80.00"


def test_one_system_without_items_leaves_only_seeds():
    single = judged(system("a"), without_items("b", 0.4)).pairs[0]
    assert single.overall.relation.word == "not tested"
    several = judged(without_items("a", 0.5, 0.51, 0.52), without_items("b", 0.4)).pairs[0]
    assert several.overall.relation.word == "higher"


# ---------------------------------------------------------------- errors


def test_the_interval_over_items_is_that_of_paired_differences():
    first, second = system("a", gain=0.002), system("b", seeds=(1,))
    comparison = judged(first, second).pairs[0].overall
    differences = 100 * (0.002 + NOISE[0] - NOISE[0].mean() - NOISE[1] + NOISE[1].mean())
    error = np.sqrt((differences**2).mean() / ITEMS)
    half = (comparison.high - comparison.low) / 2
    assert half == pytest.approx(1.96 * error, rel=0.01)


def test_the_order_of_items_does_not_matter():
    values = dict(enumerate((DIFFICULTY + NOISE[2]).tolist()))
    forward = score_of_items("x", {str(number): ItemValue(v) for number, v in values.items()})
    backward = score_of_items(
        "x", {str(number): ItemValue(values[number]) for number in reversed(values)}
    )
    assert forward.replicates.items == backward.replicates.items
    assert np.array_equal(forward.replicates.clustered, backward.replicates.clustered)


def test_seeds_without_items_are_tested_as_by_welch():
    comparison = judged(
        without_items("a", 0.50, 0.52, 0.54), without_items("b", 0.50, 0.51, 0.50, 0.51)
    )
    overall = comparison.pairs[0].overall
    variances = np.array([4 / 3, (1 / 3) / 4])
    df = variances.sum() ** 2 / (variances**2 / [2, 3]).sum()
    half = quantile(0.95, df) * np.sqrt(variances.sum())
    assert overall.estimate.gain == pytest.approx(1.5)
    assert overall.high - overall.low == pytest.approx(2 * half)


def test_seeds_widen_the_interval_over_items():
    one = judged(system("a"), system("b", seeds=(1,))).pairs[0].overall
    shifted = (system("a").scores["x"][0], system("a", gain=0.05, seeds=(2,)).scores["x"][0])
    two = judged(JudgedSystem("a", {"x": shifted}), system("b", seeds=(1,))).pairs[0].overall
    assert two.high - two.low > one.high - one.low


def test_tasks_are_averaged_before_seeds_are_compared():
    """Errors of seeds that cancel out over tasks do not count."""
    values = {"x": (0.4, 0.6), "y": (0.6, 0.4)}
    scores = {
        task: tuple(TaskScore(value, task) for value in of_task) for task, of_task in values.items()
    }
    other = {task: (TaskScore(0.3, task),) for task in values}
    systems = (JudgedSystem("a", scores), JudgedSystem("b", other))
    pair = judge_systems(JudgedSystems(systems, ("x", "y"), ())).pairs[0]
    assert pair.overall.estimate.seed_sd == pytest.approx(0)
    assert pair.tasks[0].estimate.seed_sd == pytest.approx(100 * np.sqrt(0.02))


# ---------------------------------------------------------------- what would decide it


def test_as_many_items_as_are_said_decide_a_difference():
    comparison = judged(system("a", gain=0.001), system("b", seeds=(1,))).pairs[0].overall
    estimate = comparison.estimate
    factor = times_as_many_items(comparison)
    error = estimate.item_se / np.sqrt(factor)
    assert estimate.gain / error == pytest.approx(1.96 + 0.84, rel=0.02)  # 80 % power


def test_an_unclear_verdict_says_what_is_excluded_and_what_would_decide_it():
    systems = system("a", gain=0.001, seeds=(1, 2, 3)), system("b", seeds=(4, 5, 6))
    sentence = judgement_in_words(judged(*systems)).sentence
    assert "points is excluded" in sentence
    assert "times as many items" in sentence


def test_only_systems_with_several_seeds_are_said_to_need_more():
    one, several = without_items("one", 0.51), without_items("several", 0.49, 0.5, 0.52)
    assert judgement_in_words(judged(one, several)).sentence.endswith(" seeds of several.")
    both = judged(without_items("both", 0.5, 0.52), several)
    assert judgement_in_words(both).sentence.endswith(" seeds of each.")


# ---------------------------------------------------------------- what an interval covers


def note(*systems):
    """Return the note on two systems."""
    return judgement_in_words(judged(*systems)).notes[0]


def test_the_note_says_which_seeds_vary():
    one, several = system("b"), system("m", seeds=(1, 2, 3))
    assert "Each system is one model, so no seeds vary." in note(one, system("a", seeds=(1,)))
    with_one = note(one, several)
    assert "covers 400 test items and 3 seeds." in with_one
    assert "b is a single model, so only the seeds of m vary." in with_one
    with_two = note(several, system("n", seeds=(4, 5)))
    assert with_two.endswith("covers 400 test items and 3 + 2 seeds.")


def test_the_number_of_items_is_known_if_one_score_states_it():
    stated = system("a").scores["x"][0]
    unstated = JudgedSystem("b", {"x": (replace(stated, item_count=None),)})
    assert "covers 400 test items" in note(unstated, system("a"))


def test_the_interval_of_a_verdict_that_systems_are_the_same_has_90_percent():
    """Each of its ends is tested at 5 %, so that it agrees with the limit."""
    words = judgement_in_words(
        judged(system("a", gain=0.001), system("b", seeds=(1,)), within=0.35)
    )
    assert words.sentence.startswith("a against b, x: same: +0.10 (90 % -0.13 to +0.33).")
    assert words.rows[0][-2] == "-0.13 to +0.33 (90 %)"


def test_a_task_without_items_leaves_the_mean_untested_but_not_the_others():
    items = {"a": system("a", gain=0.01), "b": system("b", seeds=(1,))}
    systems = []
    for name, of_x in items.items():
        systems.append(JudgedSystem(name, {**of_x.scores, "y": (TaskScore(0.5, "y"),)}))
    words = judgement_in_words(judge_systems(JudgedSystems(tuple(systems), ("x", "y"), ())))
    assert "The mean is not tested, because y has no values of test items." in words.notes[0]
    assert [row[-1] for row in words.rows] == ["not tested", "higher", "not tested"]


# ---------------------------------------------------------------- more than two systems


def test_verdicts_of_several_systems_are_corrected_by_holm():
    """A pair that is significant by itself need not be so among all pairs."""
    alone = judged(without_items("a", 0.52, 0.53, 0.54), without_items("b", 0.49, 0.5, 0.51))
    assert alone.pairs[0].overall.p < 0.05
    others = [without_items(f"c{n}", 0.1, 0.5, 0.9) for n in range(4)]
    among = judged(alone.pairs[0].first, alone.pairs[0].second, *others)
    assert among.pair("a", "b").overall.relation.word == "unclear"


def test_groups_hold_systems_that_are_not_told_apart():
    names_and_gains = (("a", 0.02), ("b", 0.001), ("c", 0.0))
    systems = [system(name, gain, seeds=(n,)) for n, (name, gain) in enumerate(names_and_gains)]
    assert judged(*systems).groups == (("a",), ("b", "c"))


def test_the_ranking_shows_each_system_against_the_next():
    """Whatever their order on the command line was."""
    words = judgement_in_words(judged(system("low", -0.1), system("mid"), system("top", 0.1)))
    assert [row[1] for row in words.rows] == ["top", "mid", "low"]
    assert [str(row[-1])[:6] for row in words.rows] == ["higher", "higher", "None"]


# ---------------------------------------------------------------- command line and Python


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two CSV files, `good.csv` and `bad.csv`, in the current folder."""
    for name, gain in (("good", 0.01), ("bad", 0.0)):
        lines = [f"{n},{value:.6f}" for n, value in enumerate(DIFFICULTY + gain)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,value", *lines]) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_exit_code_says_whether_the_first_system_has_a_refused_verdict(files, capsys):
    assert cli.main(["judge", "good.csv", "bad.csv", "--fail-if", "lower,unclear"]) == 0
    assert cli.main(["judge", "bad.csv", "good.csv", "--fail-if", "lower,unclear"]) == 1
    assert "bad against good: lower: -1.00" in capsys.readouterr().err
    assert cli.main(["judge", "good.csv", "missing.csv", "--fail-if", "lower"]) == 2


@pytest.mark.parametrize("word", ["worse", "cannot tell"])
def test_a_verdict_that_the_judge_never_gives_is_refused(files, capsys, word):
    assert cli.main(["judge", "good.csv", "bad.csv", "--fail-if", word]) == 2
    assert f"unknown verdict {word!r}" in capsys.readouterr().err


def test_json_holds_every_comparison(files, capsys):
    assert cli.main(["judge", "good.csv", "bad.csv", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [record["task"] for record in content["comparisons"]] == [None, "items"]
    assert content["comparisons"][0]["verdict"] == "higher"
    assert content["comparisons"][0]["items"] == ITEMS


def test_the_picture_shows_the_tested_differences(tmp_path):
    assert draw_judgement(judged(system("a", 0.01), system("b", seeds=(1,))), tmp_path / "f.svg")
    assert "+1.00" in (tmp_path / "f.svg").read_text()
    untested = judged(without_items("a", 0.5), without_items("b", 0.4))
    assert not draw_judgement(untested, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_the_picture_states_the_seeds_of_each_system(tmp_path):
    pair = judged(system("a", 0.01, seeds=(1, 2, 3)), system("b", seeds=(4, 5)))
    draw_judgement(pair, tmp_path / "f.svg")
    assert "n = 3 + 2" in (tmp_path / "f.svg").read_text()


def test_a_name_may_hold_any_character(tmp_path):
    """`$x$` would be a formula for matplotlib."""
    pair = judged(system("$\\frac$", 0.01), system("<b>", seeds=(1,)))
    assert draw_judgement(pair, tmp_path / "f.svg")


def test_python_gives_a_row_for_each_comparison(files):
    frame = csebench.judge({"good": "good.csv", "bad": "bad.csv"})
    assert list(frame.verdict) == ["higher", "higher"]
    assert frame.attrs["sentence"].startswith("good against bad, items: higher: +1.00")


def test_python_takes_objects_with_encode_beside_files(smoke_data):
    class CountsLetters:
        """A model that sees only how often a sentence has some letters."""

        def __init__(self, letters):
            self.letters = letters

        def encode(self, sentences):
            return [[1 + text.count(letter) for letter in self.letters] for text in sentences]

    models = {"a": CountsLetters("aeioustrn"), "b": CountsLetters("aeioulmpd")}
    frame = csebench.judge(models, data=str(smoke_data))
    assert len(frame) == 1 + 7  # over all tasks, and STS12 to SICK-R
    assert frame.low.notna().all()


def test_python_refuses_what_is_no_source(files):
    with pytest.raises(BadInput, match="judge: a: a int is no source"):
        csebench.judge({"a": 1, "b": "bad.csv"})


def test_published_scores_are_paired_over_their_items():
    scores = sorted((ROOT / "results" / "mini" / "scores").glob("bert-*.sts.json"))[:2]
    frame = csebench.judge({path.name: str(path) for path in scores})
    assert frame.item_error.notna().all()


@pytest.mark.parametrize(
    ("methods", "is_doubtful"),
    [
        (("micse", "simcse"), True),
        (("simcse_sup", "bert"), False),
        (("simcse_sup", "simcse"), False),
    ],
)
def test_scores_of_a_scale_whose_controls_fail_say_nothing_about_methods(
    methods, is_doubtful, capsys
):
    scores = ROOT / "results" / "mini" / "scores"
    files = [str(min(scores.glob(f"{method}-*.sts.json"))) for method in methods]
    assert cli.main(["judge", *files]) == 0
    assert ("not about their methods: scale mini" in capsys.readouterr().out) == is_doubtful


def test_files_are_judged_where_torch_is_not_installed(files):
    code = (
        "import sys; sys.modules |= dict.fromkeys(('torch', 'transformers', 'mteb'));"
        "from csebench import cli;"
        "sys.exit(cli.main(['judge', 'good.csv', 'bad.csv', '--figure', 'f.svg']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=files, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("good against bad")


def test_content_states_no_infinity():
    """JSON has none."""
    content = judgement_content(judged(system("a"), system("b")))
    json.dumps(content, allow_nan=False)
