"""Evidence: what a source's file must hold and why it is refused, which evidence belongs to a row,
and statistics of others' runs."""

import dataclasses
import math
from itertools import combinations

import numpy as np
import pytest
from made_up import SCALE, made_up, table

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.base.yaml_lines import read_with_lines
from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import MatchKey
from csebench.plan.grids import find_grid
from csebench.plan.schema.paper import EvidenceKey, Published, Table
from csebench.report.numbers import others as statistics
from csebench.report.numbers import printed_averages, printed_spread, stats
from csebench.report.numbers.cells import printed_view
from csebench.report.numbers.selection import (
    best_scores,
    expected_of_best,
    runs_to_reach,
    selection_of,
)
from csebench.report.words.evidence import pooled_text, print_place, reach_text, sweeps_text

SIMCSE = MatchKey("simcse", "bert-base", "cls_before_pooler")
SOURCE = """\
who: somebody
repository: somebody/simcse
commit: 0123456789abcdef0123456789abcdef01234567
path: README.md#L1
date: 2023-01-01
experiments:
  - method: simcse
    encoder: bert-base
    comparable: true
    setup: {batch_size: 64, learning_rate: 3e-5, steps: 15625}
    runs:
      - {seed: 1, scores: {STS-B: 77.20, Avg.: 75.00}}
"""
PLACE = SOURCE[SOURCE.index("repository") : SOURCE.index("date")]
RUN = "      - {seed: 1, scores: {STS-B: 77.20, Avg.: 75.00}}\n"
RUNS = f"    runs:\n{RUN}"
# Their mean is 75.54.
TASKS = "STS12: 70.1, STS13: 80.2, STS14: 72.3, STS15: 80.4, STS16: 78.5, STS-B: 76.6, SICK-R: 70.7"
ALL_TASKS = f"      - {{seed: 1, scores: {{{TASKS}, Avg.: 75.54}}}}\n"
# Their average is 75.5 ± 0.707.
TWO_RUNS = "      - {seed: 1, scores: {Avg.: 75.00}}\n      - {seed: 2, scores: {Avg.: 76.00}}\n"


def summary(count, scores, runs=""):
    """Write a summary that replaces the runs of the source, or that comes before other runs."""
    text = f"    summary: {{{count}, scores: {{{scores}}}}}\n"
    if runs:
        text += f"    runs:\n{runs}"
    return text


def read(tmp_path, text):
    """Read a source's file with this text."""
    path = tmp_path / "somebody.yaml"
    path.write_text(text, encoding="utf-8")
    return evidence.read_source(path)[0]


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("STS-B: 77.20", "STSB: 77.20", 12, "unknown task 'STSB'. Did you mean 'STS-B'?"),
        ("method: simcse", "method: simsce", 7, "Did you mean 'simcse'?"),
        ("encoder: bert-base", "encoder: bert-bass", 8, "Did you mean 'bert-base'?"),
        ("comparable: true", "comparible: true", 9, "Did you mean 'comparable'?"),
        (
            PLACE,
            'paper: micsee\ntables: ["1"]\n',
            2,
            "unknown paper 'micsee'. Did you mean 'micse'",
        ),
    ],
)
def test_refusals_name_file_and_line(tmp_path, before, after, line, words):
    with pytest.raises(BadInput) as refused:
        read(tmp_path, SOURCE.replace(before, after, 1))
    assert f"somebody.yaml: line {line}: " in str(refused.value)
    assert words in str(refused.value)


def test_an_experiment_overrides_the_setup_of_its_source(tmp_path):
    text = SOURCE.replace(
        "experiments:", "setup: {steps: 1, gpu: V100, differs: one}\nexperiments:"
    )
    source = read(tmp_path, text.replace("3e-5,", "3e-5, differs: two,"))
    setup = evidence.Evidence("somebody", source, source.experiments[0]).setup
    assert setup.batch_size == "64"
    assert setup.steps == 15625
    assert setup.gpu == "V100"
    assert setup.differs == "one; two", "of both"


