"""Progress of a run on disk and in its log, and what `csebench status` makes of many."""

import json
import os
import re
import socket
import subprocess
import sys
import time

import pytest
from score_files import write_scores

from csebench import cli
from csebench.base import files
from csebench.base import runs as run_folders
from csebench.base.project import ROOT
from csebench.plan import catalog, targets
from csebench.report import status

HEAVY = ("torch", "transformers", "tokenizers", "mteb", "beir", "sentence_transformers", "scipy", "sklearn")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Ids of the planned runs in a project where none has begun."""
    monkeypatch.chdir(tmp_path)
    return sorted(targets.page("table3", "smoke", "micse").runs())


def noted(run, **changed):
    """A run that this process has trained for 100 seconds."""
    content = {"run": run, "state": "running", "step": 125, "steps": 250, "loss": 0.0134, "dev": 0.612}
    content |= {"seconds": 100.0, "left": 97.0, "gpu": "A100", "processor": "Xeon", "host": socket.gethostname()}
    content |= {"pid": os.getpid(), "updated": time.time(), **changed}
    files.write_json(catalog.RUNS / run / run_folders.PROGRESS, content)


def done(run, seconds=3600.0, gpu=None, **more):
    made = {"seconds": seconds, "gpu": gpu, "processor": "Xeon"}
    files.write_json(catalog.RUNS / run / "train.json", {"losses": [[10, 0.5]], "provenance": made, **more})


def shown(capsys, *more):
    assert cli.main(["status", "micse/table3", *more]) == 0
    return capsys.readouterr().out


def dead_pid():
    gone = subprocess.Popen(["true"])
    gone.wait()
    return gone.pid


# ---------------------------------------------------------------- states


def test_every_state_is_counted(runs, capsys):
    done(runs[0])
    noted(runs[1])
    noted(runs[2], state="failed", message=f"{runs[2]}: loss is nan [at] step 7")
    noted(runs[3], pid=dead_pid())
    (catalog.RUNS / runs[4]).mkdir()  # begun long ago, by a version that wrote nothing
    out = shown(capsys)
    assert f"1 done, 1 running, 1 failed, 1 stopped, {len(runs) - 4} waiting" in out
    assert re.search(rf"^{runs[1]} .* 125/250 +0\.013 +61\.20 +1:37 +A100 +{socket.gethostname()}", out, re.M)
    assert re.search(rf"^{runs[2]}: loss is nan \[at\] step 7 +–", out, re.M)
    assert "resume stopped runs" in out


def publish_scores(page):
    for (_, evaluator), spec in page.available().items():
        write_scores(spec, evaluator, page.scale, [("STS12", "spearman", 0.5)])


@pytest.mark.parametrize(
    ("changed", "state"),
    [
        ({}, "running"),
        ({"updated": 0.0}, "running"),  # an evaluation takes long; the process is there
        ({"pid": dead_pid()}, "stopped"),
        ({"host": "elsewhere", "pid": dead_pid()}, "running"),
        ({"host": "elsewhere", "updated": time.time() - 1000}, "stopped"),
        ({"state": "failed", "message": "x", "pid": dead_pid()}, "failed"),
    ],
)
def test_state_of_a_run(runs, changed, state):
    noted(runs[0], **changed)
    assert status.read_state(runs[0])[0] == state
    done(runs[0])
    assert status.read_state(runs[0])[0] == ("failed" if state == "failed" else "done")  # it trained, scoring failed


def test_a_run_whose_scores_are_all_published_is_done(runs, capsys):
    """In a fresh clone nothing was trained; a run that trains again is running, one without its model done."""
    publish_scores(targets.page("table3", "smoke", "micse"))
    noted(runs[0])
    noted(runs[1], pid=dead_pid())
    done(runs[2])
    run_folders.delete_model(catalog.RUNS / runs[2])
    out = shown(capsys)
    assert f"{len(runs) - 1} done, 1 running, 0 failed, 0 stopped, 0 waiting" in out
    assert f"{len(runs) - 2} of those done were not trained here" in out


def test_a_row_counts_the_scores_that_its_table_shows(runs):
    """Other tables show more scores of the same runs, which wait for these."""
    publish_scores(targets.page("table3", "smoke", "micse"))
    pages = [targets.page(name, "smoke", "micse") for name in targets.grid_names("micse")]
    statuses = [run for run in status.read_statuses(pages) if run.id in runs]
    assert {run.state for run in statuses} == {"done", "waiting"}
    rows = {row[0]: row[1:] for row in status.tables_rows(pages, statuses)[1]}
    assert rows["micse/table3"] == [len(runs), len(runs), 0, 0, 0, 0]


def test_a_run_whose_model_is_gone_waits_for_a_missing_score(runs):
    done(runs[0])
    run_folders.delete_model(catalog.RUNS / runs[0])
    assert status.read_state(runs[0])[0] == "waiting"


# ---------------------------------------------------------------- hours


def test_hours_spent_on_gpus_and_cpus_apart(runs, capsys):
    done(runs[0], 5400, gpu="A100")
    done(runs[1], 1800)
    noted(runs[2], seconds=900.0)
    noted(runs[3], seconds=360.0, gpu=None, pid=dead_pid())
    assert "spent: 1.75 GPU hours, 0.60 CPU hours\n" in shown(capsys)


# ---------------------------------------------------------------- the command


def test_watching_ends_when_nothing_is_left_to_be_done(runs, monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(status.Console, "is_terminal", True)
    slept = []

    def sleep(seconds):
        """One more run is done, until all but one are."""
        done(runs[len(slept)])
        slept.append(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    noted(runs[-1], state="failed", message="x")
    out = re.sub(r"\x1b\[[\d;?]*\w", "", shown(capsys, "--watch", "5"))
    assert {int(n) for n in re.findall(r"(\d+) done, 0 running, 1 failed", out)} == set(range(len(runs)))
    assert slept == [5] * (len(runs) - 1)


def test_a_thousand_runs_without_torch():
    code = (
        "import sys\nfrom csebench.cli import main\nmain(['status', 'all', '--scale', 'paper'])\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "HEAVY []" in out and f"{len(targets.runs('paper'))} runs: " in out


# ---------------------------------------------------------------- a run's own progress


@pytest.fixture
def clocked(monkeypatch):
    """A clock to be moved by hand: `clocked(30)`."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def pass_(seconds):
        now[0] += seconds

    return pass_


