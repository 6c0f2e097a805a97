"""The checkpoint of a run: what it holds, when it is written, and what is done with one that cannot be used."""

import contextlib
import json
import os
import shutil

import pytest
import torch
from tiny_runs import weights

from csebench.base import files as base_files
from csebench.base.files import sha256
from csebench.base.runs import CHECKPOINT
from csebench.train import checkpoint, loop, trainer

STEPS = {"steps": 8, "evaluate_every": 2}


@pytest.fixture
def killed_run(make_spec, train, tmp_path, tmp_path_factory, kill_at):
    """(spec, folder) of a run that died after step 7 of 8, evaluated and checkpointed after every second one."""

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


# ---------------------------------------------------------------- what it holds


def test_the_best_weights_are_written_when_they_change(make_spec, train, tmp_path, monkeypatch, kill_at):
    scores = iter([0.1, 0.5, 0.4, 0.4, 0.4])
    monkeypatch.setattr(trainer, "dev_point", lambda *_: {"spearman": next(scores)})
    written, write = [], checkpoint._write
    monkeypatch.setattr(checkpoint, "_write", lambda path, values: written.append(path.name) or write(path, values))
    spec = make_spec("simcse", params=STEPS)
    for step in (5, 7, None):
        kill_at(step)
        try:
            train(spec, tmp_path / "run", checkpoint_seconds=0)
        except KeyboardInterrupt:
            kept = sorted(path.name for path in (tmp_path / "run").glob(".checkpoint-*"))
            assert kept == [".checkpoint-best-4-0.pt", f".checkpoint-state-{step - 1}.pt"]
    assert [name for name in written if "best" in name] == [".checkpoint-best-2-0.pt", ".checkpoint-best-4-0.pt"]
    assert [name for name in written if "state" in name] == [f".checkpoint-state-{step}.pt" for step in (2, 4, 6)]


def test_weights_that_never_change_are_not_in_it(killed_run):
    _, folder = killed_run("simcse", components={"rtd": {}})
    state = torch.load(folder / ".checkpoint-state-6.pt", weights_only=True)
    parts = {key.split(".")[2] for key in state["state"] if key.startswith("components.0.")}
    assert "discriminator" in parts and "generator" not in parts and "weights" not in state["best"]