RANGES = [
    ("Avg.: 75.00", "Avg.: 0.7500", 12, "Avg.: 0.7500 looks like a fraction"),
    ("STS-B: 77.20", "STS-B: 0.772", 12, "STS-B: 0.772 looks like a fraction"),
    ("STS-B: 77.20", "STS-B: -0.772", 12, "STS-B: -0.772 looks like a fraction"),
    ("STS-B: 77.20", "MR: 0.812", 12, "MR: 0.812 looks like a fraction"),
    ("STS-B: 77.20", "stsb_dev: 1.0", 12, "stsb_dev: 1.0 looks like a fraction"),
    ("Avg.: 75.00", "Avg.: 7500", 12, "Avg.: 7500 is not between -100 and 100"),
    ("STS-B: 77.20", "MR: -81.2", 12, "MR: -81.2 is not between 0 and 100"),
    ("STS-B: 77.20", "TransferAvg: 185.2", 12, "TransferAvg: 185.2 is not between 0 and 100"),
    ("Avg.: 75.00", "Avg.: 75.00±0.3", 12, "75.00 ± 0.3: a run has one score"),
]
IMPOSSIBLE_AVERAGE = ALL_TASKS.replace("STS12: 70.1, ", "").replace("75.54", "4.00")
AVERAGES = [
    (RUN, ALL_TASKS.replace("75.54", "57.54"), 12, "Avg.: 57.54: its 7 tasks average 75.543"),
    (RUN, ALL_TASKS.replace("75.54", "75.43"), 12, "Avg.: 75.43: its 7 tasks average 75.543"),
    (RUN, IMPOSSIBLE_AVERAGE, 12, "between 51.24 and 79.81"),
]
SUMMARIES = [
    (RUNS, summary("n: 5", "Avg.: 0.7511±0.0084"), 11, "a fraction"),
    (RUNS, summary("n: 5", "Avg.: 75.1±840"), 11, "at most 100"),
    (RUNS, summary("n: 5", f"{TASKS}, Avg.: 70.00"), 11, "average 75.543"),
    (RUNS, summary("n: 3, seeds: [1, 2]", "Avg.: 75.1"), 11, "2 seeds of 3 runs"),
    (RUNS, summary("n: 2, seeds: [1, 1]", "Avg.: 75.1"), 11, "given twice"),
    (RUNS, summary("n: 2", "Avg.: 76.5", runs=TWO_RUNS), 11, "is 75.500"),
    (RUNS, summary("n: 2", "Avg.: 75.5±0.9", runs=TWO_RUNS), 11, "0.707"),
    (RUNS, summary("n: 9", "Avg.: 75.5", runs=TWO_RUNS), 11, "`runs` has 2"),
    (RUNS, summary("n: 2", "STS12: 75.5", runs=TWO_RUNS), 11, "only 0 of 2"),
]
EQUAL_SCORES = TWO_RUNS.replace("75.00", "75.0012").replace("76.00", "75.0012")
LATE_STEP = RUN.replace("seed: 1", "seed: 1, best_step: 20000")
DOUBLED_RUNS = [
    (RUN, RUN + RUN.replace("77.20", "77.30"), 13, "has the seed 1 of experiments.0.runs.0"),
    (RUN, RUN + RUN.replace("seed: 1", "seed: 2"), 13, "has the scores of experiments.0.runs.0"),
    (RUN, RUN + RUN.replace("seed: 1, ", ""), 13, "has the scores of experiments.0.runs.0"),
    (RUN, EQUAL_SCORES, 13, "has the scores of"),
    (RUN, LATE_STEP, 12, "step 20,000 is after the last one, 15,625"),
]
DATES = [
    ("2023-01-01", "2023-13-01", 5, "date: '2023-13-01' is no date"),
    ("2023-01-01", "2023-02-30", 5, "'2023-02-30' is no date"),
    ("2023-01-01", "01.02.2023", 5, "'01.02.2023' is no date"),
    ("2023-01-01", "20230101", 5, "'20230101' is no date"),
    ("2023-01-01", "soon", 5, "'soon' is no date"),
    ("2023-01-01", "2032-01-01", 5, "is in the future"),
    ("2023-01-01", "1923-01-01", 5, "no method here is older"),
    ("2023-01-01", "2023-02 to 2023-01", 5, "the earlier one"),
]
PLACES = [
    (PLACE, "repository: somebody/simcse\n", 1, "a source names one place"),
    (PLACE, f"{PLACE}thread: 3\n", 1, "a source names one place"),
    (SOURCE[SOURCE.index("experiments") :], "", 1, "`experiments` or `remarks`"),
    (RUNS, "", 7, "has `runs` or a `summary`"),
]


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [*RANGES, *AVERAGES, *SUMMARIES, *DOUBLED_RUNS, *DATES, *PLACES],
)
def test_what_cannot_be_true_is_refused_at_reading(tmp_path, before, after, line, words):
    assert before in SOURCE
    with pytest.raises(BadInput) as refused:
        read(tmp_path, SOURCE.replace(before, after, 1))
    assert f"somebody.yaml: line {line}: " in str(refused.value)
    assert words in str(refused.value)


NEGATIVE_SCORES = "    runs:\n      - {scores: {STS-B: 0.3, Avg.: -0.1}}\n"
EQUAL_BY_CHANCE = (
    "      - {seed: 1, scores: {Avg.: 75.0}}\n      - {seed: 2, scores: {Avg.: 75.0}}\n"
)
BY_ANOTHER = RUN.replace("seed: 1", "seed: 1, by: another").replace("77.20", "77.30")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (RUN, ALL_TASKS),
        # the average is coarser than its tasks
        (RUN, ALL_TASKS.replace("75.54", "75.5")),
        # off by half a unit of its own, and half a unit of the tasks
        (RUN, ALL_TASKS.replace("75.54", "75.55")),
        # the source prints it so
        (RUNS, f"    sure: false\n    runs:\n{ALL_TASKS.replace('75.54', '70.00')}"),
        (RUNS, f"    sure: false\n{NEGATIVE_SCORES}"),
        (RUN, "      - {scores: {STS-B: -12.5, Avg.: -7}}\n"),
        (RUN, EQUAL_BY_CHANCE),
        (RUN, RUN + BY_ANOTHER),
        (RUNS, summary("n: 2", "Avg.: 75.5±0.7", runs=TWO_RUNS)),
        ("2023-01-01", "2023"),
        ("2023-01-01", "2023-01"),
        ("2023-01-01", "2023-01 to 2023-02-03"),
        ("2023-01-01", "2022?"),
        ("2023-01-01", "not noted"),
    ],
)
def test_what_may_be_true_is_read(tmp_path, before, after):
    assert before in SOURCE
    assert read(tmp_path, SOURCE.replace(before, after, 1)).who == "somebody"


def test_all_problems_of_a_file_are_listed(tmp_path):
    text = SOURCE.replace("2023-01-01", "soon").replace("77.20", "0.77").replace("75.00", "750")
    with pytest.raises(BadInput) as refused:
        read(tmp_path, text)
    keys = [line.split(": ")[2] for line in str(refused.value).splitlines()]
    assert keys == [
        "date",
        "experiments.0.runs.0.scores.STS-B",
        "experiments.0.runs.0.scores.Avg.",
    ]


@pytest.fixture
def joined(tmp_path, monkeypatch):
    """Let a folder join the project.

    Returns:
        A function that writes a file into the folder.
    """
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    caches.clear()

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        caches.clear()

    yield write
    monkeypatch.undo()
    caches.clear()


