"""Results that travel: `csebench report` writes a source of evidence from one's own runs, and
`csebench import` takes the score files of another checkout."""

import json
import shutil

import pytest
from made_up import SCALE, clear, made_up, unprinted_table
from score_files import edit_score_file, write_scores

from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT, VARIABLE
from csebench.cli import main
from csebench.plan import targets
from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import MatchKey
from csebench.plan.catalog.registry import protocol
from csebench.plan.schema.spec import Spec
from csebench.report.numbers.others import GroupKind, groups
from csebench.score.evaluate import data_sha256

# ---------------------------------------------------------------- report

TARGET = "congen/table1"  # SimCSE on BERT-Tiny, -Mini and -Small
FILES = "https://github.com/areader/runs/tree/0123456789abcdef/small/scores"
ISSUE = "https://github.com/csebench/csebench/issues/12"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of one's own, which gets results and sources, and is the current folder."""
    (tmp_path / "evidence").mkdir()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    clear()
    yield tmp_path
    clear()


def score_runs(scale, method="simcse", encoder="google/bert_uncased_L-2_H-128_A-2", value=0.5):
    """Write scores of the runs of a method on an encoder, each 0.01 above the one before.

    Returns:
        The specs of the runs.
    """
    specs = []
    for page in targets.parse_target(TARGET, scale):
        for (_, evaluator), spec in page.scores().items():
            is_new = spec not in specs
            if (spec.method, spec.encoder.name, evaluator) == (method, encoder, "sts") and is_new:
                average = value + 0.01 * len(specs)
                write_scores(spec, "sts", scale, [("Avg.", "spearman", average)])
                specs.append(spec)
    return specs


def edit_scores_of(spec, scale, edit):
    """Change the score file of a run."""
    edit_score_file(targets.score_path(spec.run_id, "sts", scale), edit)


def report(scale, *options, out="evidence/mine.yaml", url=FILES):
    """Call `csebench report`, and return its exit code."""
    given = ("--scale", scale, "--who", "A. Reader", "--url", url, "--out", out)
    code = main(["report", TARGET, *given, *options])
    clear()
    return code


def read_mine():
    """Read the source as others do."""
    return evidence.evidence_sources()["mine"]


def test_runs_at_scale_paper_become_a_sweep_of_evidence(folder):
    score_runs("paper")
    assert report("paper") == 0
    found = groups(MatchKey("simcse", "bert-tiny", "cls_before_pooler"))
    assert [(group.kind, group.sources) for group in found] == [(GroupKind.SWEEP, ["mine"])]
    assert found[0].values == pytest.approx((50, 51, 52, 53, 54))


def test_a_source_says_who_made_the_runs_and_where_they_are(folder):
    score_runs("small")
    assert report("small", "--licence", "MIT") == 0
    source = read_mine()
    assert (source.who, source.licence, source.date) == ("A. Reader", "MIT", "2026-01-01")
    assert (source.repository, source.path) == ("areader/runs", "small/scores")
    assert source.commit == "0123456789abcdef"


def test_a_source_may_be_an_issue(folder):
    score_runs("small")
    assert report("small", url=ISSUE) == 0
    source = read_mine()
    assert (source.repository, source.thread) == ("csebench/csebench", 12)


def test_runs_with_other_settings_say_what_differs(folder):
    score_runs("small")
    report("small")
    (experiment,) = read_mine().experiments
    assert not experiment.comparable
    differences = "precision fp32, not bf16; steps 2000, not 15625"
    assert experiment.setting == f"scale small: {differences}"


def test_a_run_is_reported_with_its_scores_step_and_setup(folder):
    spec, *_ = score_runs("small")

    def state_training(content):
        content["training"] |= {"best_step": 1750, "best_dev": 0.70126}
        content["training"]["provenance"]["packages"]["transformers"] = "5.1"

    edit_scores_of(spec, "small", state_training)
    report("small")
    (experiment,) = read_mine().experiments
    run = experiment.runs[0]
    assert (run.seed, run.best_step) == (str(spec.seed), 1750)
    assert run.scores["Avg."].text == run.scores["STS12"].text == "50.00"
    assert run.scores["stsb_dev"].text == "70.13"
    setup = experiment.setup
    assert (setup.batch_size, setup.learning_rate, setup.steps) == ("64", "3e-5", 2000)
    assert (setup.evaluate_every, setup.precision) == (125, "fp32")
    assert setup.versions == "torch 9.9, transformers 5.1; torch 9.9"
    assert (setup.code, setup.gpu) == ("csebench at 0123456789", "none (a processor)")


def test_changed_code_of_any_run_is_not_comparable(folder):
    *_, spec = score_runs("paper")

    def mark_code(content):
        content["training"]["provenance"]["unversioned_code"] = ["methods/simcse"]

    edit_scores_of(spec, "paper", mark_code)
    report("paper")
    (experiment,) = read_mine().experiments
    assert not experiment.comparable
    assert experiment.setting == "changed code of methods/simcse"


