"""Evidence: what a source's file is refused for, which evidence is of a row, and the statistics over others' runs."""

import csv
import re
from contextlib import nullcontext
from itertools import combinations

import numpy as np
import pytest

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.plan import catalog, evidence
from csebench.plan.evidence import Key
from csebench.plan.grids import find_grid
from csebench.plan.papers import EvidenceKey
from csebench.report import claims, evidence_page, printed_spread, stats
from csebench.report import evidence as statistics
from csebench.report.cells import printed_view

ENCODERS = ["BERT-base", "BERT-large", "RoBERTa-base", "RoBERTa-large"]
SIMCSE = Key("simcse", "bert-base", "cls_before_pooler")
SOURCE = """\
who: somebody
repository: somebody/simcse
commit: 0123456789abcdef0123456789abcdef01234567
path: README.md#L1
licence: MIT
date: 2023-01-01
experiments:
  - method: simcse
    encoder: bert-base
    comparable: true
    setup: {batch_size: 64, learning_rate: 3e-5, steps: 15625}
    summary: {n: 3, scores: {Avg.: 75.00±1.00}}
    runs:
      - {seed: 1, best_step: 250, scores: {STS-B: 77.10, Avg.: 74.00}}
      - {seed: 2, scores: {STS-B: 77.20, Avg.: 75.00}}
      - {seed: 3, scores: {STS-B: 77.30, Avg.: 76.00}}
"""


def read(tmp_path, text):
    path = tmp_path / "somebody.yaml"
    path.write_text(text, encoding="utf-8")
    return evidence.source(path)


# ---------------------------------------------------------------- what a file is refused for


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("STS-B: 77.20", "STSB: 77.20", 15, "unknown task 'STSB'. Did you mean 'STS-B'?"),
        ("STS-B: 77.20", "STS-B: 177.20", 15, "out of range (-100 to 100)"),
        ("STS-B: 77.20", "MR: -1.00", 15, "out of range (0 to 100)"),
        ("STS-B: 77.20, Avg.: 75.00", "STS-B: 0.7720, Avg.: 0.7500", 15, "write correlations x 100"),
        ("STS-B: 77.20", "STS-B: high", 15, "not a number"),
        ("STS-B: 77.20", "STS-B: 77.20±0.10", 15, "one run has no ±"),
        ("seed: 2", "seed: 1", 15, "the same run twice: seed 1 as in line 14"),
        ("STS-B: 77.30, Avg.: 76.00", "STS-B: 77.20, Avg.: 75.00", 16, "the same run twice: all scores as in line 15"),
        ("n: 3", "n: 4", 12, "n is 4, but there are 3 runs"),
        ("best_step: 250", "best_step: 20000", 14, "20000 of a run of 15625 steps"),
        ("best_step: 250", "best_step: -1", 14, "greater than or equal to 0"),
        ("method: simcse", "method: simsce", 8, "Did you mean 'simcse'?"),
        ("encoder: bert-base", "encoder: bert-bass", 9, "Did you mean 'bert-base'?"),
        ("comparable: true", "comparible: true", 10, "Did you mean 'comparable'?"),
        ("    comparable: true\n", "", 8, "Field required"),
        ("licence: MIT", "who: somebody else", 5, "key 'who' occurs twice"),
        ("seed: 3", "seed: 3, seed: 4", 16, "key 'seed' occurs twice"),
        ("path: README.md#L1\n", "", 1, "needs `repository`, `commit` and `path`"),
        ("date: 2023-01-01", "date: [2023", 7, "not valid YAML"),
    ],
)
def test_refusals_name_file_and_line(tmp_path, before, after, line, words):
    assert before in SOURCE
    with pytest.raises(BadInput) as refused:
        read(tmp_path, SOURCE.replace(before, after, 1))
    assert f"somebody.yaml: line {line}: " in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.parametrize(("stated", "refused"), [("", True), ("steps: 30000", False)])
def test_steps_of_a_whole_source_bound_its_best_steps(tmp_path, stated, refused):
    """Unless an experiment states its own."""
    text = SOURCE.replace("steps: 15625", stated).replace("best_step: 250", "best_step: 20000")
    text = text.replace("experiments:", "setup: {steps: 15625}\nexperiments:")
    with pytest.raises(BadInput, match="20000 of a run of 15625") if refused else nullcontext():
        read(tmp_path, text)