def copies_of_runs(name, count):
    """Write the first runs of a source again, as runs of another source would stand."""
    source, _ = read_with_lines(
        ROOT / f"evidence/{name}.yaml", evidence.EvidenceSource, as_written=True
    )
    text = ""
    for seed, run in enumerate(source.experiments[0].runs[:count]):
        scores = ", ".join(f"{task}: {score.text}" for task, score in run.scores.items())
        text += f"      - {{seed: {seed}, scores: {{{scores}}}}}\n"
    return text


def test_runs_of_another_source_count_once(joined):
    """The file that copies them is named, although its name comes first and it is read second."""
    copying = SOURCE.replace(RUN, copies_of_runs("hppRC-simple-simcse", 3))
    joined("evidence/aaa.yaml", copying)
    message = r"aaa\.yaml: line 12: .* of a run of hppRC-simple-simcse"
    with pytest.raises(BadInput, match=message) as refused:
        evidence.evidence_sources()
    assert len(str(refused.value).splitlines()) == 3


def test_runs_that_are_not_comparable_may_be_those_of_another_source(joined):
    copying = SOURCE.replace(RUN, copies_of_runs("hppRC-simple-simcse", 3))
    joined("evidence/aaa.yaml", copying.replace("comparable: true", "comparable: false"))
    assert list(evidence.evidence_sources())[-1] == "aaa"


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (
            "bert-base: {value: 0.7813}",
            "mine.printed.bert-base.value: 0.7813 looks like a fraction",
        ),
        ("bert-base: {value: 178.13}", "is not between -100 and 100"),
        ("bert-bass: {value: 78.13}", "Did you mean 'bert-base'"),
        ("bert-base: {value: 78.13, seeds: 0}", "greater than or equal to 1"),
    ],
)
def test_printed_averages_are_in_percent_and_of_known_encoders(joined, printed, words):
    method = f"mine: {{title: Mine, printed: {{{printed}}}}}"
    joined("evidence/methods.yaml", f"encoders: {{}}\nmethods:\n  {method}\n")
    with pytest.raises(BadInput) as refused:
        evidence.evidence_names()
    assert "line 3" in str(refused.value)
    assert words in str(refused.value)


# ---------------- who prints a value, and what the page says of it

PAPER = """\
name: NAME
label: Newcomer
title: A paper that repeats others
reference: "Nobody 2021"
tables:
  "1":
    title: STS
    columns: [COLUMNS]
    rows:
      - {label: "SimCSE", run: {method: simcse}, SOURCE, values: [VALUES]}
"""
# InfoCSE's Table 2 prints these values of SimCSE.
REPEATED = ("68.40", "82.41", "74.38", "80.91", "78.56", "76.85", "72.23", "76.25")


def seeds_and_place(key):
    """Look up how many seeds a method's authors print an average of, and where."""
    printed = printed_averages.printed_by_authors(key)
    return printed.seeds, print_place(printed)


def paper_of(name, keys_of_row, values=REPEATED):
    """Write a paper that prints values of SimCSE.

    Args:
        keys_of_row: further keys, such as `source: measured`; may be empty.
        values: of all STS tasks and their average, or of the last ones.
    """
    tasks = [*evidence.tasks()["Avg."], "Avg."][-len(values) :]
    columns = ", ".join(f'{{label: "{task}", task: "{task}"}}' for task in tasks)
    numbers = ", ".join(f'"{value}"' for value in values)
    if keys_of_row:
        keys_of_row += ", "

    text = PAPER
    text = text.replace("NAME", name)
    text = text.replace("COLUMNS", columns)
    text = text.replace("VALUES", numbers)
    return text.replace("SOURCE, ", keys_of_row)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("aaa", "source: measured"),
        ("aaa", "source: rerun"),
        ("aaa", "source: unknown"),
        ("aaa", 'source: copied, from: "Gao 2021"'),
        ("aaa", ""),
        ("simcse", "source: measured"),
        ("zzz", "source: measured"),
    ],
)
def test_a_row_of_another_paper_takes_no_attribution(joined, name, source):
    joined(f"papers/{name}.yaml", paper_of(name, source))
    last_paper_read = printed_averages.rows_with_scores()[-1][0]
    assert last_paper_read == name, "after the papers that are named"
    assert seeds_and_place(SIMCSE) == (1, "InfoCSE, Table 2")

    joined(f"papers/{name}.yaml", paper_of(name, source, values=("77.77",)))
    assert seeds_and_place(SIMCSE) == (1, "InfoCSE, Table 2")


def test_a_method_that_no_named_paper_has_is_printed_by_its_own(joined):
    joined("evidence/methods.yaml", "encoders: {}\nmethods: {mine: {title: Mine}}\n")
    text = paper_of("later", "evidence: {method: mine}, source: measured")
    text = text.replace("{method: simcse}", "{method: simcse, params: {temperature: 0.1}}")
    joined("papers/later.yaml", text)
    key = MatchKey("mine", "bert-base", None)
    assert seeds_and_place(key) == (1, "Newcomer, Table 1")

    joined("papers/later.yaml", text.replace("source: measured", "source: unknown"))
    assert printed_averages.printed_by_authors(key) is None


def test_the_first_line_of_the_page_counts_the_sweeps_of_each_method_apart(joined):
    before = reach_text()
    assert before.startswith(
        "**Seed sweeps of unsup-SimCSE (50 seeds per encoder, of one source): no"
    )

    runs = "".join(f"      - {{seed: {n}, scores: {{Avg.: {70 + n}.5}}}}\n" for n in range(4))
    joined("evidence/aaa.yaml", SOURCE.replace(RUN, runs).replace("method: simcse", "method: ct"))
    of_ct = "**Seed sweeps of CT (4 seeds per encoder, of one source): on BERT-base 2 of 4"
    assert reach_text() == f"{before} {of_ct} reach the printed value.**"
    assert "the last checkpoint of at least half of the runs was the best" in sweeps_text()
    assert "of one re-implementation" not in sweeps_text()  # aaa does not say whose code it is


