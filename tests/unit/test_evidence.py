"""Evidence: what a source's file is refused for, which evidence is of a row, and the statistics over others' runs."""

import math
import re
import runpy
from itertools import combinations

import numpy as np
import pytest
from made_up import use_project

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.files import read_with_lines
from csebench.base.project import ROOT
from csebench.plan import catalog, evidence
from csebench.plan.evidence import Key
from csebench.plan.grids import find_grid
from csebench.plan.papers import EvidenceKey
from csebench.report import claims, printed_spread, stats
from csebench.report import others as statistics
from csebench.report.cells import printed_view
from csebench.report.pages.evidence import group_rows

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
    return read_with_lines(path, evidence.Source, as_written=True)[0]


# ---------------------------------------------------------------- sources


PLACE = SOURCE[SOURCE.index("repository") : SOURCE.index("licence")]


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("STS-B: 77.20", "STSB: 77.20", 15, "unknown task 'STSB'. Did you mean 'STS-B'?"),
        ("STS-B: 77.20", "STS-B: 177.20", 15, "out of range (-100 to 100)"),
        ("STS-B: 77.20", "MR: -1.00", 15, "out of range (0 to 100)"),
        ("STS-B: 77.20, Avg.: 75.00", "STS-B: 0.7720, Avg.: 0.7500", 15, "write correlations x 100"),
        ("STS-B: 77.20", "STS-B: high", 15, "not a number"),
        ("STS-B: 77.20", "STS-B: 77.20±0.10", 15, "one run has no ±"),
        ("{Avg.: 75.00±1.00}", "{}", 12, "at least 1 item"),
        ("best_step: 250", "best_step: -1", 14, "greater than or equal to 0"),
        ("method: simcse", "method: simsce", 8, "Did you mean 'simcse'?"),
        ("encoder: bert-base", "encoder: bert-bass", 9, "Did you mean 'bert-base'?"),
        ("comparable: true", "comparible: true", 10, "Did you mean 'comparable'?"),
        ("path: README.md#L1\n", "", 1, "needs `repository`, `commit` and `path`"),
        ("path: README.md#L1\n", "path: README.md#L1\nthread: 3\n", 1, "needs `repository`, `commit` and `path`"),
        (PLACE, 'paper: micsee\ntables: ["1"]\n', 2, "unknown paper 'micsee'. Did you mean 'micse'"),
    ],
)
def test_refusals_name_file_and_line(tmp_path, before, after, line, words):
    assert before in SOURCE
    with pytest.raises(BadInput) as refused:
        read(tmp_path, SOURCE.replace(before, after, 1))
    assert f"somebody.yaml: line {line}: " in str(refused.value)
    assert words in str(refused.value)


def test_an_experiment_overrides_the_setup_of_its_source(tmp_path):
    text = SOURCE.replace("experiments:", "setup: {steps: 1, gpu: V100, differs: one}\nexperiments:")
    source = read(tmp_path, text.replace("3e-5,", "3e-5, differs: two,"))
    both = evidence.Evidence("somebody", source, source.experiments[0]).setup
    assert (both.batch_size, both.steps, both.gpu, both.differs) == ("64", 15625, "V100", "one; two")


def test_a_low_score_is_no_fraction(tmp_path):
    assert read(tmp_path, SOURCE.replace("STS-B: 77.20", "STS-B: 0.20"))


def test_a_source_links_to_its_commit_or_thread(tmp_path):
    assert read(tmp_path, SOURCE).url == f"https://github.com/somebody/simcse/tree/{'0123456789abcdef' * 2}01234567"
    thread = SOURCE.replace(PLACE, "repository: somebody/simcse\nthread: 3\n")
    assert read(tmp_path, thread).url == "https://github.com/somebody/simcse/issues/3"


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
            assert len(scores) == len(experiment.runs) == summary.n, task
            values, slack = [score.value for score in scores], max(score.unit for score in scores) + 1e-9
            assert printed.value == pytest.approx(np.mean(values), abs=printed.unit / 2 + slack), task
            if printed.std is not None:
                unit = 10.0 ** -len(printed.text.partition("±")[2].strip().partition(".")[2])
                assert printed.std == pytest.approx(np.std(values, ddof=1), abs=unit / 2 + slack), task


