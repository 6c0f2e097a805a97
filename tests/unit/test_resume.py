"""The checkpoint of a run: when it is written, and what happens to one that cannot be used."""

import contextlib
import itertools
import json
import os
import re
import shutil

import pytest
import torch
from tiny_runs import weights

from csebench.base import files as base_files
from csebench.base.errors import RunFailed
from csebench.base.files import replacing, sha256
from csebench.base.runs import CHECKPOINT
from csebench.train import checkpoint, loop, trainer

STEPS = {"steps": 8, "evaluate_every": 2}


@pytest.fixture
def killed_run(make_spec, train, tmp_path, tmp_path_factory, kill_at):
    """`killed_run(method)`: the spec and folder of a run that died after step 7 of 8. It was
    evaluated and checkpointed after every second step."""

    def make(method="simcse", **kwargs):
        spec = make_spec(method, params=STEPS, **kwargs)
        kept = tmp_path_factory.getbasetemp() / f"killed-{spec.run_id}"
        if not kept.exists():
            kill_at(7)
            with pytest.raises(KeyboardInterrupt):
                train(spec, kept, checkpoint_seconds=0)
            kill_at(None)
        return spec, shutil.copytree(kept, tmp_path / "run")

    return make


# ---------------------------------------------------------------- when it is written


def steps_of_15_seconds(monkeypatch):
    """Replace the clock of the loop by one that a step moves; its time is the only entry of the
    returned list."""
    clock = [0.0]
    batch_at = trainer.batch_at

    def slow(*args):
        clock[0] += 15
        return batch_at(*args)

    monkeypatch.setattr(loop.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(trainer, "batch_at", slow)
    return clock


def test_pace_and_progress_of_a_resumed_run(killed_run, train, monkeypatch):
    """Seconds per step are of the steps made now; progress goes on from those made before."""
    spec, folder = killed_run()
    steps_of_15_seconds(monkeypatch)
    started = []
    monkeypatch.setattr(loop.Progress, "start", lambda _, *facts: started.append(facts))
    monkeypatch.setattr(loop.Progress, "step", lambda *_: None)
    assert train(spec, folder)["seconds_per_step"] == 15
    assert started == [(6, 8, None)]


@pytest.mark.parametrize(
    ("file", "when", "resumed_at"),
    [
        ("checkpoint-", "half written", 2),
        ("checkpoint-", "in place", 2),
        ("checkpoint.json", "half written", 2),
        ("checkpoint.json", "in place", 4),
    ],
)
def test_killed_while_it_is_written(
    file, when, resumed_at, make_spec, finished, train, tmp_path, monkeypatch
):
    """This may be at any file of the second checkpoint. The run resumes from the first, or from the
    second if it is complete."""
    expected = weights(finished("simcse", params=STEPS | {"selection": "last"}))
    run = tmp_path / "run"
    spec = make_spec("simcse", params=STEPS)
    scores = itertools.count(0.1, 0.1)
    monkeypatch.setattr(trainer, "dev_point", lambda *_: {"spearman": next(scores)})
    written = []

    @contextlib.contextmanager
    def replace_and_die(path):
        written.append(path.name)
        dies = sum(file in name for name in written) == 2
        with monkeypatch.context() as patched, replacing(path) as temporary:
            yield temporary
            if dies and when == "half written":
                cut(temporary)
                patched.setattr(base_files.os, "replace", lambda *_: None)
        if dies:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "replacing", replace_and_die)
        patched.setattr(base_files, "replacing", replace_and_die)
        with pytest.raises(KeyboardInterrupt):
            train(spec, run, checkpoint_seconds=0)

    report = train(spec, run, checkpoint_seconds=0)
    assert report["resumed_at"] == resumed_at
    assert report["best_step"] == 8
    assert weights(run) == expected
    assert not list(run.glob(".checkpoint*"))


def test_writing_takes_a_small_part_of_a_run(make_spec, train, tmp_path, monkeypatch):
    """Checkpoints are a minute apart if writing is fast, and thirty times its duration if it is
    slow. They are written where losses were read."""
    clock = steps_of_15_seconds(monkeypatch)
    saved = []

    def save(*_):
        saved.append(clock[0])
        clock[0] += 4  # seconds to write one

    monkeypatch.setattr(checkpoint, "save", save)
    monkeypatch.setattr(loop, "LOG_EVERY", 2)

    train(make_spec("simcse", params={"steps": 32, "evaluate_every": 32}), tmp_path / "run")

    period = 4 + 30 * 4
    assert saved == [60, 60 + period, 60 + 2 * period, 60 + 3 * period]