@pytest.fixture
def simcse():
    """A row of SimCSE on BERT-base."""
    grid = find_grid("infocse", "table2")
    return grid.rows[grid.row("SimCSE-BERTbase")]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"params": {"batch_size": 50, "steps": 5}}, SIMCSE),  # another budget
        ({"params": {"pooler": "cls"}}, SIMCSE._replace(pooler="cls")),
        ({"encoder": "bert-large"}, SIMCSE._replace(encoder="bert-large")),
        ({"params": {"temperature": 0.1}}, None),
        ({"variant": "code"}, None),
        ({"components": {"ami": {}}}, None),
        ({"sweep": {"negatives": "zeroed"}}, None),
    ],
)
def test_key_of_a_row(changes, key, simcse):
    recipe = simcse.run.model_copy(update=changes)
    assert evidence.key_of_row(simcse.model_copy(update={"run": recipe}), "bert-base") == key


def test_a_row_may_name_its_evidence(simcse):
    own = EvidenceKey(method="simcse", encoder="bert-large")
    named = simcse.model_copy(update={"run": None, "evidence": own})
    assert evidence.key_of_row(named, "bert-base") == SIMCSE._replace(encoder="bert-large")

    misspelt = simcse.model_copy(update={"evidence": EvidenceKey(method="consrt")})
    with pytest.raises(BadInput, match=r"SimCSE-BERTbase: evidence: .*Did you mean 'consert'"):
        evidence.key_of_row(misspelt, "bert-base")


def test_an_experiment_may_have_another_pooler(tmp_path):
    source = read(tmp_path, SOURCE.replace("    comparable", "    pooler: cls\n    comparable"))
    assert evidence.key_of(source.experiments[0]) == SIMCSE._replace(pooler="cls")


def test_printed_values_are_stated_only_where_papers_do_not_agree_on_one():
    in_papers = averages_in_papers()
    for name, method in evidence.evidence_names().methods.items():
        for encoder in method.printed:
            key = MatchKey(name, encoder, evidence.default_pooler(name))
            texts = in_papers.get(key, set())
            assert len(texts) != 1, f"{key}: papers/ prints {texts}"


def averages_in_papers():
    """Collect the averages over all STS sets that papers print, without re-runs, by what they
    measure."""
    texts: dict[MatchKey, set[str]] = {}
    for _, _, grid, row in printed_averages.rows_with_scores():
        average = row.values[-1]
        prints_all_sets = grid.evaluator == "sts" and len(grid.columns) == 8
        if prints_all_sets and row.source != "rerun" and average:
            key = evidence.key_of_row(row, grid.encoder)
            texts.setdefault(key, set()).add(average.text)
    return texts


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_best_of_k_is_the_mean_over_all_subsets(k):
    chosen_by = np.array([3.0, 1.0, 2.0, 6.0, 5.0, 4.0])
    reported = np.array([10.0, 30.0, 20.0, 60.0, 0.0, 40.0])
    reported_of_best = []
    for subset in combinations(range(6), k):
        best = max(subset, key=chosen_by.__getitem__)
        reported_of_best.append(reported[best])
    assert expected_of_best(k, chosen_by, reported) == pytest.approx(np.mean(reported_of_best))


def test_equally_good_runs_share_the_choice():
    assert expected_of_best(2, np.array([1.0, 1.0]), np.array([10.0, 20.0])) == 15


def test_spread_is_of_the_nearest_sweep():
    nearest = statistics.spread("bert-base", "Avg.", "simcse")
    assert nearest.source == "hppRC-simple-simcse"
    assert nearest.n == 50
    assert round(nearest.std, 2) == 0.84
    assert statistics.spread("bert-base", "STS-B").std > nearest.std
    assert statistics.spread("bert-base", "Avg.", "micse") == nearest, "miCSE has no sweep"
    assert statistics.spread("roberta-large", "stsb_dev") is not None
    assert statistics.spread("bert-base", "TransferAvg") is None
    assert statistics.spread("distilbert", "Avg.") is None


def test_the_assumed_deviations_are_those_that_papers_print():
    printed = printed_spread.deviations_on_part()
    assert len(printed) == 11
    root_mean_square = np.sqrt(np.mean(np.square(printed)))
    assert (round(root_mean_square, 1), np.median(printed)) == printed_spread.ASSUMED_DEVIATIONS


@pytest.mark.parametrize(
    ("encoder", "deviation", "share"),
    [
        ("bert-base", None, 1.0),
        ("bert-base", 0.35, 0.35 / 0.84),
        ("bert-large", 0.35, 0.35 / 0.84),
        ("bert-base", 0.9, 1.0),
        ("roberta-large", 0.5, 1.0),  # its runs deviate by 0.497
        ("roberta-large", 0.35, 0.35 / 0.497),
        ("roberta-base", 0.35, 1.0),  # its runs deviate by 0.21
        ("distilbert", 0.35, 1.0),  # nobody published a sweep
    ],
)
def test_other_encoders_deviate_less_in_proportion(encoder, deviation, share):
    """No encoder's deviation becomes less than the assumed one."""
    assert printed_spread.assumed_share(encoder, deviation) == pytest.approx(share, abs=2e-3)


@pytest.mark.parametrize("encoder", ["bert-base", "bert-large", "roberta-base", "roberta-large"])
def test_a_slightly_smaller_assumption_makes_deviations_slightly_smaller(encoder):
    deviations = np.linspace(0.1, 2, 1901)
    shares = [printed_spread.assumed_share(encoder, deviation) for deviation in deviations]
    assert 0 <= min(np.diff(shares)) <= max(np.diff(shares)) < 0.01