@pytest.mark.parametrize("name", evidence.sources())
def test_averages_and_summaries_fit_their_runs(name):
    """To their printed digits; an average that its columns contradict needs `sure: false`."""
    for experiment in evidence.sources()[name].experiments:
        for run in experiment.runs if experiment.sure else ():
            for average, columns in evidence.tasks().items():
                if run.scores.keys() >= {average, *columns}:
                    printed, mean = run.scores[average], np.mean([run.scores[task].value for task in columns])
                    assert printed.value == pytest.approx(mean, abs=printed.unit + 1e-9), (run.seed, average)
        summary = experiment.summary
        for task, printed in summary.scores.items() if summary and experiment.runs else ():
            scores = [run.scores[task] for run in experiment.runs if task in run.scores]
            assert len(scores) == summary.n, task
            values, slack = [score.value for score in scores], max(score.unit for score in scores) + 1e-9
            assert printed.value == pytest.approx(np.mean(values), abs=printed.unit / 2 + slack), task
            if printed.std is not None:
                unit = 10.0 ** -len(printed.text.partition("±")[2].strip().partition(".")[2])
                assert printed.std == pytest.approx(np.std(values, ddof=1), abs=unit / 2 + slack), task


def test_source_of_a_paper_that_there_is_not(tmp_path):
    place = SOURCE[SOURCE.index("repository") : SOURCE.index("licence")]
    with pytest.raises(BadInput, match=r"line 2: unknown paper 'micsee'. Did you mean 'micse'"):
        read(tmp_path, SOURCE.replace(place, 'paper: micsee\ntables: ["1"]\n'))


def test_a_new_file_is_a_new_source(tmp_path, monkeypatch):
    for name in ("methods", "checkpoints"):
        (tmp_path / f"{name}.yaml").write_bytes((ROOT / "evidence" / f"{name}.yaml").read_bytes())
    (tmp_path / "somebody.yaml").write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(evidence, "folder", lambda: tmp_path)
    caches.clear()
    try:
        assert [group.summary.n for group in statistics.groups(SIMCSE)] == [3]
        assert "**0 of 3 runs reach the printed 76.25**" in evidence_page.page()
    finally:
        caches.clear()


# ---------------------------------------------------------------- which evidence is of a row


def row(paper_name, table, label):
    grid = find_grid(paper_name, table)
    return grid, grid.rows[grid.row(label)]


@pytest.mark.parametrize(
    ("paper_name", "table", "label", "key"),
    [
        ("infocse", "table2", "SimCSE-BERTbase", ("simcse", "bert-base")),
        ("infocse", "table2", "SimCSE-BERTlarge", ("simcse", "bert-large")),
        ("micse", "table1", "SimCSE (Gao et al., 2021)", ("simcse", "bert-base")),  # another budget
        ("infocse", "table2", "ConSERTlarge", ("consert", "bert-large")),  # named: it has no recipe
        ("infocse", "table2", "InfoCSE-BERTlarge", ("infocse", "bert-large")),  # named: its recipe sets a component
        ("micse", "table3", "AMI+SimCSE", None),  # a component more
        ("micse", "table4", "SimCSE (w/o negatives)", None),  # a sweep
        ("msse", "table4", "w/o L_DCM", None),  # a parameter of the method
        ("micse", "table1", "GloVe (avg.)", None),
    ],
)
def test_key_of_a_row(paper_name, table, label, key):
    grid, one_row = row(paper_name, table, label)
    derived = evidence.key_of_row(one_row, grid.encoder)
    assert (derived and derived[:2]) == key


def test_key_that_a_row_names_must_exist():
    grid, one_row = row("infocse", "table2", "ConSERTlarge")
    misspelt = one_row.model_copy(update={"evidence": EvidenceKey(method="consrt")})
    with pytest.raises(BadInput, match=r"ConSERTlarge: evidence: .*Did you mean 'consert'"):
        evidence.key_of_row(misspelt, grid.encoder)


def test_printed_values_are_stated_only_where_papers_do_not_agree_on_one():
    in_papers: dict[Key, set[str]] = {}
    for _, _, grid, one_row in statistics.rows():
        average = one_row.values[-1]
        if grid.evaluator == "sts" and len(grid.columns) == 8 and one_row.source != "rerun" and average:
            in_papers.setdefault(evidence.key_of_row(one_row, grid.encoder), set()).add(average.text)
    for name, method in evidence.names().methods.items():
        for encoder in method.printed:
            key = Key(name, encoder, evidence.default_pooler(name))
            assert len(in_papers.get(key, ())) != 1, f"{key}: papers/ prints {in_papers[key]}"


# ---------------------------------------------------------------- statistics


