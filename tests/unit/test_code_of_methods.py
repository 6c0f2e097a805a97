"""Code of a method must leave the settings of its process alone and not end it. Otherwise the run
fails."""

import asyncio
import json
import os
import random

import pytest
import torch
from threadpoolctl import threadpool_limits
from tiny_runs import weights

from csebench.base.errors import RunFailed
from csebench.base.runs import PROGRESS
from csebench.train.foreign import ForeignCode
from methods import simcse

CHANGES = {
    "threads": (
        lambda: torch.set_num_threads(torch.get_num_threads() + 1),
        lambda: torch.set_num_threads(1),
    ),
    "BLAS": (
        lambda: threadpool_limits(3, user_api="blas"),
        lambda: threadpool_limits(1, user_api="blas"),
    ),
    "seed": (lambda: torch.manual_seed(123), lambda: None),
    "dtype": (
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_default_dtype(torch.float32),
    ),
    "device": (lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None)),
    "deterministic": (
        lambda: torch.use_deterministic_algorithms(True),
        lambda: torch.use_deterministic_algorithms(False),
    ),
    "precision": (
        lambda: torch.set_float32_matmul_precision("medium"),
        lambda: torch.set_float32_matmul_precision("highest"),
    ),
    "gradient": (lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)),
    "denormals": (lambda: torch.set_flush_denormal(True), lambda: torch.set_flush_denormal(False)),
}


def call(function, foreign):
    with foreign:
        function()


@pytest.mark.parametrize(("change", "restore"), CHANGES.values(), ids=CHANGES)
def test_a_setting_that_is_changed_is_named(change, restore):
    foreign = ForeignCode("mine-0123456789")
    message = r"mine-0123456789: code of the method changes .* from .* to .*restore it"
    try:
        with pytest.raises(RunFailed, match=message):
            call(change, foreign)
    finally:
        restore()


def test_what_is_restored_or_of_its_own_is_no_change():
    foreign = ForeignCode("mine-0123456789")
    with foreign, torch.no_grad(), torch.random.fork_rng(), threadpool_limits(2):
        torch.manual_seed(7)
        torch.Generator().manual_seed(7)
        random.seed(7)
        torch.randn(3)
    foreign.seed(9)  # the trainer's own
    with foreign:
        torch.randn(3)


@pytest.mark.parametrize(
    "kind", [SystemExit, GeneratorExit, KeyboardInterrupt, asyncio.CancelledError, BaseException]
)
def test_what_is_no_error_in_python_is_one_with_its_place(kind):
    def raises():
        raise kind

    message = rf"test_code_of_methods\.py: line \d+: ends the process \({kind.__name__}\)"
    with pytest.raises(RunFailed, match=message):
        call(raises, ForeignCode("mine-0123456789"))


@pytest.mark.parametrize("ends_by", [None, ValueError, SystemExit])
def test_a_fork_does_not_go_on_with_the_run(ends_by, tmp_path, capfd):
    """It does not reach the handlers of errors either, which write the files of the run."""
    try:
        with ForeignCode("mine-0123456789"):
            process = os.fork()
            if process == 0 and ends_by is not None:
                raise ends_by
        if process == 0:
            (tmp_path / "train.json").touch()
    finally:
        if process == 0:
            os._exit(0)

    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    assert not list(tmp_path.iterdir())
    assert "forked a process that goes on with the run" in capfd.readouterr().err


def message_of_failure(train, spec, out):
    """Train a run that fails, and return the message, which is also noted for `csebench
    status`."""
    with pytest.raises(RunFailed) as failed:
        train(spec, out)
    noted = json.loads((out / PROGRESS).read_text())
    assert noted["state"] == "failed"
    assert noted["message"] == str(failed.value)
    assert not (out / "model").exists()
    assert not (out / "train.json").exists()
    return noted["message"]


@pytest.mark.parametrize("place", ["__init__", "views", "loss", "learned", "exported"])
def test_wherever_the_trainer_calls_it(place, make_spec, train, tmp_path, monkeypatch):
    original = getattr(simcse.Method, place)

    def change(*arguments, **more):
        torch.set_num_threads(2)
        return original(*arguments, **more)

    monkeypatch.setattr(simcse.Method, place, change)
    try:
        message = message_of_failure(train, make_spec("simcse"), tmp_path / "run")
    finally:
        torch.set_num_threads(1)
    assert "changes torch.get_num_threads() from 1 to 2" in message


def test_a_file_that_seeds_when_it_is_imported_changes_no_seed(
    make_spec, train, tmp_path, monkeypatch, finished
):
    """If a process makes several runs, only the first would have that seed."""
    from csebench.train import trainer

    load_code = trainer.load_code

    def import_seeding_file(spec):
        load_code(spec)
        torch.manual_seed(0)

    monkeypatch.setattr(trainer, "load_code", import_seeding_file)
    train(make_spec("simcse"), tmp_path / "run")

    assert weights(tmp_path / "run") == weights(finished("simcse"))
