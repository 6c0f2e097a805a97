"""Several processes of one run: two with half a batch each do what one does with the whole."""

import importlib
import json
import multiprocessing
import os
import subprocess
import sys

import pytest
import torch
from safetensors.numpy import load_file
from tiny_runs import TINY, TINY_SUBSTITUTES

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.data.corpus import read_corpus
from csebench.model.encoder import Encoder
from csebench.plan.declarations import EncoderRef, RunSettings
from csebench.plan.registry import COMPONENTS, declaration, fill
from csebench.train import parallel, trainer

CASES = ["simcse+moco", "simcse_sup", "ct", "pcl", "condenser", "simcse+ami", "simcse+mlm", "msse+compensation", "scd"]
CASES += ["rankcse", "iscse", "infocse+auxiliary_mlm", "mirror_bert"]
pytestmark = pytest.mark.slow
SMOKE = ROOT / "data" / "smoke"
GIVEN = {  # settings of components without anything random
    "moco": {"queue": 12, "dropout": 0.0},
    "ami": {"weight": 1.0, "samples": 2000},
    "compensation": {"input_dropout": 0.0},
    "mlm": {"weight": 1.0},
    "auxiliary_mlm": {"weight": 1.0},
}


def every_third(tokenizer, ids, probability):
    """A mask that draws nothing, and hides unequally many tokens of unequal sentences."""
    chosen = (ids % 3 == 0) & ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    return ids.masked_fill(chosen, tokenizer.mask_token_id), ids.masked_fill(~chosen, -100)


def three_steps(case, encoder, chunk_size):
    """Losses of three steps and norms of their gradients, without anything random."""
    name, *plugins = case.split("+")
    more = {"msse": {"augmentation": "reverse"}, "scd": {"second_dropout": 0.0}, "ct": {"batch_size": 16}}
    declared, settings = declaration(name), RunSettings(substitutes=TINY_SUBSTITUTES)
    params = TINY | {"dropout": 0.0} | more.get(name, {})
    params = fill(declared, params | settings.changes(declared, fill(declared, params, case)), case)
    components = {n: fill(declaration(n, COMPONENTS), GIVEN[n], case) for n in plugins}
    torch.manual_seed(0)
    loaded = Encoder.load(EncoderRef(name=str(encoder), revision="local"), 0.0, params["pooler"] == "cls")
    state, optimizer = trainer.assemble(name, loaded, params, components, chunk_size)
    for module in state.modules():  # the decoder of compensation has its own
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    norms, losses = [], []
    weights = [w for group in optimizer.param_groups for w in group["params"]]
    optimizer.register_step_pre_hook(
        lambda *_: norms.append(float(torch.cat([w.grad.flatten() for w in weights]).norm()))
    )
    method, kind = state["method"], declared.corpus
    sentences = read_corpus(SMOKE / ("nli/smoke.csv" if kind == "triplets" else "wiki/smoke.txt"), kind=kind)
    for number in range(3):
        batch = trainer.batch_at(number, sentences, method.sentences_per_step(), 1)
        loss = trainer.optimise(
            method, list(state["components"]), optimizer, parallel.shard(batch, method.group), "fp32"
        )
        losses.append(float(parallel.mean(loss)))
    return [*losses, *norms]


def work(rank, processes, folder, encoder, chunk_size):
    """One process of several, forked: it has imported everything already."""
    torch.set_num_threads(1)
    parallel.BUCKET = 4096  # so that there are many
    if processes > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(processes))
        rendezvous = f"file://{folder}/rendezvous"
        torch.distributed.init_process_group("gloo", rendezvous, rank=rank, world_size=processes)
    for module in ("methods.condenser", "methods.components.mlm", "methods.components.auxiliary_mlm"):
        importlib.import_module(module).mask_batch = every_third
    importlib.import_module("methods.mirror_bert").randint = lambda high: high // 2
    results = {case: three_steps(case, encoder, chunk_size) for case in CASES}
    results["any"] = [parallel.any_rank(flag, "cpu") for flag in (rank == 1, False)]
    if rank == 0:
        (folder / "results.json").write_text(json.dumps(results))
    parallel.stop()


def run(processes, folder, encoder, chunk_size=None):
    folder.mkdir()
    context = multiprocessing.get_context("fork")
    more = (processes, folder, encoder, chunk_size)
    started = [context.Process(target=work, args=(rank, *more), daemon=True) for rank in range(processes)]
    for process in started:
        process.start()
    for process in started:
        process.join(300)
        assert process.exitcode == 0
    return json.loads((folder / "results.json").read_text())


def test_two_processes_have_the_loss_of_the_whole_batch_also_in_chunks(tiny_bert, tmp_path):
    """Losses and gradients: with a queue, hard negatives, groups, several blocks, unequally many masks."""
    one, two = (run(n, tmp_path / str(n), tiny_bert) for n in (1, 2))
    chunks = run(2, tmp_path / "chunks", tiny_bert, chunk_size=3)
    assert one.pop("any") == [False, False] and two.pop("any") == chunks.pop("any") == [True, False]
    for case in CASES:
        assert two[case] == pytest.approx(one[case], rel=2e-3), case
        assert chunks[case] == pytest.approx(one[case], rel=2e-3), case


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


def launch(processes, spec, corpus, data, out, program=("-m", "csebench")):
    """`csebench train` under torchrun; on the CPU where each process could not have a GPU."""
    (out.parent / "spec.json").write_text(spec.model_dump_json())
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes, *program]
    command += ["train", out.parent / "spec.json", "--corpus", corpus, "--data", data, "--out", out]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    env |= {} if torch.cuda.device_count() >= processes else {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


def test_a_run_of_two_processes_that_was_stopped_goes_on_to_the_model_of_one(
    make_spec, corpus, smoke_data, train, tmp_path
):
    """One gets SIGTERM, both stop where losses are read; the model, written once, is that of one process, to rounding,
    and that of two that were not stopped to the last bit."""
    spec = make_spec("simcse", params={"dropout": 0.0, "steps": 8, "evaluate_every": 3})
    alone = train(spec, tmp_path / "alone")
    (tmp_path / "stopped.py").write_text(STOPPED)
    code, printed = launch(2, spec, corpus, smoke_data, tmp_path / "run", [tmp_path / "stopped.py"])
    assert code != 0 and "stopped by SIGTERM after step 6" in printed, printed[-3000:]
    for out in ("run", "whole"):
        code, printed = launch(2, spec, corpus, smoke_data, tmp_path / out)
        assert code == 0, printed[-3000:]
    resumed, whole = (json.loads((tmp_path / out / "train.json").read_text()) for out in ("run", "whole"))
    assert (resumed["resumed_at"], resumed["processes"], alone["processes"]) == (6, 2, 1)
    losses, wanted, expected = ([loss for _, loss in report["losses"]] for report in (resumed, whole, alone))
    on_gpus = torch.cuda.device_count() >= 2  # whose sums have no fixed order
    assert losses == pytest.approx(wanted, rel=1e-3 if on_gpus else 1e-5)
    assert losses == pytest.approx(expected, rel=1e-3)
    assert on_gpus or resumed["model_sha256"] == whole["model_sha256"]
    one, two = (load_file(tmp_path / f / "model/model.safetensors") for f in ("alone", "run"))
    assert all(two[name] == pytest.approx(one[name], abs=1e-3 if on_gpus else 1e-4) for name in one)


def test_a_batch_too_small_to_share(make_spec, train, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "world_size", lambda: 3)
    with pytest.raises(BadInput, match="3 processes cannot share a batch of 2 sentences"):
        train(make_spec("simcse", params={"batch_size": 2}), tmp_path / "out")