def test_simcse_on_bert_base():
    sweep, single, later, mean_only = statistics.groups(SIMCSE)
    assert (sweep.kind, sweep.summary.n) == (statistics.SWEEP, 50)
    assert (round(sweep.summary.mean, 2), round(sweep.summary.std, 2)) == (75.11, 0.84)
    assert sweep.reach(76.25) == 5
    assert single.kind == statistics.SINGLE and later.kind == statistics.LATER
    assert mean_only.summary == stats.Summary(74.33, None, 3)


def test_unsure_and_not_comparable_runs_take_no_part():
    names = {name for group in statistics.groups(SIMCSE) for name in group.sources}
    assert "HYU-NLP" not in names  # comparable, but its average contradicts its columns
    assert "juihuichung" not in names
    assert "gs25058" not in names


@pytest.mark.parametrize(
    ("encoder", "reach", "kept", "verdict"),
    [
        ("bert-large", 0, 5, stats.REPRODUCED),
        ("roberta-base", 0, 50, stats.LOWER),
        ("roberta-large", 0, 35, stats.LOWER),
    ],
)
def test_simcse_on_the_other_encoders(encoder, reach, kept, verdict):
    key = SIMCSE._replace(encoder=encoder)
    sweep, value = statistics.groups(key)[0], statistics.printed_by_authors(key)
    assert (sweep.reach(value.value.value), sweep.kept_last_step) == (reach, kept)
    assert stats.verdict_on(sweep.summary, value.value, value.seeds).name == verdict


def test_verdict_on_a_summary_is_that_on_its_values():
    values, value = [74.0, 75.0, 76.5, 75.5], statistics.printed_by_authors(SIMCSE).value
    assert stats.verdict_on(stats.summarise(values), value) == stats.verdict(values, value)


def test_verdict_needs_a_deviation():
    verdict = stats.verdict_on(stats.Summary(74.33, None, 3), statistics.printed_by_authors(SIMCSE).value)
    assert verdict.name == stats.NOT_COMPARABLE


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_best_of_k_is_the_mean_over_all_subsets(k):
    by, of = np.array([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]), np.array([10.0, 30.0, 20.0, 60.0, 0.0, 40.0])
    subsets = [of[max(subset, key=lambda i: by[i])] for subset in combinations(range(6), k)]
    assert statistics.expected_of_best(k, by, of) == pytest.approx(np.mean(subsets))


def test_ties_share_their_chance():
    assert statistics.expected_of_best(2, np.array([1.0, 1.0]), np.array([10.0, 20.0])) == 15


def test_selection_of_simcse():
    sweep = statistics.groups(SIMCSE)[0]
    picked = statistics.selection(sweep, 76.25)
    assert picked.correlation == pytest.approx(0.745, abs=5e-4)
    assert picked.by_dev[1] == picked.by_test[1] == pytest.approx(sweep.summary.mean)
    assert picked.by_test[50] == max(sweep.values) >= picked.by_dev[50]
    assert [round(picked.reach[k], 2) for k in (1, 3, 5, 10)] == [0.10, 0.24, 0.35, 0.54]


def test_selection_needs_dev_scores():
    assert statistics.selection(statistics.groups(SIMCSE)[1], 76.25) is None


def test_spread_is_of_the_nearest_sweep():
    nearest = statistics.spread("bert-base", "Avg.", "simcse")
    assert (nearest.n, nearest.source, round(nearest.std, 2)) == (50, "hppRC-simple-simcse", 0.84)
    assert statistics.spread("bert-base", "STS-B").std > nearest.std
    assert statistics.spread("bert-base", "Avg.", "micse") == nearest  # none of its own
    assert statistics.spread("roberta-large", "stsb_dev") is not None


@pytest.mark.parametrize(("encoder", "score"), [("bert-base", "TransferAvg"), ("distilbert", "Avg.")])
def test_spread_that_nobody_published(encoder, score):
    assert statistics.spread(encoder, score) is None


# ---------------------------------------------------------------- for a cell of a table


def others(paper_name, table, label, column):
    grid, one_row = row(paper_name, table, label)
    return statistics.others(paper_name, grid, one_row, grid.columns[grid.column(column)])


def test_others_of_a_cell():
    cell = others("infocse", "table2", "SimCSE-BERTbase", "Avg.")
    assert (cell.summary.n, round(cell.summary.mean, 2), round(cell.summary.std, 2)) == (50, 75.11, 0.84)
    assert cell.verdict.name == stats.REPRODUCED
    assert "no gradient clipping" in cell.differs


