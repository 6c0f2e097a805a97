"""The progress of a run is on disk and in its log. `csebench status` summarises many runs."""

import itertools
import json
import os
import re
import socket
import subprocess
import time
from unittest.mock import Mock

import pytest
from score_files import write_scores

from csebench import cli
from csebench.base import files
from csebench.base import runs as run_folders
from csebench.base.errors import BadInput
from csebench.cli import status
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.score import store
from csebench.study import work as run


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Ids of the planned runs in a project where none has begun."""
    monkeypatch.chdir(tmp_path)
    return sorted(targets.page("table3", "smoke", "micse").runs())


def noted(run, **changed):
    """Note a run that this process has trained for 100 seconds, with some facts changed."""
    content = {
        "run": run,
        "state": "running",
        "step": 125,
        "steps": 250,
        "loss": 0.0134,
        "dev": 0.612,
        "seconds": 100.0,
        "gpu": "A100",
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "updated": time.time(),
    }
    files.write_json(catalog.RUNS / run / run_folders.PROGRESS, content | changed)


def done(run, seconds=3600.0, gpu=None):
    """Write the report of a run that has finished."""
    report = {"losses": [[10, 0.5]], "provenance": {"seconds": seconds, "gpu": gpu}}
    files.write_json(catalog.RUNS / run / run_folders.DONE, report)


def shown(capsys):
    """Return what `csebench status` prints for the runs."""
    assert cli.main(["status", "micse/table3"]) == 0
    return capsys.readouterr().out


def in_one_line(text):
    """Replace line ends and repeated blanks by one blank."""
    return " ".join(text.split())


def dead_pid():
    """Return the id of a process that has ended."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    return gone.pid


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
    run = runs[0]

    def state_now(**more):
        return status.read_state(run, **more)[0]

    noted(run, **changed)
    assert state_now() == state
    state_if_finished = "done" if state == "stopped" else state
    assert state_now(is_finished=True) == state_if_finished

    done(run)
    state_when_trained = "failed" if state == "failed" else "done"  # failed: in scoring
    assert state_now() == state_when_trained

    run_folders.delete_model(catalog.RUNS / run)  # what is left to be done is another training
    assert state_now() == state


def test_every_state_is_shown_with_hours_and_reasons(runs, capsys):
    scoring_failed, finished, running, stopped, failed, old, *_ = runs
    done(scoring_failed, 5400, gpu="A100")
    store.note_failure(catalog.RUNS / scoring_failed, "transfer", ValueError("no text"))
    done(finished, 1800)
    noted(running, seconds=900.0)
    noted(stopped, seconds=360.0, gpu=None, pid=dead_pid())
    noted(failed, seconds=0.0, state="failed", message=f"{failed}: loss is nan [at] step 7")
    (catalog.RUNS / old).mkdir()  # begun long ago, by a version that wrote nothing

    out = in_one_line(shown(capsys))

    assert f"2 done, 1 running, 1 failed, 1 stopped, {len(runs) - 5} waiting" in out
    assert "spent: 1.75 GPU hours, 0.60 CPU hours" in out
    assert f" {running} 125/250 0.013 61.20 {socket.gethostname()} " in out
    assert f" {failed}: loss is nan [at] step 7 not recorded " in out
    assert out.endswith(f" {scoring_failed} transfer ValueError: no text")


def test_hours_that_nobody_recorded_are_not_zero(runs, capsys):
    assert "spent: not recorded\n" in shown(capsys)
    done(runs[0], seconds=1800)
    done(runs[1], seconds=None)
    assert "spent: 0.50 CPU hours (1 run not recorded)\n" in shown(capsys)


def test_a_list_of_failed_runs_can_be_cut(runs, capsys):
    for failed in runs[:3]:
        noted(failed, state="failed", message="x")
    assert cli.main(["status", "micse/table3", "--limit", "1"]) == 0
    out = capsys.readouterr().out
    assert "3 failed" in out
    assert "The first of 3 rows" in out
    assert out.count(": x ") == 1