# ---------------------------------------------------------------- one that cannot be used


def cut(path):
    """Leave the first half of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def replace_state(path, state):
    """Write another state into a checkpoint, with its hash."""
    torch.save(state, path)
    index = json.loads(path.with_name(CHECKPOINT).read_text())
    index["sha256"] = sha256(path)
    path.with_name(CHECKPOINT).write_text(json.dumps(index))


def put_code(path):
    """Replace the state by a crafted pickle, with its hash."""

    class Crafted:
        def __reduce__(self):
            return os.mkdir, (str(path.with_name("crafted")),)

    replace_state(path, {"step": 6, "state": Crafted()})


def write(content):
    """Return a damage that writes a text in the place of the file."""
    return lambda path: path.write_text(content)


@pytest.mark.parametrize(
    ("file", "damage", "reason"),
    [
        ("-6.pt", cut, "checkpoint-6.pt is damaged"),
        ("-6.pt", os.unlink, "checkpoint-6.pt: no such file"),
        ("-6.pt", put_code, "checkpoint-6.pt holds more than tensors"),
        (".json", write(""), "JSONDecodeError"),
        (".json", write("[]"), "TypeError"),
        (".json", write("{}"), "KeyError"),
        (".json", write('{"run": "simcse-0123456789"}'), "it is of simcse-0123456789"),
    ],
)
def test_what_cannot_be_used_is_set_aside(
    file, damage, reason, killed_run, finished, train, kill_at, capsys
):
    """A line names it, and the run starts again. When the run is done, the file that was set aside
    is deleted too."""
    spec, folder = killed_run()
    (path,) = folder.glob(f".checkpoint{file}")
    damage(path)
    kill_at(3)
    with pytest.raises(KeyboardInterrupt):
        train(spec, folder, checkpoint_seconds=0)
    assert (folder / ".set-aside.checkpoint.json").exists()
    assert (folder / CHECKPOINT).exists()

    kill_at(None)
    assert train(spec, folder)["resumed_at"] == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "is not used" in line]
    assert re.search(f"{reason}.*starts at step 0", line)
    assert weights(folder) == weights(finished("simcse", params=STEPS))
    assert not list(folder.glob(".*checkpoint*"))
    assert not (folder / "crafted").exists()


def test_a_checkpoint_that_does_not_fit_the_code_is_named(killed_run, train):
    spec, folder = killed_run()
    path = folder / ".checkpoint-6.pt"
    state = torch.load(path, weights_only=True)
    del state["optimizer"]
    replace_state(path, state)

    with pytest.raises(RunFailed, match=r"does not fit the present code.* Delete it"):
        train(spec, folder)


def test_a_checkpoint_of_the_version_before_sums_of_encoders_is_used(
    killed_run, train, monkeypatch
):
    """Its best weights are of one encoder."""
    spec, folder = killed_run()
    path = folder / ".checkpoint-6.pt"
    state = torch.load(path, weights_only=True)
    del state["best"]["added_weights"]
    replace_state(path, state)
    monkeypatch.setattr(trainer, "dev_point", lambda *_: {"spearman": -1.0})  # the best stays

    report = train(spec, folder)

    assert report["resumed_at"] == 6
    assert report["best_dev"] == state["best"]["score"]


class WithQueue(torch.nn.Module):
    """A module that keeps a queue besides its weights, as MoCo does."""

    def __init__(self, queue):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.queue = queue

    def get_extra_state(self):
        return {"queue": self.queue, "step": 3}

    def set_extra_state(self, state):
        self.queue = state["queue"]
        self.step = state["step"]


def test_what_a_module_keeps_besides_weights_is_on_the_device_after_a_resume():
    """A checkpoint is read to the host. Otherwise the next step on a GPU mixes devices."""
    saved = WithQueue(torch.ones(4, 2))
    values = checkpoint.TrainState(saved, torch.optim.AdamW(saved.parameters())).state_dict()
    resumed = WithQueue(torch.zeros(1, 2))
    state = checkpoint.TrainState(resumed, torch.optim.AdamW(resumed.parameters()))
    state.device = torch.device("meta")  # stands for a GPU

    state.load_state_dict(values)

    assert resumed.queue.device.type == "meta"
    assert resumed.queue.shape == (4, 2)
    assert resumed.step == 3
