"""Evidence: what a source's file must hold, what it is refused for, what is of a row, statistics of others' runs."""

import math
from itertools import combinations

import numpy as np
import pytest

from csebench.base.errors import BadInput
from csebench.base.files import read_with_lines
from csebench.plan import evidence
from csebench.plan.evidence import Key
from csebench.plan.grids import find_grid
from csebench.plan.papers import EvidenceKey
from csebench.report import others as statistics
from csebench.report import printed_spread
from csebench.report.cells import printed_view

SIMCSE = Key("simcse", "bert-base", "cls_before_pooler")
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


def read(tmp_path, text):
    path = tmp_path / "somebody.yaml"
    path.write_text(text, encoding="utf-8")
    return read_with_lines(path, evidence.Source, as_written=True)[0]


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("STS-B: 77.20", "STSB: 77.20", 12, "unknown task 'STSB'. Did you mean 'STS-B'?"),
        ("method: simcse", "method: simsce", 7, "Did you mean 'simcse'?"),
        ("encoder: bert-base", "encoder: bert-bass", 8, "Did you mean 'bert-base'?"),
        ("comparable: true", "comparible: true", 9, "Did you mean 'comparable'?"),
        (PLACE, 'paper: micsee\ntables: ["1"]\n', 2, "unknown paper 'micsee'. Did you mean 'micse'"),
    ],
)
def test_refusals_name_file_and_line(tmp_path, before, after, line, words):
    with pytest.raises(BadInput) as refused:
        read(tmp_path, SOURCE.replace(before, after, 1))
    assert f"somebody.yaml: line {line}: " in str(refused.value)
    assert words in str(refused.value)


def test_an_experiment_overrides_the_setup_of_its_source(tmp_path):
    text = SOURCE.replace("experiments:", "setup: {steps: 1, gpu: V100, differs: one}\nexperiments:")
    source = read(tmp_path, text.replace("3e-5,", "3e-5, differs: two,"))
    both = evidence.Evidence("somebody", source, source.experiments[0]).setup
    assert (both.batch_size, both.steps, both.gpu, both.differs) == ("64", 15625, "V100", "one; two")


@pytest.mark.parametrize("name", evidence.sources())
def test_a_source_names_one_place_and_has_scores_in_percent(name):
    """Accuracies of 0 to 100, correlations x 100, the negative ones too; not all of a run are fractions."""
    s = evidence.sources()[name]
    places = [(s.repository, s.commit, s.path), (s.repository, s.thread), (s.paper, s.tables or None)]
    assert sum(None not in place for place in places) == 1 and (s.experiments or s.remarks)
    accuracies = {evidence.TRANSFER, *evidence.tasks()[evidence.TRANSFER]}
    for experiment in s.experiments:
        assert experiment.runs or experiment.summary
        assert all(score.std is None for run in experiment.runs for score in run.scores.values())
        for part in filter(None, [*experiment.runs, experiment.summary]):
            assert any(abs(score.value) > 1 for score in part.scores.values())
            assert all((0 if task in accuracies else -100) <= x.value <= 100 for task, x in part.scores.items())


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


def test_printed_values_are_of_known_encoders():
    names = evidence.names()
    assert all(method.printed.keys() <= names.encoders.keys() for method in names.methods.values())


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
    named = simcse.model_copy(update={"run": None, "evidence": EvidenceKey(method="simcse", encoder="bert-large")})
    assert evidence.key_of_row(named, "bert-base") == SIMCSE._replace(encoder="bert-large")
    misspelt = simcse.model_copy(update={"evidence": EvidenceKey(method="consrt")})
    with pytest.raises(BadInput, match=r"SimCSE-BERTbase: evidence: .*Did you mean 'consert'"):
        evidence.key_of_row(misspelt, "bert-base")


def test_an_experiment_may_have_another_pooler(tmp_path):
    source = read(tmp_path, SOURCE.replace("    comparable", "    pooler: cls\n    comparable"))
    assert evidence.key_of(source.experiments[0]) == SIMCSE._replace(pooler="cls")


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


def test_tasks_of_one_run_vary_together_and_all_of_them_as_their_average():
    shown = printed_view("infocse", "table2", "smoke")
    *tasks, average = shown.rows[shown.grid.row("SimCSE-BERTbase")]
    assert printed_spread.row_variance(tasks) == pytest.approx(printed_spread.printed_variance(average))
    deviations = [math.sqrt(printed_spread.printed_variance(cell)[0]) for cell in tasks[:2]]
    assert printed_spread.row_variance(tasks[:2])[0] == pytest.approx(np.mean(deviations) ** 2)
