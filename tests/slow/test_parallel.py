"""Several processes of one run: two with half a batch each do what one does with the whole."""

import json
import os
import subprocess
import sys

import pytest
from parallel_worker import CASES
from safetensors.numpy import load_file

from csebench.base.project import ROOT

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


def launch(processes, *arguments):
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*TORCHRUN, str(processes), *map(str, arguments)], capture_output=True, text=True, env=env)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def steps(tiny_bert, tmp_path_factory):
    """Losses and norms of gradients by case: of one process, of two, and of two that compute in chunks."""
    folder, found = tmp_path_factory.mktemp("parallel"), {}
    for name, processes, chunk_size in (("one", 1, []), ("two", 2, []), ("chunks", 2, [3])):
        out = folder / f"{name}.json"
        code, printed = launch(processes, ROOT / "tests/slow/parallel_worker.py", tiny_bert, out, *chunk_size)
        assert code == 0, printed[-3000:]
        found[name] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("processes", ["two", "chunks"])
@pytest.mark.parametrize("case", CASES)
def test_two_processes_have_the_loss_of_the_whole_batch(case, processes, steps):
    assert steps[processes][case] == pytest.approx(steps["one"][case], rel=2e-3), case


@pytest.mark.slow
def test_a_run_of_two_processes(make_spec, corpus, smoke_data, train, tmp_path):
    """From the command line: the model of one process, to rounding, written once."""
    spec = make_spec("simcse", params={"dropout": 0.0, "steps": 4})
    alone = train(spec, tmp_path / "alone")
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    arguments = ["-m", "csebench", "train", tmp_path / "spec.json", "--corpus", corpus, "--data", smoke_data]
    code, printed = launch(2, *arguments, "--out", tmp_path / "both")
    assert code == 0, printed[-3000:]
    report = json.loads((tmp_path / "both/train.json").read_text())
    assert report["processes"] == 2 and alone["processes"] == 1
    losses = [[loss for _, loss in r["losses"]] for r in (report, alone)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    one, two = (load_file(tmp_path / f / "model/model.safetensors") for f in ("alone", "both"))
    assert all(two[name] == pytest.approx(one[name], abs=1e-4) for name in one)


@pytest.mark.slow
def test_a_batch_too_small_to_share(make_spec, corpus, smoke_data, tmp_path):
    spec = make_spec("simcse", params={"batch_size": 2})
    (tmp_path / "spec.json").write_text(spec.model_dump_json())
    arguments = ["-m", "csebench", "train", tmp_path / "spec.json", "--corpus", corpus, "--data", smoke_data]
    code, printed = launch(3, *arguments, "--out", tmp_path / "out")
    assert code != 0 and "3 processes cannot share a batch of 2 sentences" in printed
    assert not (tmp_path / "out/train.json").exists()