def test_a_run_whose_scores_are_all_published_is_done(runs, capsys):
    """Other tables show more scores of the same runs. These are still to be made."""
    page = targets.page("table3", "smoke", "micse")
    for (_, evaluator), spec in page.available().items():
        write_scores(spec, evaluator, "smoke", [("STS12", "spearman", 0.5)])

    out = in_one_line(shown(capsys))
    assert f"{len(runs)} done by scores stored in results/; their training took " in out
    assert "spent" not in out

    assert cli.main(["status", "micse", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    states = {row["state"] for row in listed if row["run"] in runs}
    assert states == {"done", "waiting"}


def test_hours_of_published_runs_are_those_of_the_machine_that_made_them(capsys):
    assert cli.main(["status", "micse/table3", "--scale", "mini"]) == 0
    out = in_one_line(capsys.readouterr().out)

    assert "0.00" not in out
    assert "spent" not in out
    assert "GPU hours" not in out
    assert re.search(r"; their training took \d+\.\d\d CPU hours where they were made\.", out)


def test_the_scale_is_that_of_the_page(capsys):
    """A path names the page of a scale, whichever scale is the default."""
    assert cli.main(["status", "results/mini/micse/table2.md"]) == 0
    assert capsys.readouterr().out.startswith("Scale mini: runs in")


def test_only_devices_that_runs_were_on_are_counted(runs, capsys):
    done(runs[0], 5400, gpu="A100")
    assert "spent: 1.50 GPU hours\n" in shown(capsys)
    done(runs[0], 5400)
    assert "spent: 1.50 CPU hours\n" in shown(capsys)


def written(folder):
    """Read the progress that is on disk."""
    return json.loads((folder / run_folders.PROGRESS).read_text())


def test_progress_is_written_every_two_seconds_and_said_every_thirty(tmp_path, monkeypatch, capsys):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with run_folders.Progress(tmp_path, "simcse-0123456789") as own:
        assert written(tmp_path)["state"] == "running"
        own.start(50, 250, None)
        now += 1
        own.step(51, None, None)
        assert written(tmp_path)["step"] == 50
        now += 1
        own.step(52, 0.0134, 0.612)
        assert written(tmp_path)["step"] == 52
        now += 198
        own.step(249, 0.0134, 0.612)
        own.step(250, 0.0134, 0.612)
        assert written(tmp_path)["step"] == 250

    record = written(tmp_path)
    assert record["host"] == socket.gethostname()
    assert record["pid"] == os.getpid()
    assert capsys.readouterr().err.splitlines() == [
        "simcse-0123456789  step 50/250 (20 %)",
        "simcse-0123456789  step 249/250 (99 %)  loss 0.013  dev 61.20",
        "simcse-0123456789  step 250/250 (100 %)  loss 0.013  dev 61.20",
    ]


@pytest.mark.parametrize(
    ("seconds", "resumes"), [(60, ""), (0, "; the same command resumes it from its checkpoint")]
)
def test_a_failed_run_says_where_and_whether_it_resumes(
    seconds, resumes, make_spec, train, tmp_path, monkeypatch
):
    """Its third loss raises an error that nobody foresaw."""
    from methods.simcse import Method

    loss = Method.loss
    call = itertools.count(1)

    def fails(self, views):
        if next(call) == 3:
            raise RuntimeError("shapes do not fit")
        return loss(self, views)

    monkeypatch.setattr(Method, "loss", fails)
    with pytest.raises(RuntimeError) as caught:
        train(make_spec("simcse"), tmp_path, checkpoint_seconds=seconds)

    record = written(tmp_path)
    assert record["state"] == "failed"
    assert record["step"] == 2
    assert record["steps"] == 4
    assert record["message"] == "RuntimeError: shapes do not fit"
    assert caught.value.__notes__[0] == f"{record['run']} failed after step 2 of 4{resumes}."


@pytest.mark.parametrize("failing", ["train", "score"])
def test_a_job_that_fails_outside_of_training(failing, runs, monkeypatch, capsys):
    """The workflow has already made the folder for the log. The next attempt is not shown as
    failed."""
    train = Mock()
    score = Mock()
    acquire_gpus = Mock()
    monkeypatch.setattr(run, "make_model_once", train)
    monkeypatch.setattr("csebench.score.evaluate.evaluate_run", score)
    monkeypatch.setattr(run, "acquire_gpus", acquire_gpus)
    folder = catalog.RUNS / runs[0]
    folder.mkdir(parents=True)

    failing_part = train if failing == "train" else score
    failing_part.side_effect = BadInput("data/wiki.txt: no such file.")
    assert cli.main(["work", runs[0]]) == 2
    assert capsys.readouterr().err == "csebench: data/wiki.txt: no such file.\n"
    record = run_folders.ProgressRecord(**written(folder))
    assert status.read_state(runs[0]) == ("failed", record.model_dump())

    failing_part.side_effect = None
    assert cli.main(["work", runs[0], "--evaluators", "sts", "--runs-per-gpu", "3"]) == 0
    assert score.call_args.args[1] == ["sts"]
    assert acquire_gpus.call_args.args == (0, 3, 0)
    assert status.read_state(runs[0])[0] == "running"  # until train.json stands for it


def test_a_job_of_several_processes_becomes_torchrun_with_its_settings(runs, monkeypatch):
    become = Mock(side_effect=ZeroDivisionError)
    monkeypatch.setattr(run, "acquire_gpus", Mock())
    monkeypatch.setattr(os, "execv", become)
    with pytest.raises(ZeroDivisionError):
        cli.main(["work", runs[0], "--processes", "2", "--evaluators", "sts", "--chunk-size", "4"])
    command = (
        f"--nproc-per-node=2 -m csebench work {runs[0]} --scale smoke --evaluators sts"
        " --chunk-size 4"
    )
    assert " ".join(become.call_args.args[1]).endswith(command)
