"""The log of a run, and the trackers that show a run while it trains."""

import json
import os
import signal
from importlib.util import find_spec

import pytest
from tiny_runs import weights

from csebench import cli
from csebench.base import extras
from csebench.base.errors import Stopped
from csebench.base.training_log import LOG, log_records
from csebench.train import loop, trainer

STEPS = {"steps": 8, "evaluate_every": 4}


@pytest.fixture(autouse=True)
def frequent_readings(monkeypatch):
    """Let runs read the loss every two steps."""
    monkeypatch.setattr(loop, "LOG_EVERY", 2)


def lines_of(run):
    """Read the lines of a run's log."""
    return [json.loads(line) for line in (run / LOG).read_text().splitlines()]


def without_seconds(lines):
    """Return the lines without the times at which they were written."""
    kept = []
    for line in lines:
        kept.append({key: value for key, value in line.items() if key != "seconds"})
    return kept


# ---------------------------------------------------------------- what it holds


def test_it_has_the_readings_and_the_curve_of_the_report(make_spec, train, tmp_path):
    """CT has two encoders and so two lines per evaluation."""
    report = train(make_spec("ct", params=STEPS), tmp_path / "run")

    lines = without_seconds(lines_of(tmp_path / "run"))
    readings = [[line["step"], line["loss"]] for line in lines if "encoder" not in line]
    evaluations = [line for line in lines if "encoder" in line]
    assert readings == report["losses"]
    assert evaluations == report["curve"]
    assert [line["step"] for line in lines] == [2, 4, 4, 4, 6, 8, 8, 8]


def test_it_has_learned_values(make_spec, train, tmp_path, monkeypatch):
    monkeypatch.setattr("methods.simcse.Method.learned", lambda self: {"width": 0.25})
    train(make_spec("simcse", params=STEPS), tmp_path / "run")
    assert lines_of(tmp_path / "run")[-1]["learned"] == {"width": 0.25}


def test_a_line_is_there_as_soon_as_the_loss_was_read(make_spec, train, tmp_path, kill_at):
    kill_at(3)  # between the first reading and the second
    with pytest.raises(KeyboardInterrupt):
        train(make_spec("simcse", params=STEPS), tmp_path / "run")
    (line,) = lines_of(tmp_path / "run")
    assert line["step"] == 2
    assert line["seconds"] > 0


# ---------------------------------------------------------------- stopped and resumed


def test_a_run_that_was_stopped_has_the_log_of_one_that_was_not(
    make_spec, train, tmp_path, monkeypatch
):
    spec = make_spec("simcse", params=STEPS)
    train(spec, tmp_path / "whole")
    run = tmp_path / "run"
    batch_at = trainer.batch_at

    def asked_to_end(step, *args):
        if step == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return batch_at(step, *args)

    with monkeypatch.context() as patched:
        patched.setattr(trainer, "batch_at", asked_to_end)
        with pytest.raises(Stopped, match="after step 5"):
            train(spec, run)
    assert train(spec, run)["resumed_at"] == 5

    assert without_seconds(lines_of(run)) == without_seconds(lines_of(tmp_path / "whole"))
    seconds = [line["seconds"] for line in lines_of(run)]
    assert seconds == sorted(seconds)


@pytest.fixture
def killed_run(make_spec, train, tmp_path, kill_at, monkeypatch):
    """The spec and folder of a run that died after step 7 of 8, and whose checkpoint is of step
    4. It has read a loss since."""
    spec = make_spec("simcse", params=STEPS)
    run = tmp_path / "run"
    save = loop.checkpoint.save

    def save_step_4(state, *args):
        if state.step == 4:
            save(state, *args)

    kill_at(7)
    with monkeypatch.context() as patched:
        patched.setattr(loop.checkpoint, "save", save_step_4)
        with pytest.raises(KeyboardInterrupt):
            train(spec, run, checkpoint_seconds=0)
    kill_at(None)
    assert lines_of(run)[-1]["step"] == 6
    return spec, run


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-9])