def test_runs_on_other_test_data_are_left_out(folder, capsys):
    spec, *others = score_runs("small")

    def change_data(content):
        content["evaluations"][0]["data_sha256"] = "1" * 64

    edit_scores_of(spec, "small", change_data)
    assert report("small") == 0
    assert len(read_mine().experiments[0].runs) == len(others)
    printed = " ".join(capsys.readouterr().out.split())
    assert "1 run scored on other data than the standard test sets" in printed


def test_equal_runs_are_reported_once(folder, capsys):
    """Seeds of a method that fits the whole corpus give one model."""
    for spec in score_runs("small"):
        edit_scores_of(spec, "small", lambda content: content["scores"][0].update(value=0.5))
    assert report("small") == 0
    assert len(read_mine().experiments[0].runs) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 runs with exactly the scores of another seed" in printed


def test_a_score_near_0_is_marked_as_a_percentage(folder):
    score_runs("small", value=0.0)
    assert report("small") == 0
    assert not read_mine().experiments[0].sure


def test_a_source_is_written_again_when_more_runs_are_scored(folder):
    score_runs("small")
    assert report("small") == 0
    score_runs("small", method="simcse_sup")
    assert report("small") == 0
    assert len(read_mine().experiments) == 2


def test_the_file_of_somebody_else_is_not_replaced(folder, capsys):
    score_runs("small")
    file = folder / "evidence" / "mine.yaml"
    file.write_text("remarks: []\n")
    assert report("small") == 2
    assert file.read_text() == "remarks: []\n"
    assert "is not a source that `csebench report` wrote" in capsys.readouterr().err


def test_runs_of_another_source_are_not_reported_twice(folder, capsys):
    score_runs("paper")
    report("paper")
    assert report("paper", out="evidence/again.yaml") == 2
    assert "has the scores of a run of mine" in capsys.readouterr().err
    assert [path.name for path in (folder / "evidence").iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "https://github.com/a/b/tree/main/scores"}, "names no commit"),
        ({"url": f"https://github.com/a/b/tree/{40 * 'a'}"}, "no file or folder"),
        ({"url": "https://example.org/scores"}, "is no link to GitHub"),
        ({"out": "evidence/mine.json"}, "must end with .yaml"),
    ],
)
def test_bad_options_are_refused(folder, capsys, options, message):
    score_runs("small")
    assert report("small", **options) == 2
    assert message in capsys.readouterr().err
    assert not list((folder / "evidence").iterdir())


def test_a_scale_without_scores_has_nothing_to_report(folder, capsys):
    assert report("small") == 2
    assert "there is no run to report (18 runs not scored yet)" in capsys.readouterr().err


# ---------------------------------------------------------------- import

PAPER = {
    "name": "m",
    "tables": {
        "1": unprinted_table({"SimCSE": "simcse", "CT": "ct"}, [{"label": "Avg.", "task": "Avg."}])
    },
}