@pytest.mark.parametrize("name", evidence.sources())
def test_no_run_is_given_twice_and_none_keeps_a_step_after_its_last(name):
    """A seed is given once within a setup, all scores of a run once within a setting."""
    identities = []
    for e in (e for e in evidence.all_evidence() if e.name == name):
        x = e.experiment
        setting = (x.method, x.setting, x.encoder, x.pooler, x.kind, x.size, x.corpus, x.transfer)
        identities += [(*setting, x.setup, run.seed) for run in x.runs if run.seed is not None]
        identities += [(*setting, *texts) for run in x.runs if len(texts := sorted(run.scores.items(), key=str)) > 1]
        assert all((run.best_step or 0) <= (e.setup.steps or math.inf) for run in x.runs)
        assert x.summary is None or len(x.summary.seeds) in (0, x.summary.n)
    assert len({*identities}) == len(identities)


def test_names_and_checkpoints_are_complete():
    names, hubs = evidence.names(), [checkpoint.hub for checkpoint in evidence.checkpoints()]
    assert len({*hubs}) == len(hubs)
    assert all(checkpoint.pooler or checkpoint.note for checkpoint in evidence.checkpoints())
    assert all(method.printed.keys() <= names.encoders.keys() for method in names.methods.values())


def test_a_new_file_is_a_new_source(tmp_path, monkeypatch):
    folder = tmp_path / "evidence"
    for name in ("config", "papers", "data"):
        (tmp_path / name).symlink_to(ROOT / name)
    folder.mkdir()
    for name in ("methods", "checkpoints"):
        (folder / f"{name}.yaml").write_bytes((ROOT / "evidence" / f"{name}.yaml").read_bytes())
    (folder / "somebody.yaml").write_text(SOURCE, encoding="utf-8")
    use_project(tmp_path, monkeypatch)
    caches.clear()
    try:
        assert [group.summary.n for group in statistics.groups(SIMCSE)] == [3]
        (row,) = group_rows(SIMCSE)
        assert row[1].startswith("76.25") and row[2:7] == [
            "seed sweep, somebody",
            "3",
            "75.00 ± 1.00",
            "74.00 to 76.00",
            "0 of 3",
        ]
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


def test_a_pooler_is_part_of_the_key(tmp_path):
    with_pooler = read(tmp_path, SOURCE.replace("    comparable", "    pooler: cls\n    comparable"))
    assert evidence.key_of(with_pooler.experiments[0]) == SIMCSE._replace(pooler="cls")
    grid, one_row = row("infocse", "table2", "SimCSE-BERTbase")
    recipe = one_row.run.model_copy(update={"params": {"pooler": "cls", "steps": 5}})
    assert evidence.key_of_row(one_row.model_copy(update={"run": recipe}), grid.encoder).pooler == "cls"
    misspelt = one_row.model_copy(update={"evidence": EvidenceKey(method="consrt")})
    with pytest.raises(BadInput, match=r"SimCSE-BERTbase: evidence: .*Did you mean 'consert'"):
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


# ---------------------------------------------------------------- statistics: the rest is on the golden page


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_best_of_k_is_the_mean_over_all_subsets(k):
    by, of = np.array([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]), np.array([10.0, 30.0, 20.0, 60.0, 0.0, 40.0])
    subsets = [of[max(subset, key=lambda i: by[i])] for subset in combinations(range(6), k)]
    assert statistics.expected_of_best(k, by, of) == pytest.approx(np.mean(subsets))
    assert statistics.expected_of_best(2, np.array([1.0, 1.0]), np.array([10.0, 20.0])) == 15  # ties share


