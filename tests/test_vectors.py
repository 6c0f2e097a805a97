"""Losses against the values and gradients of the official implementations.

`vectors/public` beside the checkout (or `CSEBENCH_VECTORS`) is used when it is there; the project's own
small set in `tests/vectors.npz` always is.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from csebench import ROOT, losses

PUBLIC = Path(os.environ.get("CSEBENCH_VECTORS", ROOT.parent / "shared" / "vectors" / "public"))
OWN = Path(__file__).parent / "vectors.npz"
F64, F32 = (torch.float64, "f64", 1e-9), (torch.float32, "f32", 1e-4)


class Case:
    """The arrays of one case in one precision, and the comparison the vectors ask for."""

    def __init__(self, name, precision):
        self.dtype, self.suffix, self.tolerance = precision
        self.arrays = np.load(PUBLIC / f"{name}.npz")
        self.settings = json.loads((PUBLIC / f"{name}.json").read_text())["hyper_parameters"]

    def tensor(self, name, grad=False):
        t = torch.from_numpy(self.arrays[name])
        t = t.to(self.dtype) if t.is_floating_point() else t.long()
        return t.requires_grad_() if grad else t

    def check(self, name, value):
        expected = torch.from_numpy(np.asarray(self.arrays[f"{name}_{self.suffix}"])).to(value.dtype)
        gap = (value.detach() - expected).abs().max() / expected.abs().max()
        assert gap <= self.tolerance, f"{name}: relative gap {gap:.2e}"


def cases(prefix):
    names = sorted(p.stem for p in PUBLIC.glob(f"{prefix}_[0-9].json"))
    missing = pytest.mark.skipif(not names, reason=f"no public vectors at {PUBLIC}")
    params = [pytest.param(n, p, id=f"{n}-{p[1]}") for n in names for p in (F64, F32)]
    return pytest.mark.parametrize(
        ("name", "precision"), params or [pytest.param(None, None, marks=missing, id=prefix)]
    )


@cases("simcse_unsup")
def test_simcse_unsup(name, precision):
    case = Case(name, precision)
    z1, z2 = case.tensor("in_z1", True), case.tensor("in_z2", True)
    loss = losses.info_nce(z1, z2, case.settings["temp"])
    loss.backward()
    case.check("loss", loss)
    case.check("grad_z1", z1.grad)
    case.check("grad_z2", z2.grad)


@cases("simcse_unsup_mlp")
def test_simcse_head(name, precision):
    from csebench.encoder import Head

    case = Case(name, precision)
    hidden = case.tensor("in_hidden", True)
    head = Head(hidden.shape[-1]).to(case.dtype)
    head.dense.load_state_dict({"weight": case.tensor("in_W"), "bias": case.tensor("in_b")})
    z = head(hidden[:, 0])
    loss = losses.info_nce(z[0::2], z[1::2], case.settings["temp"])
    loss.backward()
    case.check("loss", loss)
    case.check("grad_hidden", hidden.grad)
    case.check("grad_W", head.dense.weight.grad)
    case.check("grad_b", head.dense.bias.grad)


@cases("micse_diag_only")
def test_without_negatives(name, precision):
    case = Case(name, precision)
    z1, z2 = case.tensor("in_z1", True), case.tensor("in_z2", True)
    loss = losses.info_nce(z1, z2, case.settings["temp"], in_batch_negatives=False)
    loss.backward()
    case.check("loss", loss)
    case.check("grad_z1", z1.grad)
    case.check("grad_z2", z2.grad)


@cases("esimcse_queue")
def test_queue(name, precision):
    case = Case(name, precision)
    z1, z2 = case.tensor("in_z1", True), case.tensor("in_z2", True)
    loss = losses.info_nce(z1, z2, case.settings["temp"], queue=case.tensor("in_queue"))
    loss.backward()
    case.check("loss", loss)
    case.check("grad_z1", z1.grad)
    case.check("grad_z2", z2.grad)
    case.check("loss_no_queue", losses.info_nce(z1, z2, case.settings["temp"]))


@cases("ct_official")
def test_ct(name, precision):
    from csebench.encoder import mean_pool

    case = Case(name, precision)
    states = case.tensor("in_E1", True), case.tensor("in_E2", True)
    e1, e2 = (mean_pool(s, case.tensor(f"in_mask{i}")) for i, s in enumerate(states, 1))
    loss = losses.contrastive_tension(e1, e2, case.tensor("in_labels"))
    loss.backward()
    case.check("loss", loss)
    case.check("grad_E1", states[0].grad)
    case.check("grad_E2", states[1].grad)


@cases("ct_st")
def test_ct_sum(name, precision):
    case = Case(name, precision)
    e1, e2 = case.tensor("in_e1", True), case.tensor("in_e2", True)
    loss = losses.contrastive_tension(e1, e2, case.tensor("in_labels"), reduction="sum")
    loss.backward()
    case.check("loss", loss)
    case.check("grad_e1", e1.grad)
    case.check("grad_e2", e2.grad)


@cases("mirror_infonce")
def test_mirror(name, precision):
    from csebench.encoder import mean_pool

    case = Case(name, precision)
    h1, h2 = case.tensor("in_h1", True), case.tensor("in_h2", True)
    pools = {
        "cls": lambda h: h[:, 0],
        "mean": lambda h: mean_pool(h, torch.ones(h.shape[:2])),
        "mean_std": lambda h: mean_pool(h, case.tensor("in_mask")),
    }
    pool = pools[case.settings["agg_mode"]]
    loss = losses.nt_xent(pool(h1), pool(h2), case.settings["tau"])
    loss.backward()
    case.check("loss", loss)
    case.check("grad_h1", h1.grad)
    case.check("grad_h2", h2.grad)


@pytest.mark.skipif(not (PUBLIC / "mirror_span_mask_1.json").exists(), reason=f"no public vectors at {PUBLIC}")
def test_mirror_span_mask():
    from methods.mirror_bert import mask_span

    for example in json.loads((PUBLIC / "mirror_span_mask_1.json").read_text())["examples"]:
        rng = np.random.RandomState(example["numpy_global_seed"])
        assert mask_span(example["input"], rng.randint, example["mask_len"]) == example["output"]


@cases("micse_ami_code")
def test_ami_code(name, precision):
    case = Case(name, precision)
    attention, settings = case.tensor("in_attention", True), case.settings
    layers = attention[settings["min_layer"] : settings["max_layer"]]
    kept = case.tensor("in_kept_chunks")
    positions = case.tensor("in_sample_index")

    def recorded(valid, samples):
        assert valid.shape[0] == len(kept) and samples == positions.shape[1]
        return positions

    z1, z2 = case.tensor("in_z1", True), case.tensor("in_z2", True)
    term = -losses.ami_code([a[0::2] for a in layers], [a[1::2] for a in layers], settings["target_samples"], recorded)
    (grad_mi,) = torch.autograd.grad(term, attention, retain_graph=True)
    contrast = losses.info_nce(z1, z2, settings["temp"])
    total = settings["task_alpha"] * contrast + settings["task_lambda"] * term
    total.backward()
    case.check("mi_term", term)
    case.check("ce", contrast)
    case.check("loss_total", total)
    case.check("grad_mi_attn", grad_mi)
    case.check("grad_total_attn", attention.grad)
    case.check("grad_total_z1", z1.grad)
    case.check("grad_total_z2", z2.grad)


@cases("micse_ami_paper")
def test_ami_paper(name, precision):
    case = Case(name, precision)
    attention = case.tensor("in_attention", True)
    layers, real = attention[-4:], case.tensor("in_real_token_mask").bool()
    every = case.settings["samples"] == "all"
    positions = case.tensor("in_sample_index")
    mean_mi = losses.ami_paper(
        [a[0::2] for a in layers],
        [a[1::2] for a in layers],
        real,
        samples=None if every else case.settings["samples"],
        sampler=lambda valid, samples: positions.reshape(*valid.shape[:2], samples),
    )
    loss = -case.settings["lambda"] * mean_mi
    loss.backward()
    case.check("mean_mi", mean_mi)
    case.check("loss", loss)
    case.check("grad_attn", attention.grad)