def test_tasks_of_one_run_vary_together_and_all_of_them_as_their_average():
    view = printed_view("infocse", "table2", "smoke")
    *tasks, average = view.rows[view.grid.row("SimCSE-BERTbase")]
    of_average = printed_spread.printed_variance(average)
    assert printed_spread.row_variance(tasks) == pytest.approx(of_average)

    two_tasks = tasks[:2]
    deviations = [math.sqrt(printed_spread.printed_variance(cell)[0]) for cell in two_tasks]
    variance, *_ = printed_spread.row_variance(two_tasks)
    assert variance == pytest.approx(np.mean(deviations) ** 2)


# ---------------------------------------------------------------- groups of runs


def published_run(seed=None, **scores):
    """Make a published run with scores, which are printed with two digits."""
    texts = {task.replace("Avg", "Avg."): f"{score:.2f}" for task, score in scores.items()}
    return evidence.PublishedRun(seed=seed, scores=texts)


def sweep_of(runs, printed=77.0):
    """Make a seed sweep of SimCSE from its runs."""
    of_source = [statistics.OthersRun(None, run) for run in runs]
    values = tuple(run.scores["Avg."].value for run in runs)
    group = statistics.Group(
        statistics.GroupKind.SWEEP, stats.summarise(values), (), tuple(of_source), values
    )
    value = Published(value=printed, text=f"{printed:.2f}")
    return statistics.Sweep(SIMCSE, group, printed_averages.AuthorsPrint(value, 1, None, None, ()))


DEV_AND_TEST = [(80.0, 75.0), (82.0, 77.0), (81.0, 78.0)]
SWEEP = sweep_of(
    [published_run(str(n), stsb_dev=dev, Avg=test) for n, (dev, test) in enumerate(DEV_AND_TEST)]
)


def test_what_picking_a_seed_adds_is_over_the_mean_of_all_seeds():
    """By hand for the best of 1, 2 and 3. The best on dev of two has 77, 78 or 77."""
    selection = selection_of(SWEEP, (1, 2, 3))
    mean = 230 / 3
    by_dev = [gain.by_dev for gain in selection.gains]
    by_test = [gain.by_test for gain in selection.gains]
    assert by_dev == pytest.approx([0, 232 / 3 - mean, 77 - mean])
    assert by_test == pytest.approx([0, 233 / 3 - mean, 78 - mean])
    assert selection.mean == pytest.approx(mean)


def test_a_seed_that_has_the_printed_value_reaches_it():
    assert [gain.reach for gain in selection_of(SWEEP, (1, 2, 3)).gains] == pytest.approx(
        [2 / 3, 1, 1]
    )


def test_no_more_seeds_are_picked_from_than_there_are():
    assert len(selection_of(SWEEP, (1, 3, 4, 5)).gains) == 2


def test_the_best_seed_of_a_sweep_by_dev_and_by_test():
    selection = selection_of(SWEEP, (1,))
    assert (selection.best_by_dev, selection.best_by_test) == (77.0, 78.0)
    assert selection.seeds == 3
    assert selection.correlation == pytest.approx(
        np.corrcoef(*zip(*DEV_AND_TEST, strict=True))[0, 1]
    )


def test_seeds_cannot_be_picked_if_a_run_states_no_score_on_dev():
    runs = [published_run("1", stsb_dev=80, Avg=75), published_run("2", Avg=77)]
    assert selection_of(sweep_of(runs), (1,)) is None


def test_a_bare_mean_is_judged_by_its_deviation():
    summary = stats.Summary(75.0, 0.5, 5)
    mean = statistics.Group(statistics.GroupKind.MEAN_ONLY, summary, ())
    printed = Published(value=80.0, text="80.00")
    assert mean.verdict(printed, 1) == stats.verdict_on(summary, printed, 1)
    assert mean.verdict(printed, 1).name == stats.LOWER


@pytest.mark.parametrize(("step", "name"), [(0.18, stats.AGREES), (0.21, stats.INCONCLUSIVE)])
def test_scores_of_others_are_percentages_unless_a_point_is_stated(step, name):
    """A further run is within t(2) · step · √(1 + 1/3) of the mean, which is 0.89 or 1.04. If it is
    more than a point, nothing agrees."""
    values = (70 - step, 70.0, 70 + step)
    group = statistics.Group(statistics.GroupKind.SWEEP, stats.summarise(values), (), (), values)
    assert group.verdict(Published(value=70.0, text="70.00"), 1).name == name


def test_runs_at_a_printed_value_reach_it():
    assert [SWEEP.runs.reach(value) for value in (74.0, 77.0, 77.01, 79.0)] == [3, 2, 1, 0]


@pytest.mark.parametrize(
    ("best_step", "steps", "is_last"),
    [(15625, 15625, True), (15500, 15625, False), (None, 15625, False), (None, None, False)],
)
def test_a_run_may_have_kept_its_last_step(best_step, steps, is_last):
    """Only if the source states both steps, and they are equal."""
    setup = evidence.Setup(steps=steps)
    source = evidence.EvidenceSource(who="somebody", date="2023", setup=setup)
    of_method = {"method": "simcse", "encoder": "bert-base", "comparable": True}
    found = evidence.Evidence("a", source, evidence.Experiment(**of_method))
    run = published_run(Avg=75.0).model_copy(update={"best_step": best_step})
    assert statistics.OthersRun(found, run).kept_last_step == is_last


def experiment(runs, **changes):
    """Write an experiment on Mirror-BERT with these averages, or the text in place of its runs.

    Nobody has published such runs.
    """
    keys = {"method": "mirror_bert", "encoder": "bert-base", "comparable": "true", **changes}
    lines = [f"    {key}: {value}" for key, value in keys.items()]
    lines[0] = lines[0].replace("    ", "  - ", 1)
    if isinstance(runs, str):
        return "\n".join([*lines, f"    {runs}", ""])
    lines.append("    runs:")
    for value in runs:
        lines.append(f"      - {{seed: {round(100 * value)}, scores: {{Avg.: {value}}}}}")
    return "\n".join([*lines, ""])