def written(folder):
    return json.loads((folder / run_folders.PROGRESS).read_text())


def test_progress_is_written_every_two_seconds_and_said_every_thirty(tmp_path, clocked, capsys):
    with run_folders.Progress(tmp_path, "simcse-0123456789") as own:
        assert (written(tmp_path)["state"], written(tmp_path)["left"]) == ("running", None)
        own.start(50, 250, None)
        clocked(1)
        own.step(51, None, None)
        assert written(tmp_path)["step"] == 50
        clocked(1)
        own.step(52, 0.0134, 0.612)
        assert written(tmp_path)["step"] == 52 and written(tmp_path)["left"] == 198  # 2 s for its own 2 steps
        clocked(198)
        own.step(249, 0.0134, 0.612)
        own.step(250, 0.0134, 0.612)
        assert written(tmp_path)["step"] == 250
    assert written(tmp_path)["host"] == socket.gethostname() and written(tmp_path)["pid"] == os.getpid()
    assert capsys.readouterr().err.splitlines() == [
        "simcse-0123456789  step 50/250 (20 %)",
        "simcse-0123456789  step 249/250 (99 %)  loss 0.013  dev 61.20  0:01 left",
        "simcse-0123456789  step 250/250 (100 %)  loss 0.013  dev 61.20",
    ]


def test_bad_input_lets_no_folder_come_into_being(tmp_path):
    with pytest.raises(ZeroDivisionError), run_folders.Progress(tmp_path / "run", "simcse-0123456789"):
        raise ZeroDivisionError
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- runs that fail


@pytest.fixture
def failing(make_spec, train, tmp_path, monkeypatch):
    """Trains a run of four steps whose loss goes through `change(loss)` at the third; its folder."""
    from methods.simcse import Method

    def run(change, **settings):
        calls, loss = [], Method.loss

        def changed(self, views):
            calls.append(None)
            return change(loss(self, views)) if len(calls) == 3 else loss(self, views)

        monkeypatch.setattr(Method, "loss", changed)
        with pytest.raises(Exception) as caught:
            train(make_spec("simcse"), tmp_path / "run", **settings)
        return tmp_path / "run", caught.value

    return run


def test_a_loss_that_is_not_finite_is_told_once(failing):
    folder, error = failing(lambda loss: loss * float("nan"))
    found = written(folder)
    assert (found["state"], found["step"], found["steps"]) == ("failed", 3, 4)
    assert "loss is nan at step 3" in found["message"] == str(error)
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("kept", [True, False])
def test_what_was_not_foreseen_says_where_and_whether_it_resumes(failing, kept):
    def broken(loss):
        raise RuntimeError("shapes do not fit")

    folder, error = failing(broken, checkpoint_seconds=0 if kept else 60)
    found = written(folder)
    assert (found["state"], found["step"]) == ("failed", 2)
    assert found["message"] == "RuntimeError: shapes do not fit"
    resumes = "; the same command resumes it from its checkpoint" if kept else ""
    assert error.__notes__ == [f"{found['run']} failed after step 2 of 4{resumes}."]


@pytest.mark.parametrize("where", ["reading", "scoring"])
def test_a_job_that_fails_outside_of_training(runs, where, monkeypatch, capsys):
    """The workflow has made the folder for the log; the next attempt is not what failed."""
    import csebench.score.evaluate
    import csebench.train.run
    from csebench.base.errors import BadInput

    def unreadable(*args, **more):
        raise BadInput("data/wiki.txt: no such file.")

    def works(*args, **more):
        assert status.read_state(runs[0])[0] == "running"

    (catalog.RUNS / runs[0]).mkdir(parents=True)
    monkeypatch.setattr(csebench.train.run, "train", unreadable if where == "reading" else works)
    monkeypatch.setattr(csebench.score.evaluate, "evaluate_run", unreadable if where == "scoring" else works)
    assert cli.main(["work", runs[0]]) == 2
    assert capsys.readouterr().err == "csebench: data/wiki.txt: no such file.\n"
    record = run_folders.ProgressRecord(**written(catalog.RUNS / runs[0]))
    assert status.read_state(runs[0]) == ("failed", record.model_dump())
    monkeypatch.setattr(csebench.train.run, "train", works)
    monkeypatch.setattr(csebench.score.evaluate, "evaluate_run", works)
    assert cli.main(["work", runs[0]]) == 0
    assert status.read_state(runs[0])[0] == "running"  # until train.json stands for it
