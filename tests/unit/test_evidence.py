"""Evidence: what a source's file must hold and why it is refused, which evidence belongs to a row,
and statistics of others' runs."""

import math
from itertools import combinations

import numpy as np
import pytest

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.base.yaml_lines import read_with_lines
from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import MatchKey
from csebench.plan.grids import find_grid
from csebench.plan.schema.paper import EvidenceKey
from csebench.report.numbers import others as statistics
from csebench.report.numbers import printed_averages, printed_spread
from csebench.report.numbers.cells import printed_view
from csebench.report.numbers.selection import expected_of_best
from csebench.report.words.evidence import print_place, reach_text, sweeps_text

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
    assert before.startswith("**In 3 of 4 seed sweeps of unsup-SimCSE no run reaches")

    runs = "".join(f"      - {{seed: {n}, scores: {{Avg.: {70 + n}.5}}}}\n" for n in range(4))
    joined("evidence/aaa.yaml", SOURCE.replace(RUN, runs).replace("method: simcse", "method: ct"))
    of_ct = "**In 0 of 1 seed sweeps of CT no run reaches the printed value**; on BERT-base 2 of 4"
    assert reach_text() == f"{before} {of_ct} do."
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
        ("roberta-large", 0.5, 1.0),  # its runs deviate by 0.4962
        ("roberta-large", 0.35, 0.35 / 0.84),
        ("roberta-base", 0.35, 1.0),  # its runs deviate by 0.21
        ("distilbert", 0.35, 1.0),  # nobody published a sweep
    ],
)
def test_other_encoders_deviate_less_in_proportion(encoder, deviation, share):
    assert printed_spread.assumed_share(encoder, deviation) == pytest.approx(share, abs=2e-3)


def test_tasks_of_one_run_vary_together_and_all_of_them_as_their_average():
    view = printed_view("infocse", "table2", "smoke")
    *tasks, average = view.rows[view.grid.row("SimCSE-BERTbase")]
    of_average = printed_spread.printed_variance(average)
    assert printed_spread.row_variance(tasks) == pytest.approx(of_average)

    two_tasks = tasks[:2]
    deviations = [math.sqrt(printed_spread.printed_variance(cell)[0]) for cell in two_tasks]
    variance, *_ = printed_spread.row_variance(two_tasks)
    assert variance == pytest.approx(np.mean(deviations) ** 2)