MIRROR_BERT = MatchKey("mirror_bert", "bert-base", "avg")
HEAD = SOURCE[: SOURCE.index("  - method")]


def write_experiments(joined, *experiments, name="aaa", head=HEAD):
    joined(f"evidence/{name}.yaml", head + "".join(experiments))


@pytest.mark.parametrize(
    ("text", "added"),
    [
        (experiment([70.11, 70.21]), {"comparable": 2, "sources": 1}),
        (experiment([70.11, 70.21], comparable="false"), {"other_runs": 2}),
        (experiment([70.11], sure="false"), {"other_runs": 1}),
        (experiment([70.11, 70.21, 70.31], kind="checkpoint"), {"checkpoints": 3}),
        (experiment([70.11], kind="authors"), {}),
        (experiment([70.11], setting="dropout 0.2"), {"other_runs": 1}),
        (experiment([70.11], method="bert"), {}),
        (experiment("runs: [{scores: {STS-B: 70.11}}]"), {"without_average": 1}),
        (experiment("summary: {n: 5, scores: {Avg.: 70.11}}"), {"means": 1}),
        (
            experiment("summary: {n: 5, scores: {Avg.: 70.11}}", comparable="false"),
            {"other_means": 1},
        ),
    ],
    ids=[
        "comparable",
        "other setup",
        "doubtful",
        "checkpoints",
        "of the authors",
        "another setting",
        "no training",
        "another score",
        "mean",
        "mean of another setup",
    ],
)
def test_published_scores_are_counted_by_what_they_can_be_used_for(text, added, joined):
    before = dataclasses.asdict(statistics.count_evidence())
    write_experiments(joined, text)
    after = dataclasses.asdict(statistics.count_evidence())
    assert {key: after[key] - before[key] for key in after if after[key] != before[key]} == added


def test_without_published_scores_every_count_is_0(monkeypatch):
    monkeypatch.setattr(evidence, "all_evidence", lambda: [])
    assert set(dataclasses.asdict(statistics.count_evidence()).values()) == {0}


def test_experiments_of_one_source_are_one_source(joined):
    before = statistics.count_evidence().sources
    write_experiments(joined, experiment([70.11]), experiment([71.11]))
    assert statistics.count_evidence().sources == before + 1


def kinds_and_sizes(key=MIRROR_BERT):
    return [(group.kind, group.summary.n) for group in statistics.groups(key)]


def test_groups_are_sweeps_by_size_then_single_runs_then_later_papers_then_means(joined):
    write_experiments(
        joined,
        experiment("summary: {n: 5, scores: {Avg.: 70.11±0.20}}"),
        experiment([68.11, 68.21], kind="paper"),
        experiment([70.11, 70.21, 70.31]),
        experiment([69.11, 69.21]),
        experiment([71.11, 71.21, 71.31, 71.41]),
    )
    kinds = statistics.GroupKind
    added = [
        (kinds.SWEEP, 4),
        (kinds.SWEEP, 3),
        (kinds.SINGLE, 2),
        (kinds.LATER, 2),
        (kinds.MEAN_ONLY, 5),
    ]
    assert kinds_and_sizes() == added


@pytest.mark.parametrize(
    "changes",
    [{"comparable": "false"}, {"sure": "false"}, {"kind": "checkpoint"}],
    ids=["other setup", "doubtful", "checkpoint"],
)
def test_runs_that_cannot_be_compared_are_in_no_group(changes, joined):
    write_experiments(joined, experiment([70.11, 70.21, 70.31], **changes))
    assert kinds_and_sizes() == []


def test_runs_without_a_seed_are_no_seed_sweep(joined):
    text = experiment([70.11, 70.21, 70.31]).replace("seed: 7011, ", "")
    write_experiments(joined, text)
    assert kinds_and_sizes() == [(statistics.GroupKind.SINGLE, 3)]


def test_a_paper_is_no_evidence_for_its_own_numbers(joined):
    of_paper = HEAD.replace(PLACE, 'paper: micse\ntables: ["1"]\n')
    write_experiments(joined, experiment([70.11], kind="paper"), head=of_paper)
    assert len(statistics.groups(MIRROR_BERT)) == 1
    assert statistics.groups(MIRROR_BERT, without_paper="micse") == []


def test_a_methods_own_sweep_is_preferred_to_a_larger_one(joined):
    write_experiments(
        joined, experiment([70.11, 70.21, 70.31]), experiment([71.1, 71.2, 71.3, 71.4])
    )
    own = statistics.spread("bert-base", "Avg.", "mirror_bert")
    assert (own.method, own.n) == ("mirror_bert", 4)
    assert statistics.spread("bert-base", "Avg.").n == 50


def test_runs_of_others_are_shown_in_the_unit_of_the_table(simcse):
    grid = find_grid("infocse", "table2")
    average = grid.columns[-1]
    as_percentage = statistics.others("infocse", grid, simcse, average)
    as_fraction = statistics.others(
        "infocse", grid.model_copy(update={"factor": 1}), simcse, average
    )
    assert as_fraction.summary.mean == pytest.approx(as_percentage.summary.mean / 100)
    assert as_fraction.summary.std == pytest.approx(as_percentage.summary.std / 100)
    assert as_fraction.values == pytest.approx([value / 100 for value in as_percentage.values])


# ---------------------------------------------------------------- runs of several sources

DEVIATING = [70.11, 70.21, 70.31]


def sources_of(pooled):
    return [(source.name, source.summary.n) for source in pooled.by_source]


def test_runs_of_three_sources_are_pooled_and_those_of_two_are_not(joined):
    write_experiments(joined, experiment(DEVIATING), name="aaa")
    write_experiments(joined, experiment([71.11]), name="bbb")
    assert statistics.pooled_group(MIRROR_BERT) is None

    write_experiments(joined, experiment([72.11], kind="paper"), name="ccc")
    pooled = statistics.pooled_group(MIRROR_BERT)
    assert sources_of(pooled) == [("aaa", 3), ("bbb", 1), ("ccc", 1)]
    assert pooled.summary.mean == pytest.approx((70.21 + 71.11 + 72.11) / 3)
    assert pooled.summary.n == 5