@pytest.fixture(scope="module")
def scored_project(tmp_path_factory):
    """A project, and in its folder `theirs` the scores of the runs of its paper."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        made_up(folder, patch, PAPER)
        (folder / "theirs").mkdir()
        patch.chdir(folder / "theirs")
        for page in targets.parse_target("m", SCALE):
            for spec in page.runs().values():
                scores = [("Avg.", "spearman", 0.5)]
                write_scores(spec, "sts", SCALE, scores, data_sha256=smoke_data())
        yield folder
    clear()


@pytest.fixture
def checkouts(scored_project, tmp_path, monkeypatch):
    """A folder with two checkouts: `theirs` has scores, and `ours` is the current folder."""
    shutil.copytree(scored_project / "theirs", tmp_path / "theirs")
    (tmp_path / "ours").mkdir()
    monkeypatch.chdir(tmp_path / "ours")
    return tmp_path


def smoke_data():
    """Hash the test data that the checkouts have."""
    return data_sha256(protocol("sts"), ROOT / "data" / "smoke")


def their_files(checkouts):
    return sorted((checkouts / "theirs" / "results" / "scores").glob("*.json"))


def our_files(checkouts):
    """Read the score files of `ours` by name; hidden files are half-copied ones."""
    return {path.name: path.read_bytes() for path in (checkouts / "ours").rglob("*.*")}


def import_theirs(checkouts, *options):
    """Call `csebench import`, and return its exit code."""
    return main(["import", str(checkouts / "theirs"), "--scale", SCALE, *options])


def test_scores_of_another_checkout_are_copied_as_they_are(checkouts, capsys):
    assert import_theirs(checkouts) == 0
    theirs = {path.name: path.read_bytes() for path in their_files(checkouts)}
    assert len(theirs) == 6
    assert our_files(checkouts) == theirs
    assert "6 files: 6 accepted, 0 already there, 0 refused." in capsys.readouterr().out


def test_the_folder_of_the_files_may_be_named_itself(checkouts):
    shutil.move(checkouts / "theirs" / "results" / "scores", checkouts / "unpacked")
    shutil.rmtree(checkouts / "theirs")
    shutil.move(checkouts / "unpacked", checkouts / "theirs")
    assert import_theirs(checkouts) == 0
    assert len(our_files(checkouts)) == 6


def test_scores_that_are_here_already_are_listed_as_such(checkouts, capsys):
    import_theirs(checkouts)
    assert import_theirs(checkouts) == 0
    assert "0 accepted, 6 already there, 0 refused" in capsys.readouterr().out


def test_a_dry_run_copies_nothing(checkouts, capsys):
    assert import_theirs(checkouts, "--dry-run") == 0
    assert our_files(checkouts) == {}
    assert "6 accepted" in capsys.readouterr().out


def rewrite(path, edit):
    """Change a score file, with a digest that fits. Averages are not made to fit."""
    content = json.loads(path.read_text())
    edit(content)
    write_json(path, with_digest(content))


def rename_as_other_run(path):
    path.rename(path.with_name("ct-0123456789.sts.json"))


def edit_without_digest(path):
    content = json.loads(path.read_text())
    content["spec"]["params"]["steps"] = 7
    write_json(path, content)


def edit_spec(path):
    rewrite(path, lambda content: content["spec"]["params"].update(steps=7))


def edit_spec_and_all_that_follows(path):
    """Change a setting of the run, and with it the id in the file and in its name."""

    def edit(content):
        content["spec"]["params"]["steps"] = 7
        content["run"] = Spec.model_validate(content["spec"]).run_id

    rewrite(path, edit)
    path.rename(path.with_name(f"{json.loads(path.read_text())['run']}.sts.json"))


def write_not_a_number(path):
    path.write_text(path.read_text().replace('"value": 0.5', '"value": NaN'))


def change_one_task(path):
    rewrite(path, lambda content: content["scores"][-1].update(value=0.9))


def change_all_scores(path):
    """Give a run 0.6 as the score of all tasks, and as their average."""

    def edit(content):
        for row in content["scores"]:
            row["value"] = 0.6

    rewrite(path, edit)


def score_with_older_version(path):
    rewrite(path, lambda content: content["evaluations"][0].update(version=1))


def score_on_other_data(path):
    rewrite(path, lambda content: content["evaluations"][0].update(data_sha256="1" * 64))


def score_with_changed_code(path):
    units = ["evaluators/sts"]
    rewrite(path, lambda content: content["provenance"].update(unversioned_code=units))


def empty(path):
    path.write_text("{}")


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (rename_as_other_run, "run: is of run"),
        (edit_without_digest, "edited since it was written"),
        (edit_spec, "spec: is of run"),
        (edit_spec_and_all_that_follows, "in steps"),
        (write_not_a_number, "not valid JSON"),
        (change_one_task, "but its parts give"),
        (empty, "scores: Field required."),
        (score_with_older_version, "evaluations.0.version: is 1, but here it is"),
        (score_on_other_data, "scored on data 111111111111, but this checkout has"),
        (score_with_changed_code, "evaluators/sts was changed without a new version"),
    ],
)
def test_a_file_that_fails_a_check_is_refused_and_the_others_are_copied(
    checkouts, capsys, edit, reason
):
    edit(their_files(checkouts)[0])
    assert import_theirs(checkouts) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert reason in printed
    assert "6 files: 5 accepted, 0 already there, 1 refused." in printed
    assert len(our_files(checkouts)) == 5


def test_another_value_never_replaces_one_that_is_here(checkouts, capsys):
    import_theirs(checkouts)
    before = our_files(checkouts)
    change_all_scores(their_files(checkouts)[0])
    assert import_theirs(checkouts) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "is 0.5, and 0.6 in this file" in printed
    assert our_files(checkouts) == before


def test_another_training_with_the_same_scores_is_there_already(checkouts, capsys):
    import_theirs(checkouts)
    before = our_files(checkouts)
    rewrite(
        their_files(checkouts)[0], lambda content: content["provenance"].update(processor="other")
    )
    assert import_theirs(checkouts) == 0
    assert our_files(checkouts) == before


def test_without_own_data_only_the_standard_test_sets_are_taken(checkouts, monkeypatch, capsys):
    (checkouts / "without").mkdir()
    made_up(checkouts / "without", monkeypatch, PAPER, data_root=str(checkouts / "nowhere"))
    monkeypatch.chdir(checkouts / "ours")
    assert import_theirs(checkouts) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "is not known as test data of sts" in printed
    assert our_files(checkouts) == {}
    clear()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: None, "no such folder"),
        (lambda folder: folder.mkdir(), "holds no score JSON"),
        (lambda folder: folder.write_text("a zip"), "unpack a zip file first"),
    ],
)
def test_a_place_without_scores_is_refused(checkouts, capsys, make, message):
    shutil.rmtree(checkouts / "theirs")
    make(checkouts / "theirs")
    assert import_theirs(checkouts) == 2
    assert message in capsys.readouterr().err
