"""Several processes of one run: two with half a batch each do what one does with the whole."""

import importlib
import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
import torch
from test_chunks import assert_equal, losses_and_gradients, turn_dropout_off
from test_conformance import RUNS, assembled, batches
from torch.multiprocessing import start_processes

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.train import parallel

pytestmark = pytest.mark.slow
AS_DECLARED = (
    "simcse_sup",
    "pcl",
    "condenser",
    "scd",
    "rankcse",
    "iscse",
    "mirror_bert",
    "simcse+moco",
)
CASES = {run: RUNS[run] for run in AS_DECLARED} | {
    "ct": {"method": "ct", "params": {"batch_size": 16}},
    "msse": {"method": "msse", "params": {"augmentation": "reverse"}},
    "infocse": {"method": "infocse", "components": {"auxiliary_mlm": {"weight": 1.0}}},
    "simcse+mlm": {"method": "simcse", "components": {"mlm": {"weight": 1.0}}},
    "simcse+ami": {"method": "simcse", "components": {"ami": {"weight": 1.0, "samples": 2000}}},
}


def every_third(tokenizer, ids, probability):
    """A mask that draws nothing, and hides unequally many tokens of unequal sentences."""
    chosen = (ids % 3 == 0) & ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    return ids.masked_fill(chosen, tokenizer.mask_token_id), ids.masked_fill(~chosen, -100)


def three_steps(spec, sentences, chunk_size):
    """Losses of three steps and their gradients, without anything random."""
    modules, _ = assembled(spec, chunk_size)
    turn_dropout_off(modules)
    shards = [
        parallel.shard(b, modules["method"].group)
        for b in batches(spec, sentences, modules["method"])
    ]
    losses, gradients = losses_and_gradients(modules, shards)
    return parallel.mean(losses), gradients


def work(rank, processes, folder, specs, sentences, chunk_size):
    """One process of several."""
    if processes > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(processes))
        place = {
            "init_method": f"file://{folder}/rendezvous",
            "rank": rank,
            "world_size": processes,
        }
        torch.distributed.init_process_group("gloo", timeout=timedelta(minutes=5), **place)
    for module in (
        "methods.condenser",
        "methods.components.mlm",
        "methods.components.auxiliary_mlm",
    ):
        importlib.import_module(module).mask_batch = every_third
    importlib.import_module("methods.mirror_bert").randint = lambda high: high // 2
    results = {case: three_steps(spec, sentences, chunk_size) for case, spec in specs.items()}
    results["any"] = [parallel.any_rank(flag, "cpu") for flag in (rank == 1, False)]
    if rank == 0:
        torch.save(results, folder / "results.pt")
    parallel.stop()


def test_two_processes_have_the_loss_of_the_whole_batch_also_in_chunks(
    make_spec, sentences, tmp_path
):
    """Losses and gradients: with a queue, hard negatives, groups, several blocks, unequally many
    masks."""
    specs, results = {case: make_spec(**settings) for case, settings in CASES.items()}, []
    for number, (processes, chunk_size) in enumerate([(1, None), (2, None), (2, 3)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        arguments = (processes, folder, specs, sentences, chunk_size)
        # which have imported everything already
        start_processes(work, arguments, processes, start_method="fork")
        results.append(torch.load(folder / "results.pt"))
    assert [result.pop("any") for result in results] == [
        [False, False],
        [True, False],
        [True, False],
    ]
    for case, whole in results[0].items():
        for result in results[1:]:
            assert_equal(result[case], whole, rtol=2e-3, gradient=2e-3)


# ---------------------------------------------------------------- from the command line


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
"""  # csebench, whose second process gets SIGTERM at step 5


def launch(spec, corpus, data, out, program=("-m", "csebench")):
    """`csebench train` in two processes; on the CPU where each could not have a GPU."""
    (out.parent / "spec.json").write_text(spec.model_dump_json())
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        *program,
    ]
    command += ["train", out.parent / "spec.json", "--corpus", corpus, "--data", data, "--out", out]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    env |= {} if torch.cuda.device_count() >= 2 else {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


def test_a_run_of_two_processes_that_was_stopped_goes_on(
    make_spec, corpus, smoke_data, train, tmp_path
):
    """One gets SIGTERM, both stop where losses are read. Losses are those of one process, to
    rounding; the model is that of two that were not stopped, to the last bit."""
    spec = make_spec("simcse", params={"dropout": 0.0, "steps": 8, "evaluate_every": 3})
    alone = train(spec, tmp_path / "alone")
    (tmp_path / "stopped.py").write_text(STOPPED)
    code, printed = launch(spec, corpus, smoke_data, tmp_path / "run", [tmp_path / "stopped.py"])
    assert code != 0 and "stopped by SIGTERM after step 6" in printed, printed[-3000:]
    for out in ("run", "whole"):
        code, printed = launch(spec, corpus, smoke_data, tmp_path / out)
        assert code == 0, printed[-3000:]
    resumed, whole = (
        json.loads((tmp_path / out / "train.json").read_text()) for out in ("run", "whole")
    )
    assert (resumed["resumed_at"], resumed["processes"], alone["processes"]) == (6, 2, 1)
    losses, wanted, expected = (
        [loss for _, loss in report["losses"]] for report in (resumed, whole, alone)
    )
    on_gpus = torch.cuda.device_count() >= 2  # whose sums have no fixed order
    assert losses == pytest.approx(wanted, rel=1e-3 if on_gpus else 1e-5)
    assert losses == pytest.approx(expected, rel=1e-3)
    assert on_gpus or resumed["model_sha256"] == whole["model_sha256"]


def test_a_batch_too_small_to_share(make_spec, train, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "world_size", lambda: 3)
    with pytest.raises(BadInput, match="3 processes cannot share a batch of 2 sentences"):
        train(make_spec("simcse", params={"batch_size": 2}), tmp_path / "out")
