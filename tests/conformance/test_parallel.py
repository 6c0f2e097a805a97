"""Several processes of one run: two with half a batch each compute what one does with the whole."""

import importlib
import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
import torch
from test_chunks import Steps, assert_equal, losses_and_gradients, turn_dropout_off
from test_conformance import RUNS, assembled, batches, losses_of
from torch.multiprocessing import start_processes

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.base.training_log import LOG
from csebench.train import parallel

pytestmark = pytest.mark.slow
# runs with their declared settings
AS_DECLARED = (
    "simcse_sup",
    "promcse_sup",
    "pcl",
    "condenser",
    "scd",
    "rankcse",
    "rankcse_teachers",
    "rank_encoder",
    "iscse",
    "mirror_bert",
    "mocose",
    "simcse+moco",
    "sg_opt",
    "is_bert",
)
CASES = {run: RUNS[run] for run in AS_DECLARED}
CASES |= {
    "ct": {"method": "ct", "params": {"batch_size": 16}},
    "dclr": {"method": "dclr", "params": {"noise": 0.0}},  # nothing is drawn
    "distillcse": {"method": "distillcse", "params": {"group_share": 0.0}},  # nothing is drawn
    "vascl": {"method": "vascl", "params": {"radius": 0.0}},  # what is drawn is not used
    "declutr": {"method": "declutr", "params": {"anchors": 99}},  # spans are whole documents
    "msse": {"method": "msse", "params": {"augmentation": "reverse"}},
    "infocse": {"method": "infocse", "components": {"auxiliary_mlm": {"weight": 1.0}}},
    "simcse+mlm": {"method": "simcse", "components": {"mlm": {"weight": 1.0}}},
    "simcse+ami": {"method": "simcse", "components": {"ami": {"weight": 1.0, "samples": 2000}}},
}


def mask_every_third(tokenizer, ids, probability):
    """Stand in for `mask_batch`: draw nothing, and hide unequally many tokens of unequal
    sentences."""
    is_special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    is_masked = (ids % 3 == 0) & ~is_special
    masked = ids.masked_fill(is_masked, tokenizer.mask_token_id)
    labels = ids.masked_fill(~is_masked, -100)
    return masked, labels


def three_steps(spec, sentences, chunk_size):
    """Compute three steps without anything random. Every process gets the mean of the losses."""
    modules, _ = assembled(spec, chunk_size)
    turn_dropout_off(modules)
    method = modules["method"]
    shards = []
    for batch in batches(spec, sentences, method):
        shards.append(parallel.shard(batch, method.group))
    losses, gradients = losses_and_gradients(modules, shards)
    return parallel.mean(losses), gradients


def work(rank, processes, folder, specs, sentences, chunk_size):
    """Do the work of one process of several: compute steps of all runs.

    The process of rank 0 writes the results to `folder`, and those of `any_rank` for a flag that
    only rank 1 sets, and for one that nobody sets.
    """
    if processes > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(processes))
        torch.distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder}/rendezvous",
            rank=rank,
            world_size=processes,
            timeout=timedelta(minutes=5),
        )
    for module in (
        "methods.condenser",
        "methods.declutr",
        "methods.components.mlm",
        "methods.components.auxiliary_mlm",
    ):
        importlib.import_module(module).mask_batch = mask_every_third
    importlib.import_module("methods.mirror_bert").randint = lambda high: high // 2

    steps = {case: three_steps(spec, sentences, chunk_size) for case, spec in specs.items()}
    flags = [parallel.any_rank(rank == 1, "cpu"), parallel.any_rank(False, "cpu")]
    if rank == 0:
        torch.save({"steps": steps, "flags": flags}, folder / "results.pt")
    parallel.stop()