def test_spread_is_of_the_nearest_sweep():
    nearest = statistics.spread("bert-base", "Avg.", "simcse")
    assert (nearest.n, nearest.source, round(nearest.std, 2)) == (50, "hppRC-simple-simcse", 0.84)
    assert statistics.spread("bert-base", "STS-B").std > nearest.std
    assert statistics.spread("bert-base", "Avg.", "micse") == nearest  # none of its own
    assert statistics.spread("roberta-large", "stsb_dev") is not None
    assert statistics.spread("bert-base", "TransferAvg") is statistics.spread("distilbert", "Avg.") is None


# ---------------------------------------------------------------- for a cell of a table


def others(paper_name, table, label, column):
    grid, one_row = row(paper_name, table, label)
    return statistics.others(paper_name, grid, one_row, grid.columns[grid.column(column)])


def test_others_of_a_cell():
    cell, (grid, simcse) = (
        others("infocse", "table2", "SimCSE-BERTbase", "Avg."),
        row("infocse", "table2", "SimCSE-BERTbase"),
    )
    printed = simcse.values[grid.column("Avg.")]
    assert (cell.summary.n, round(cell.summary.mean, 2), round(cell.summary.std, 2)) == (50, 75.11, 0.84)
    assert cell.verdict(printed, 1).name == stats.REPRODUCED
    assert "no gradient clipping" in cell.differs(simcse)
    of_transfer = others("infocse", "table10", "SimCSE", "Avg.")  # not the scores on dev folds
    assert (of_transfer.summary.n, of_transfer.summary.mean, of_transfer.sources) == (1, 85.84, ["InforMin-CL-T2"])
    assert of_transfer.verdict(printed, 1).name == stats.TOO_FEW
    assert others("infocse", "table2", "CT-BERTbase", "Avg.").sources == ["miCSE-T1"]


@pytest.mark.parametrize(
    ("paper_name", "table", "label", "column"),
    [
        ("micse", "table2", "CT (Carlsson et al., 2021)", "100%"),  # a paper is no other of itself
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
def test_single_values_get_the_spread_of_seeds_that_others_published(name, table, label, column, spread):
    shown = printed_view(name, table, "smoke")
    cell = shown.rows[shown.grid.row(label)][shown.grid.column(column)]
    nearest = printed_spread.nearest_spread(cell, cell.plan.column.task)
    assert nearest == (spread and statistics.spread(*spread))
    variance = printed_spread.printed_variance(cell)
    if nearest is None:
        assert variance.value is None
    else:
        assert (variance.value, variance.df) == (pytest.approx(nearest.std**2), nearest.n - 1)


def test_tasks_of_one_run_vary_together_and_all_of_them_as_their_average():
    shown = printed_view("infocse", "table2", "smoke")
    *tasks, average = shown.rows[shown.grid.row("SimCSE-BERTbase")]
    assert printed_spread.row_variance(tasks).value == pytest.approx(printed_spread.printed_variance(average).value)
    deviations = [math.sqrt(printed_spread.printed_variance(cell).value) for cell in tasks[:2]]
    assert printed_spread.row_variance(tasks[:2]).value == pytest.approx(np.mean(deviations) ** 2)


@pytest.mark.slow
def test_print_is_judged_the_same_whatever_a_scale_can_run():
    for name in catalog.paper_names():
        for claim in catalog.paper(name).claims:
            assert claims.judge_print(name, claim, "smoke") == claims.judge_print(name, claim, "paper")


# ---------------------------------------------------------------- the page


def test_readme_opens_with_numbers_of_the_page():
    """Every number of the sentences under README's figure, computed from the runs that the figure shows."""
    opening = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0]
    quoted = runpy.run_path(str(ROOT / "docs" / "quoted_numbers.py"))
    others, reached = quoted["others"], quoted["reached"]
    base, *rest = ("unsup-SimCSE", "BERT-base"), *(("unsup-SimCSE", encoder) for encoder in ENCODERS[1:])
    assert [reached(*key) for key in rest] == [0, 0, 0]
    opening = re.sub(r"<!--.*?-->", "", opening)
    numbers = [50, *others(*base).split(" ± "), reached(*base), "76.25"]
    assert re.findall(r"\d+(?:\.\d+)?", opening) == [str(number) for number in numbers]
