"""The checkpoint of a run: what it holds, when it is written, and what is done with one that cannot be used."""

import contextlib
import json
import os

import pytest
import torch

from csebench.base import files as base_files
from csebench.base.files import sha256
from csebench.base.runs import CHECKPOINT
from csebench.train import checkpoint, loop, trainer
from methods.simcse import Method

STEPS = {"steps": 8, "evaluate_every": 2}


def weights(out):
    return (out / "model" / "model.safetensors").read_bytes()


def files(out, kind):
    return sorted(path.name for path in out.glob(f".checkpoint-{kind}*"))


@pytest.fixture
def kill_at(monkeypatch):
    """`kill_at(step)`: training dies when it assembles the batch of this step; None: it does not."""
    batch_at = trainer.batch_at

    def arm(step):
        def killed(current, *args):
            if current == step:
                raise KeyboardInterrupt
            return batch_at(current, *args)

        monkeypatch.setattr(trainer, "batch_at", killed)

    return arm


@pytest.fixture
def killed_run(make_spec, train, tmp_path, kill_at):
    """(spec, folder) of a run that died after step 7 of 8, evaluated and checkpointed after every second one."""

    def make(method="simcse", **kwargs):
        spec = make_spec(method, params=STEPS, **kwargs)
        kill_at(7)
        with pytest.raises(KeyboardInterrupt):
            train(spec, tmp_path / "run", checkpoint_seconds=0)
        kill_at(None)
        return spec, tmp_path / "run"

    return make


# ---------------------------------------------------------------- what it holds


def test_the_best_weights_are_written_when_they_change(make_spec, train, tmp_path, monkeypatch, kill_at):
    scores = iter([0.1, 0.5, 0.4, 0.4, 0.4])
    point = {"alignment": 0.0, "uniformity": 0.0}
    monkeypatch.setattr("csebench.train.trainer.dev_point", lambda *_: {"spearman": next(scores), **point})
    written, write = [], checkpoint._write
    monkeypatch.setattr(checkpoint, "_write", lambda path, values: written.append(path.name) or write(path, values))
    spec = make_spec("simcse", params=STEPS)
    for step in (5, 7, None):
        kill_at(step)
        try:
            train(spec, tmp_path / "run", checkpoint_seconds=0)
        except KeyboardInterrupt:
            assert files(tmp_path / "run", "best") == [".checkpoint-best-4-0.pt"]
    assert [name for name in written if "best" in name] == [".checkpoint-best-2-0.pt", ".checkpoint-best-4-0.pt"]
    assert [name for name in written if "state" in name] == [f".checkpoint-state-{step}.pt" for step in (2, 4, 6)]


@pytest.mark.parametrize(("component", "frozen"), [("rtd", "generator."), ("auxiliary_mlm", "lower.")])
def test_weights_that_never_change_are_not_in_it(component, frozen, killed_run):
    _, folder = killed_run(components={component: {}})
    state = torch.load(folder / ".checkpoint-state-6.pt", weights_only=True)["state"]
    assert any(key.startswith("components.0.") for key in state)
    assert not any(key.startswith(f"components.0.{frozen}") for key in state)


def test_weights_without_gradient_that_change_are_in_it(killed_run):
    """MoCo's moving average, and its queue."""
    _, folder = killed_run("micse")
    state = torch.load(folder / ".checkpoint-state-6.pt", weights_only=True)["state"]
    assert "components.1._extra_state" in state
    assert any(key.startswith("components.1.momentum.") for key in state)


# ---------------------------------------------------------------- how it is written


@pytest.mark.parametrize("file", ["best", "state", "json"])
@pytest.mark.parametrize("when", ["half written", "written", "in place"])
def test_killed_while_it_is_written(when, file, make_spec, train, tmp_path, monkeypatch):
    """At any file of the second checkpoint: the run resumes from the first, or from the second if it is complete."""
    spec = make_spec("simcse", params=STEPS)
    point = {"alignment": 0.0, "uniformity": 0.0}
    monkeypatch.setattr("csebench.train.trainer.dev_point", lambda *_: {"spearman": next(scores), **point})
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
    """A minute apart where writing is fast, thirty times what it took where it is slow."""
    clock, saved = [0.0], []

    def save(state, folder, run):
        saved.append(clock[0])
        clock[0] += 30  # seconds to write one

    monkeypatch.setattr(loop.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(checkpoint, "save", save)
    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    loss = Method.loss

    def slow(self, views):
        clock[0] += 10  # seconds of a step
        return loss(self, views)

    monkeypatch.setattr(Method, "loss", slow)
    train(make_spec("simcse", params={"steps": 400, "evaluate_every": 400}), tmp_path / "run")
    assert saved == [60 + i * (30 + 900) for i in range(5)]


# ---------------------------------------------------------------- one that cannot be used


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "cut": cut,
    "one bit": flip,
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"\x80\x04garbage" * 99),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("file", ["state-6.pt", "best"])
def test_a_damaged_file_is_set_aside(file, damage, killed_run, finished, train, capsys):
    spec, folder = killed_run()
    (path,) = folder.glob(f".checkpoint-{file}*")
    DAMAGE[damage](path)
    report = train(spec, folder)
    assert report["resumed_at"] is None
    lines = [line for line in capsys.readouterr().err.splitlines() if "is not used" in line]
    assert len(lines) == 1 and path.name in lines[0] and "starts at step 0" in lines[0]
    assert weights(folder) == weights(finished("simcse", params=STEPS))


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"run": 1}', '{"run": RUN, "state": 7}', "\udcff"])
def test_an_index_that_is_not_ours_is_set_aside(content, killed_run, train, capsys):
    spec, folder = killed_run()
    text = content.replace("RUN", json.dumps(spec.run_id))
    (folder / CHECKPOINT).write_bytes(text.encode(errors="surrogateescape"))
    assert train(spec, folder)["resumed_at"] is None
    assert capsys.readouterr().err.count("is not used") == 1


def test_of_another_run_is_set_aside(killed_run, make_spec, finished, train, tmp_path, capsys):
    """Copied by hand into the folder of another seed."""
    spec, folder = killed_run()
    other = make_spec("simcse", params=STEPS, seed=2)
    (tmp_path / "other").mkdir()
    for path in folder.glob(".checkpoint*"):
        (tmp_path / "other" / path.name).write_bytes(path.read_bytes())
    assert train(other, tmp_path / "other")["resumed_at"] is None
    assert f"it is of {spec.run_id}" in capsys.readouterr().err
    assert weights(tmp_path / "other") == weights(finished("simcse", params=STEPS, seed=2))


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


def test_what_was_set_aside_goes_when_the_run_is_done(killed_run, train, kill_at):
    spec, folder = killed_run()
    cut(folder / ".checkpoint-state-6.pt")
    kill_at(3)
    with pytest.raises(KeyboardInterrupt):
        train(spec, folder, checkpoint_seconds=0)
    assert (folder / ".set-aside.checkpoint.json").exists() and (folder / CHECKPOINT).exists()
    kill_at(None)
    assert train(spec, folder)["resumed_at"] == 2
    assert not list(folder.glob(".*checkpoint*"))