def spoil(path):
    path.write_bytes(b'[]\n\xff\n{"step": [], "seconds": NaN}\n')


@pytest.mark.parametrize("damage", [lambda path: None, cut_off, spoil, os.unlink])
def test_a_killed_run_has_every_line_once(damage, killed_run, train):
    """Steps after the checkpoint are made again, also if the log was damaged or deleted."""
    spec, run = killed_run
    damage(run / LOG)

    report = train(spec, run)

    assert report["resumed_at"] == 4
    expected = log_records(report["losses"], report["curve"])
    assert without_seconds(lines_of(run)) == expected


def test_a_run_whose_checkpoint_cannot_be_used_starts_its_log_again(killed_run, train):
    spec, run = killed_run
    (run / ".checkpoint-4.pt").unlink()

    report = train(spec, run)

    assert report["resumed_at"] is None
    expected = log_records(report["losses"], report["curve"])
    assert without_seconds(lines_of(run)) == expected


# ---------------------------------------------------------------- trackers


def shown_by_tensorboard(run):
    """Read the numbers that TensorBoard shows of a run: by name, pairs of step and number."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    numbers = {}
    for name in events.Tags()["scalars"]:
        numbers[name] = [(event.step, event.value) for event in events.Scalars(name)]
    return numbers


def needs(package):
    """Skip a test where the package of a tracker is not installed."""
    return pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")


@needs("tensorboard")
def test_tensorboard_shows_the_log_and_changes_no_bit(make_spec, train, finished, tmp_path):
    run = tmp_path / "run"
    report = train(make_spec("ct", params=STEPS), run, log_to="tensorboard")

    shown = shown_by_tensorboard(run)
    names = {"loss"}
    for metric in ("spearman", "alignment", "uniformity"):
        names |= {f"dev/{metric}", f"dev_encoder1/{metric}"}
    assert shown.keys() == names
    assert shown["loss"] == [(step, pytest.approx(loss)) for step, loss in report["losses"]]
    assert [step for step, _ in shown["dev_encoder1/spearman"]] == [4, 8]
    assert weights(run) == weights(finished("ct", params=STEPS))


@needs("tensorboard")
def test_tensorboard_shows_no_step_of_a_resumed_run_twice(make_spec, train, tmp_path, kill_at):
    """It also shows steps that were made before it was asked for."""
    run = tmp_path / "run"
    spec = make_spec("simcse", params=STEPS)
    for last_step, log_to in ((5, None), (7, "tensorboard")):
        kill_at(last_step)
        with pytest.raises(KeyboardInterrupt):
            train(spec, run, checkpoint_seconds=0, log_to=log_to)
    kill_at(None)
    train(spec, run, log_to="tensorboard")

    assert [step for step, _ in shown_by_tensorboard(run)["loss"]] == [2, 4, 6, 8]


@needs("trackio")
def test_trackio_shows_no_step_of_a_resumed_run_twice(
    make_spec, train, tmp_path, kill_at, monkeypatch
):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))  # read when it is imported
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    run = tmp_path / "run"
    spec = make_spec("simcse", params=STEPS)
    kill_at(7)
    with pytest.raises(KeyboardInterrupt):
        train(spec, run, checkpoint_seconds=0, log_to="trackio")
    kill_at(None)
    train(spec, run, log_to="trackio")

    assert [shown.name for shown in trackio.Api().runs("csebench")] == [spec.run_id]
    logs = SQLiteStorage.get_logs("csebench", spec.run_id)
    assert [entry["step"] for entry in logs if "loss" in entry] == [2, 4, 6, 8]


@pytest.mark.parametrize("tracker", ["tensorboard", "trackio"])
def test_a_tracker_that_is_not_installed_is_refused_before_training(
    tracker, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(
        extras, "find_spec", lambda name: None if name == tracker else find_spec(name)
    )
    out = tmp_path / "run"
    assert cli.main(["train", "--method", "simcse", "--log-to", tracker, "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"csebench: --log-to {tracker}: the package {tracker} is missing; install it with pip"
        f" install {tracker}.\n"
    )
    assert not out.exists()
