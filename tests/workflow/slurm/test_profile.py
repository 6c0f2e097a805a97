"""What a training asks SLURM for by the profile, without a SLURM: the plugin of Snakemake writes the command."""

from types import SimpleNamespace

import pytest
import yaml

from csebench.base.project import ROOT

submit = pytest.importorskip("snakemake_executor_plugin_slurm.submit_string", reason="pip install -e '.[slurm]'")
PARAMS = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir"), "")


class Resources(dict):
    __getattr__ = dict.__getitem__


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        ({}, {"--cpus-per-gpu=4", "--mem-per-cpu 4000"}),
        ({"gpu": 0, "mem_mb_per_cpu": 0}, {"--cpus-per-task=1", "--mem 16000"}),  # as docs/cluster.md says
    ],
)
def test_processors_and_memory_of_a_training(changed, asked):
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    resources = Resources({"mem_mb": 16000, **profile["set-resources"]["train"], **changed})
    command = submit.get_submit_command(SimpleNamespace(resources=resources, threads=1), PARAMS)
    assert all(f" {words} " in f"{command} " for words in asked), command