def test_experiments_of_one_source_are_pooled_as_one(joined):
    write_experiments(joined, experiment(DEVIATING), experiment([71.11]), experiment([72.11]))
    assert len(statistics.groups(MIRROR_BERT)) == 2
    assert statistics.pooled_group(MIRROR_BERT) is None


def test_people_whose_runs_one_source_has_are_pooled_as_sources(joined):
    text = experiment(DEVIATING).replace("seed: 7031", "seed: 7031, by: Ann")
    write_experiments(joined, text, experiment([71.11]).replace("seed: 7111", "by: Bob"))
    pooled = statistics.pooled_group(MIRROR_BERT)
    assert sources_of(pooled) == [("aaa", 2), ("aaa, Ann", 1), ("aaa, Bob", 1)]


def test_a_bare_mean_is_pooled_unless_its_source_gives_runs(joined):
    mean = experiment("summary: {n: 5, scores: {Avg.: 72.11}}")
    write_experiments(joined, experiment(DEVIATING), mean, name="aaa")
    write_experiments(joined, experiment([71.11]), name="bbb")
    write_experiments(joined, mean, name="ccc")
    pooled = statistics.pooled_group(MIRROR_BERT)
    assert sources_of(pooled) == [("aaa", 3), ("bbb", 1), ("ccc", 5)]
    assert pooled.summary.n == 9
    assert len(pooled.values) == 4


def test_a_paper_is_not_pooled_for_its_own_numbers():
    names = [name for name, _ in sources_of(statistics.pooled_group(SIMCSE))]
    without = statistics.pooled_group(SIMCSE, without_paper="micse")
    assert "miCSE-T1" in names
    assert [name for name, _ in sources_of(without)] == [n for n in names if n != "miCSE-T1"]


def test_a_table_judges_a_printed_value_by_pooled_sources_in_its_unit(simcse):
    grid = find_grid("infocse", "table2")
    as_fractions = grid.model_copy(update={"factor": 1})
    shown = statistics.others("infocse", as_fractions, simcse, grid.columns[-1])
    assert shown.kind == statistics.GroupKind.POOLED
    in_percent = statistics.pooled_group(SIMCSE)
    verdict = in_percent.verdict(Published(value=76.25, text="76.25"), 1)
    scaled = shown.verdict(Published(value=0.7625, text="0.7625"), 1, point=0.01)
    assert scaled.name == verdict.name
    assert (100 * scaled.low, 100 * scaled.high) == pytest.approx((verdict.low, verdict.high))
    first = shown.by_source[0].summary
    assert first.mean == pytest.approx(in_percent.by_source[0].summary.mean / 100)


def test_the_page_says_first_what_all_sources_say_of_a_printed_value():
    pooled = statistics.pooled_group(SIMCSE)
    sources = len(pooled.by_source)
    assert pooled_text().startswith(
        f"**unsup-SimCSE on BERT-base: 76.25 is printed; the means of {sources} sources"
        f" ({pooled.summary.n} runs) average "
    )


def test_the_best_of_several_runs_starts_at_the_mean_over_sources():
    pooled, *_ = statistics.pooled_methods()
    scores = best_scores(pooled)
    assert len(scores.by_dev) == len(scores.by_test) == 20
    assert scores.by_dev[0] == pytest.approx(pooled.runs.effects.mean)
    assert list(scores.by_test) == sorted(scores.by_test)


@pytest.mark.parametrize(("printed", "count"), [("75.0", 1), ("75.6", 2), ("77.0", None)])
def test_the_best_reaches_a_printed_value_if_it_would_be_printed_so(printed, count):
    """75.56 would be printed as 75.6."""
    value = Published(value=float(printed), text=printed)
    assert runs_to_reach(value, [75.11, 75.56, 75.91]) == count


# ---------------------------------------------------------------- averages that rows print


def average_of(values, extra_column=None, **row):
    """Read the average of a row on two tasks and their average, in a table of five seeds."""
    columns = [{"label": task, "task": task} for task in ("STS12", "STS13", "Avg.")]
    columns[2]["seeds"] = 3
    if extra_column is not None:
        columns.append(extra_column)
    content = {"label": "A", "missing": "not here", "source": "measured", "values": values} | row
    grid = Table.model_validate({"title": "T", "columns": columns, "rows": [content], "seeds": 5})
    printed_row = printed_averages.PrintedRow("m", "table1", grid, grid.rows[0])
    return printed_averages.average_of_row(printed_row)


def test_cells_that_print_nothing_are_no_scores_of_a_row():
    assert average_of(["70.00", "71.00", "70.50"]).tests == 3
    assert average_of(["70.00", None, "70.50"]).tests == 2
    assert average_of(["70.00", "71.00", None]) is None


def test_columns_that_evidence_cannot_have_are_no_scores_of_a_row():
    pearson = {"label": "r", "task": "STS12", "metric": "pearson"}
    assert average_of(["70.00", "71.00", "70.50", "69.00"], extra_column=pearson).tests == 3


def test_scores_of_another_evaluator_are_scores_of_a_row():
    transfer = {"label": "MR", "task": "MR", "evaluator": "transfer"}
    assert average_of(["70.00", "71.00", "70.50", "81.00"], extra_column=transfer).tests == 4


def test_a_columns_own_number_of_seeds_counts():
    assert average_of([None, None, "70.50"]).seeds == 3


def test_of_rows_with_as_many_scores_a_measured_one_is_preferred():
    copied = average_of(["70.00", "71.00", "70.50"], source="copied", **{"from": "X"})
    measured = average_of(["70.00", "71.00", "70.50"])
    fewer = average_of([None, None, "70.50"])
    assert max([fewer, copied, measured, fewer], key=lambda average: average.preference) == measured
    assert copied.preference > fewer.preference