def test_others_of_a_transfer_task_are_not_scores_on_dev_folds():
    cell = others("infocse", "table10", "SimCSE", "Avg.")
    assert (cell.summary.n, cell.summary.mean, cell.sources) == (1, 85.84, ["InforMin-CL-T2"])
    assert cell.verdict.name == stats.TOO_FEW


def test_a_paper_is_no_other_of_itself():
    assert others("micse", "table2", "CT (Carlsson et al., 2021)", "100%") is None
    assert others("infocse", "table2", "CT-BERTbase", "Avg.").sources == ["miCSE-T1"]


@pytest.mark.parametrize(
    ("paper_name", "table", "label", "column"),
    [
        ("micse", "table2", "SimCSE (Gao et al., 2021)", "0.1%"),  # a smaller training set
        ("micse", "table3", "AMI+SimCSE", "100%"),
        ("infocse", "table3", "SimCSE-base", "scifact"),
    ],
)
def test_cells_without_others(paper_name, table, label, column):
    assert others(paper_name, table, label, column) is None


# ---------------------------------------------------------------- for claims on print


@pytest.mark.parametrize(
    ("name", "table", "label", "column", "spread"),
    [
        ("infocse", "table2", "SimCSE-BERTbase", "Avg.", ("bert-base", "Avg.")),
        ("infocse", "table2", "DiffCSE-BERTlarge", "STS-B", ("bert-large", "STS-B")),  # of another method's seeds
        ("informin_cl", "table2", "SCD-RoBERTa_base", "Avg.", ("roberta-base", "Avg.")),  # which nothing runs here
        ("infocse", "table9", "SimCSE", "cls_before_pooler", ("bert-base", "stsb_dev")),
        ("infocse", "table10", "SimCSE", "Avg.", None),  # nobody published seeds of an accuracy
        ("infocse", "table10", "Skip-thought", "Avg.", None),
        ("infocse", "table3", "SimCSE-base", "scifact", None),
        ("infocse", "table1", "SimCSE-BERTbase", "STS-B", None),  # supervised, of which there is no sweep
        ("msse", "table3", "MSSE", "Avg.", None),
    ],
)
@pytest.mark.parametrize("scale", ["smoke", "paper"])
def test_single_values_get_the_spread_of_seeds_that_others_published(name, table, label, column, spread, scale):
    shown = printed_view(name, table, scale)
    cell = shown.rows[shown.grid.row(label)][shown.grid.column(column)]
    nearest = printed_spread.nearest_spread(cell, cell.plan.column.task)
    assert nearest == (spread and statistics.spread(*spread))
    if nearest is None:
        assert printed_spread.printed_variance(cell).value is None
    else:
        variance = printed_spread.printed_variance(cell)
        assert variance.part == (pytest.approx(nearest.std**2), nearest.n - 1)


def test_print_is_judged_the_same_whatever_a_scale_can_run():
    for name in catalog.paper_names():
        for claim in catalog.paper(name).claims:
            judged = [claims.judge_print(name, claim, scale) for scale in ("smoke", "mini", "paper")]
            assert judged[0] == judged[1] == judged[2]


# ---------------------------------------------------------------- the page


def test_readme_opens_with_numbers_of_the_page():
    """Every number of the sentences under README's figure, computed from the runs that the figure shows."""
    opening = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    with (ROOT / "results/evidence.csv").open(encoding="utf-8") as file:
        runs = [run for run in csv.DictReader(file) if run["group"] == statistics.SWEEP]
    scores = {encoder: [float(r["score"]) for r in runs if r["encoder"] == encoder] for encoder in ENCODERS}
    printed = {run["encoder"]: run["printed"] for run in runs}
    reach = {name: sum(score >= float(printed[name]) for score in scores[name]) for name in ENCODERS}
    last = {name: sum(int(r["keeps_last_step"]) for r in runs if r["encoder"] == name) for name in ENCODERS}
    base, *others = ENCODERS
    first = [printed[base], len(scores[base]), f"{np.mean(scores[base]):.2f}", f"{np.std(scores[base], ddof=1):.2f}"]
    second = [len(scores["BERT-large"]), last["RoBERTa-base"], len(scores["RoBERTa-base"]), last["RoBERTa-large"]]
    assert [reach[name] for name in others] == [0, 0, 0]
    assert {len(of_encoder) for of_encoder in scores.values()} == {50}
    assert re.findall(r"\d+(?:\.\d+)?", opening) == [str(number) for number in (*first, reach[base], *second)]