def test_a_resumed_run_goes_on_in_time(killed_run, train, monkeypatch):
    """Its losses, curve and seconds are those of one run; seconds per step are of the steps made now."""
    spec, folder = killed_run()
    before = torch.load(folder / ".checkpoint-state-6.pt", weights_only=True)
    clock, seen, states, batch_at, make = [0.0], [], [], trainer.batch_at, trainer.TrainState

    def five_seconds(*args):
        clock[0] += 5
        return batch_at(*args)

    monkeypatch.setattr(loop.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(trainer, "batch_at", five_seconds)
    monkeypatch.setattr(trainer, "TrainState", lambda *args: states.append(make(*args)) or states[0])
    monkeypatch.setattr(loop.Progress, "start", lambda self, step, total, *_: seen.append((step, total)))
    monkeypatch.setattr(loop.Progress, "step", lambda self, *facts: seen.append(facts))
    report = train(spec, folder)
    assert states[0].seconds == before["seconds"] + 10 and report["seconds_per_step"] == 5
    best = max(point["spearman"] for point in before["curve"])
    assert seen[:2] == [(6, 8), (7, before["losses"][-1][1], best)]
    assert seen[2] == (8, report["losses"][-1][1], report["best_dev"])
    assert report["curve"][:3] == before["curve"] and report["losses"][:3] == before["losses"]


# ---------------------------------------------------------------- how it is written


@pytest.mark.parametrize("file", ["best", "state", "json"])
@pytest.mark.parametrize("when", ["half written", "written", "in place"])
def test_killed_while_it_is_written(when, file, make_spec, train, tmp_path, monkeypatch):
    """At any file of the second checkpoint: the run resumes from the first, or from the second if it is complete."""
    spec = make_spec("simcse", params=STEPS)
    monkeypatch.setattr(trainer, "dev_point", lambda *_: {"spearman": next(scores)})
    scores = iter([0.2, 0.4, 0.6, 0.8])
    train(spec, tmp_path / "whole")
    replacing, seen = base_files.replacing, []

    @contextlib.contextmanager
    def replace_and_die(path, durable):
        seen.append(path.name)
        if sum(file in name for name in seen) < 2:
            with replacing(path, durable) as temporary:
                yield temporary
            return
        with monkeypatch.context() as patched:
            if when != "in place":
                patched.setattr(base_files.os, "replace", lambda *_: None)
            with replacing(path, durable) as temporary:
                yield temporary
                if when == "half written":
                    cut(temporary)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "replacing", replace_and_die)
        scores = iter([0.2, 0.4])
        with pytest.raises(KeyboardInterrupt):
            train(spec, tmp_path / "run", checkpoint_seconds=0)
    first = 4 if (file, when) == ("json", "in place") else 2
    scores = iter([0.4, 0.6, 0.8][first // 2 - 1 :])
    report = train(spec, tmp_path / "run", checkpoint_seconds=0)
    assert report["resumed_at"] == first
    assert report["best_step"] == 8 and weights(tmp_path / "run") == weights(tmp_path / "whole")
    assert not list((tmp_path / "run").glob(".checkpoint*"))


def test_writing_takes_a_small_part_of_a_run(make_spec, train, tmp_path, monkeypatch):
    """A minute apart where writing is fast, thirty times what it took where it is slow; where losses were read."""
    clock, saved, batch_at = [0.0], [], trainer.batch_at

    def save(state, folder, run):
        saved.append(clock[0])
        clock[0] += 4  # seconds to write one

    def slow(*args):
        clock[0] += 15  # seconds of a step
        return batch_at(*args)

    monkeypatch.setattr(loop.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(checkpoint, "save", save)
    monkeypatch.setattr(loop, "LOG_EVERY", 2)
    monkeypatch.setattr(trainer, "batch_at", slow)
    train(make_spec("simcse", params={"steps": 32, "evaluate_every": 32}), tmp_path / "run")
    assert saved == [60 + i * (4 + 120) for i in range(4)]


# ---------------------------------------------------------------- one that cannot be used


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [flip, os.unlink])
@pytest.mark.parametrize("file", ["state-6.pt", "best"])
def test_a_damaged_file_is_set_aside(file, damage, killed_run, finished, train, kill_at, capsys):
    """With a line that names it; the run starts anew, and when it is done, what was set aside goes, too."""
    spec, folder = killed_run()
    (path,) = folder.glob(f".checkpoint-{file}*")
    damage(path)
    kill_at(3)
    with pytest.raises(KeyboardInterrupt):
        train(spec, folder, checkpoint_seconds=0)
    assert (folder / ".set-aside.checkpoint.json").exists() and (folder / CHECKPOINT).exists()
    kill_at(None)
    assert train(spec, folder)["resumed_at"] == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "is not used" in line]
    assert len(lines) == 1 and path.name in lines[0] and "starts at step 0" in lines[0]
    assert weights(folder) == weights(finished("simcse", params=STEPS)) and not list(folder.glob(".*checkpoint*"))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"run": RUN, "state": 7}', "\udcff"])
def test_an_index_that_is_not_ours_is_set_aside(content, killed_run, train, capsys):
    spec, folder = killed_run()
    text = content.replace("RUN", json.dumps(spec.run_id))
    (folder / CHECKPOINT).write_bytes(text.encode(errors="surrogateescape"))
    assert train(spec, folder)["resumed_at"] is None
    assert capsys.readouterr().err.count("is not used") == 1


def test_of_another_run_is_set_aside(killed_run, make_spec, finished, train, capsys):
    """Copied by hand into the folder of another seed."""
    spec, folder = killed_run()
    other = make_spec("simcse", params=STEPS, seed=2)
    (folder / "spec.json").unlink()
    assert train(other, folder)["resumed_at"] is None
    assert f"it is of {spec.run_id}" in capsys.readouterr().err
    assert weights(folder) == weights(finished("simcse", params=STEPS, seed=2))


def test_runs_no_code(killed_run, train, tmp_path):
    """A crafted pickle in place of the state, with its hash."""

    class Crafted:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "crafted"),)

    spec, folder = killed_run()
    path = folder / ".checkpoint-state-6.pt"
    torch.save({"step": 6, "state": Crafted()}, path)
    index = json.loads((folder / CHECKPOINT).read_text())
    index["state"]["sha256"] = sha256(path)
    (folder / CHECKPOINT).write_text(json.dumps(index))
    assert train(spec, folder)["resumed_at"] is None
    assert not (tmp_path / "crafted").exists()