def test_rows_with_as_many_scores_and_another_average_are_named_once_per_value():
    rows = [average_of(["70.00", "71.00", f"70.{n}"]) for n in (50, 40, 40, 60)]
    fewer = average_of([None, None, "70.70"])
    other_rows = printed_averages.rows_with_another_value([*rows, fewer], rows[0].value)
    assert [row.value.text for row in other_rows] == ["70.40", "70.60"]


# ---------------------------------------------------------------- variance of printed values

SPREAD = statistics.Spread(std=0.40, n=11, method="simcse", source="made-up")
ON_TASKS = [{"label": "STS12", "task": "STS12"}, {"label": "STS13", "task": "STS13"}]
IN_SIZES = [{"label": size, "task": "Avg.", "size": size} for size in ("1%", "10%")]


@pytest.fixture
def printed_cells(tmp_path, monkeypatch):
    """Make the printed cells of the first row of a made-up table."""
    monkeypatch.setattr(printed_spread, "seed_spread", lambda *_: SPREAD)

    def cells(values, columns, method="simcse", **settings):
        rows = {"A": (method, values), "B": ("ct", values)}
        paper = {"name": "m", "tables": {"1": table(rows, columns, **settings)}}
        made_up(tmp_path, monkeypatch, paper)
        return printed_view("m", "table1", SCALE).rows[0]

    yield cells
    monkeypatch.undo()
    caches.clear()


def test_deviations_of_one_run_add_up(printed_cells):
    cells = printed_cells(["70.00±0.20", "71.00±0.40"], ON_TASKS, seeds=5)
    variance = printed_spread.row_variance(cells)
    assert variance.value == pytest.approx(((0.2 + 0.4) / 2) ** 2 / 5)
    assert variance.df == 4


def test_variances_of_runs_on_different_sentences_add_up(printed_cells):
    cells = printed_cells(["70.00±0.20", "71.00±0.40"], IN_SIZES, seeds=5)
    variance = printed_spread.row_variance(cells)
    assert variance.value == pytest.approx((0.2**2 + 0.4**2) / 5 / 4)
    assert variance.df == pytest.approx((0.04 + 0.16) ** 2 / ((0.04**2 + 0.16**2) / 4))


def test_one_run_varies_more_than_the_mean_over_printed_seeds(printed_cells):
    cells = printed_cells(["70.00±0.20", "71.00±0.40"], ON_TASKS, seeds=5)
    of_mean = printed_spread.row_variance(cells)
    of_one_run = printed_spread.row_variance(cells, of_one_run=True)
    assert of_one_run.value == pytest.approx(5 * of_mean.value)
    assert of_one_run.df == of_mean.df


def test_a_value_without_a_deviation_has_that_of_others_seeds(printed_cells):
    (cell,) = printed_cells(["70.00"], ON_TASKS[:1])
    assert printed_spread.printed_variance(cell) == pytest.approx((0.4**2, 10))


def test_the_deviation_of_one_printed_run_does_not_count(printed_cells):
    (cell,) = printed_cells(["70.00±0.20"], ON_TASKS[:1], seeds=1)
    assert printed_spread.printed_variance(cell) == pytest.approx((0.4**2, 10))


def test_a_deviation_of_others_is_in_the_unit_of_the_table(printed_cells):
    (cell,) = printed_cells(["0.70"], ON_TASKS[:1], factor=1)
    assert printed_spread.printed_variance(cell).value == pytest.approx(0.004**2)


@pytest.mark.parametrize(
    "column",
    [
        {"label": "x", "task": "STS12", "size": "1%"},
        {"label": "x", "task": "STS12", "metric": "pearson"},
    ],
    ids=["fewer sentences", "another metric"],
)
def test_nobody_published_seeds_of_other_scores(column, printed_cells):
    (cell,) = printed_cells(["70.00"], [column])
    assert printed_spread.printed_variance(cell) is None


def test_seeds_of_another_kind_of_data_say_nothing(printed_cells):
    (cell,) = printed_cells(["70.00"], ON_TASKS[:1], method="simcse_sup")
    assert printed_spread.printed_variance(cell) is None


def test_seeds_of_a_method_that_is_not_here_count(printed_cells, monkeypatch):
    """Nothing is known of its training data."""
    of_another = SPREAD._replace(method="sncse")
    monkeypatch.setattr(printed_spread, "seed_spread", lambda *_: of_another)
    (cell,) = printed_cells(["70.00"], ON_TASKS[:1])
    assert printed_spread.printed_variance(cell).value == pytest.approx(0.4**2)


def test_what_is_not_trained_does_not_vary(printed_cells):
    (cell,) = printed_cells(["70.00"], ON_TASKS[:1], method="bert")
    assert printed_spread.printed_variance(cell) == (0.0, math.inf)


def test_a_row_with_an_unknown_variance_has_none(printed_cells):
    cells = printed_cells(["70.00±0.20", "71.00"], IN_SIZES, seeds=5)
    assert printed_spread.row_variance(cells) is None


def test_a_difference_has_the_variances_of_both_values(printed_cells):
    columns = [*ON_TASKS[:1], {"label": "gain", "delta": "STS12"}]
    _, gain = printed_cells(["70.00±0.20", "1.00"], columns, seeds=5, baseline="B")
    assert printed_spread.printed_variance(gain).value == pytest.approx(2 * 0.2**2 / 5)


def test_the_variance_of_a_mean_of_tasks_is_not_known_from_its_tasks(printed_cells):
    """They are scores of one run, so they are not independent."""
    columns = [*ON_TASKS, {"label": "mean", "mean": True}]
    *_, mean = printed_cells(["70.00±0.20", "71.00±0.20", "70.50"], columns, seeds=5)
    assert printed_spread.printed_variance(mean) is None