def test_two_processes_have_the_loss_of_the_whole_batch_also_in_chunks(
    make_spec, sentences, tmp_path
):
    """The gradients are equal, too. The runs have a queue, hard negatives, groups, several blocks,
    and unequally many masks."""
    specs = {case: make_spec(**settings) for case, settings in CASES.items()}

    def results_of(processes, chunk_size):
        folder = tmp_path / f"{processes} processes, {chunk_size}"
        folder.mkdir()
        arguments = (processes, folder, specs, sentences, chunk_size)
        # forked processes have imported everything already
        start_processes(work, arguments, processes, start_method="fork")
        return torch.load(folder / "results.pt")

    alone = results_of(processes=1, chunk_size=None)
    shared = results_of(processes=2, chunk_size=None)
    in_chunks = results_of(processes=2, chunk_size=3)

    assert alone["flags"] == [False, False]
    for results in (shared, in_chunks):
        assert results["flags"] == [True, False]
        for case in CASES:
            actual = Steps(*results["steps"][case])
            assert_equal(actual, Steps(*alone["steps"][case]), rtol=2e-3, gradient=2e-3)


# ---------------------------------------------------------------- from the command line


# csebench, whose second process gets SIGTERM at step 5
STOPPED = """import os, signal, sys
from csebench import cli
from csebench.train import trainer
batch_at = trainer.batch_at
def stopping(step, *args):
    if step == 5 and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGTERM)
    return batch_at(step, *args)
trainer.batch_at = stopping
sys.exit(cli.main())
"""


def launch(spec, corpus, data, out, program=("-m", "csebench")):
    """Start `csebench train` in two processes.

    They are on the CPU if there are fewer than two GPUs.

    Returns:
        The exit status, and what was printed.
    """
    spec_file = out.parent / "spec.json"
    spec_file.write_text(spec.model_dump_json())
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [*program, "train", spec_file, "--corpus", corpus, "--data", data, "--out", out]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    if torch.cuda.device_count() < 2:
        env["CUDA_VISIBLE_DEVICES"] = ""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


def test_a_run_of_two_processes_that_was_stopped_goes_on(
    make_spec, corpus, smoke_data, train, tmp_path
):
    """One process gets SIGTERM, and both stop where losses are read. The losses are those of one
    process, up to rounding. The model is that of two processes that were not stopped, to the last
    bit. Only one process writes the log."""
    spec = make_spec("simcse", params={"dropout": 0.0, "steps": 8, "evaluate_every": 3})
    alone = train(spec, tmp_path / "alone")
    stopping_program = tmp_path / "stopped.py"
    stopping_program.write_text(STOPPED)

    code, printed = launch(spec, corpus, smoke_data, tmp_path / "run", [stopping_program])
    assert code != 0, printed[-3000:]
    assert "stopped by SIGTERM after step 6" in printed, printed[-3000:]

    for out in ("run", "whole"):
        code, printed = launch(spec, corpus, smoke_data, tmp_path / out)
        assert code == 0, printed[-3000:]
    resumed = json.loads((tmp_path / "run" / "train.json").read_text())
    whole = json.loads((tmp_path / "whole" / "train.json").read_text())

    assert resumed["resumed_at"] == 6
    assert resumed["processes"] == 2
    lines = (tmp_path / "run" / LOG).read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [3, 3, 6, 6, 8, 8]
    assert alone["processes"] == 1
    assert losses_of(resumed) == pytest.approx(losses_of(alone), rel=1e-3)
    if torch.cuda.device_count() >= 2:  # sums on a GPU have no fixed order
        assert losses_of(resumed) == pytest.approx(losses_of(whole), rel=1e-3)
    else:
        assert losses_of(resumed) == pytest.approx(losses_of(whole), rel=1e-5)
        assert resumed["model_sha256"] == whole["model_sha256"]


def test_a_batch_too_small_to_share(make_spec, train, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "world_size", lambda: 3)
    with pytest.raises(BadInput, match="3 processes cannot share a batch of 2 sentences"):
        train(make_spec("simcse", params={"batch_size": 2}), tmp_path / "out")
