"""What every method and component must do, found by file name: `pytest
tests/conformance/test_conformance.py -k NAME`.

A new file in methods/ needs no test of its own: these are its tests.
"""

import json
import platform
from pathlib import Path

import numpy as np
import pytest
import torch
from host_random import HostRandom
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer
from tiny_runs import weights
from transformers import AutoModel, AutoTokenizer

from csebench.base.models import read_facts
from csebench.model.encoder import Encoder
from csebench.model.pooling import PROMPT_TEMPLATES, Encoded, pool
from csebench.plan.catalog.registry import (
    COMPONENTS,
    METHODS,
    adapter_names,
    declaration,
    fill,
    typed_params,
)
from csebench.plan.schema.declarations import POOLERS, Evaluation
from csebench.score.models import open_model
from csebench.train import trainer

LONG = "a long walk along the river and over the hills " * 40  # longer than any encoder reads


def all_runs():
    """Every method, its variants that take another path through the code, and every component on
    SimCSE, as keyword arguments of make_spec. Every pair of method and component: test_pairs.py."""
    runs, seen = {}, set()
    for name in adapter_names(METHODS):
        for variant in (None, *declaration(name).variant_params):
            if (path := code_path(name, variant)) not in seen:
                seen.add(path)
                runs[f"{name}-{variant}" if variant else name] = {
                    "method": name,
                    "variant": variant,
                }
    for component in adapter_names(COMPONENTS):
        runs[f"simcse+{component}"] = {"method": "simcse", "components": {component: {}}}
    return runs


def code_path(name, variant):
    """What of a variant's settings can choose another branch: texts, truth values, and numbers
    that are zero."""
    method = declaration(name)
    changed = dict(method.variant_params[variant]) if variant else {}
    components = {part: {} for part in method.components} | changed.pop("components", {})
    components = {part: params for part, params in components.items() if params is not None}
    settings = [fill(method, changed, name) if method.is_trained else changed]
    settings += [
        fill(declaration(part, COMPONENTS), params, part) for part, params in components.items()
    ]
    branches = [
        sorted((k, v) for k, v in s.items() if isinstance(v, str | bool) or v == 0)
        for s in settings
    ]
    return name, str(sorted(components)), str(branches)


RUNS = all_runs()
TRAINED = [k for k, v in RUNS.items() if declaration(v["method"]).is_trained]
PLAIN = [k for k in TRAINED if not RUNS[k].get("variant")]
# what is done with a finished run depends on no more
KINDS = ["simcse", "bert", "whitening", "random"]

NAMED = [
    pytest.param(name, folder, id=name)
    for folder in (METHODS, COMPONENTS)
    for name in adapter_names(folder)
]
files = pytest.mark.parametrize(("name", "folder"), NAMED)


def runs(ids):
    return pytest.mark.parametrize("run", ids)


@files
def test_values_fit_their_own_schema(name, folder):
    """Declared values, each variant's, and those that `csebench tune` tries pass the check that
    a user's values must pass, unchanged."""
    declared = declaration(name, folder)
    settings = [(declared, {key: value for key, (value, _) in declared.params.items()})]
    for variant in declared.variant_params.values():
        plugins = variant.get("components", {})
        settings.append(
            (declared, {key: value for key, value in variant.items() if key != "components"})
        )
        settings += [
            (declaration(plugin, COMPONENTS), params or {}) for plugin, params in plugins.items()
        ]
    for key, values in declared.search.items():
        assert len(set(values)) == len(values) > 1
        settings += [(declared, {key: value}) for value in values]
    for of, given in settings:
        assert fill(of, given, name).items() >= given.items()


@files
def test_says_where_values_come_from(name, folder):
    found = declaration(name, folder)
    assert all(source.strip() for _, source in found.params.values())
    assert not [key for key in found.params if hasattr(BaseModel, key)], (
        "a parameter with such a name hides pydantic's"
    )
    assert all(
        text.strip() for text in (found.title, found.paper, found.citation, *found.deviations)
    )


# ---------------------------------------------------------------- steps and training


RECORDED = Path(__file__).with_name("first_steps.json")
MOCO, LOWER = {"moco": {}}, {"weight": 1.0, "detach": False, "lower_dropout": 0.3}
MORE = {
    f"{name}+moco": {"method": name, "components": MOCO}
    for name in ("ct", "mirror_bert", "simcse_sup")
}
MORE |= {  # settings whose declared value hides what they do: 0, 1, or the default of a loss
    "simcse_sup, weighted": {"method": "simcse_sup", "params": {"hard_weight": 0.7}},
    "msse+moco, weighted": {
        "method": "msse",
        "params": {"contrast": 0.5, "projector": "linear"},
        "components": MOCO,
    },
    "msse, double": {"method": "msse", "params": {"augmentation": "double"}},
    "msse, delete": {"method": "msse", "params": {"augmentation": "delete", "layerwise": 0.5}},
    "mirror_bert, span": {"method": "mirror_bert", "params": {"span": 8}},
    "infocse, weighted": {"method": "infocse", "params": {"contrast": 0.5}},
    "infocse, lower": {"method": "infocse", "components": {"auxiliary_mlm": LOWER}},
    "simcse+rtd, weighted": {"method": "simcse", "components": {"rtd": {"weight": 1.0}}},
    "rankcse, weighted": {"method": "rankcse", "params": {"consistency": 0.5}},
    "scd, weighted": {"method": "scd", "params": {"repulsion": 0.5}},
    "esimcse, often": {"method": "esimcse", "params": {"repetition": 0.9}},
    "esimcse+ami": {"method": "esimcse", "components": {"ami": {"samples": 40}}},
    "micse-code, few": {
        "method": "micse",
        "variant": "code",
        "components": {"ami": {"samples": 40}},
    },
    "simcse, average": {"method": "simcse", "params": {"pooler": "avg_first_last_2022"}},
}


def assembled(spec, chunk_size=None):
    """The modules and the optimiser of a run, by one seed."""
    torch.manual_seed(0)
    encoder = Encoder.load(
        spec.encoder, spec.params["dropout"], spec.params["pooler"] == "cls", new_pooler=True
    )
    params = typed_params(spec.method, spec.params)
    plugins = {}
    for name, component in spec.components.items():
        plugins[name] = typed_params(name, component.params, COMPONENTS)
    return trainer.assemble(spec.method, encoder, params, plugins, chunk_size)


def batches(spec, sentences, method):
    """Three batches of sentences, or of triplets of them."""
    size = method.sentences_per_step()
    rows = sentences
    if declaration(spec.method).corpus == "triplets":
        rows = list(zip(sentences, sentences[1:], sentences[2:], strict=False))
    return [rows[step * size : (step + 1) * size] for step in range(3)]


def first_steps(spec, sentences):
    """Losses and squared norms of the gradients of three steps, and what the trainer asks a
    method."""
    without_clipping = spec.model_copy(update={"params": spec.params | {"clip": 1e9}})
    modules, optimizer = assembled(without_clipping)
    method, weights, found = (
        modules["method"],
        [w for g in optimizer.param_groups for w in g["params"]],
        [],
    )

    def note(*_):
        found.append(sum(w.grad.square().sum() for w in weights if w.grad is not None))

    optimizer.register_step_pre_hook(note)
    for batch in batches(spec, sentences, method):
        found.append(trainer.optimise(method, modules["components"], optimizer, batch, "fp32"))
    rates = [method.learning_rate_factor(step) for step in range(4)]
    asked = [
        method.sentences_per_step(),
        method.group,
        len(method.encoders()),
        len(weights),
        len(method.exported()),
    ]
    return [*map(float, found), *rates, *asked, float(method.keeps_last), float(method.decays_all)]


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="other machines draw other random numbers"
)
@pytest.mark.parametrize("run", json.loads(RECORDED.read_text()))
def test_first_steps_are_those_recorded(run, make_spec, sentences):
    """The steps that published runs were made with: a change that is meant changes a line of
    first_steps.json, too."""
    found = first_steps(make_spec(**(RUNS | MORE)[run]), sentences)
    assert found == pytest.approx(json.loads(RECORDED.read_text())[run], rel=1e-3, abs=1e-5)


@runs(PLAIN)
def test_loss_falls_on_a_repeated_batch(run, make_spec, train, tmp_path, monkeypatch):
    """Over 40 steps that all see the same batch, with the learning rate raised."""
    monkeypatch.setattr(
        "csebench.train.trainer.batch_at", lambda step, sentences, size, *_: sentences[:size]
    )
    monkeypatch.setattr("csebench.train.loop.LOG_EVERY", 1)
    spec = make_spec(**RUNS[run], params={"steps": 40, "evaluate_every": 40, "learning_rate": 1e-3})
    values = np.array([loss for _, loss in train(spec, tmp_path / "run")["losses"]])
    assert len(values) == 40 and np.isfinite(values).all()
    # single steps jump: batch normalisation, drawn masks
    assert values[20:].mean() < values[:3].mean(), values


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_dropout_that_gpus_fuse_is_the_cpus_where_the_host_draws(dtype):
    """As test_real_gpu.py needs it."""
    x = torch.randn(3, 4, 5, dtype=dtype).transpose(0, 1)
    torch.manual_seed(0)
    plain = torch.nn.functional.dropout(x, 0.3)
    torch.manual_seed(0)
    with HostRandom("cpu"):
        assert torch.equal(torch.native_dropout(x, 0.3, True)[0], plain)


@runs([*PLAIN, "random"])
def test_another_seed_gives_another_model(run, finished):
    """The same seed gives the same: test_killed_and_resumed."""
    one, two = (
        open_model(str(finished(**RUNS[run], seed=seed) / "model")).embed(["a"]) for seed in (1, 2)
    )
    assert not np.array_equal(one, two)


@runs(PLAIN)
def test_bf16_moves_the_loss_little(run, make_spec, train, tmp_path):
    """What is compared is compared in fp32: the first losses of the same run in either precision
    are close."""
    spec = make_spec(**RUNS[run], params={"steps": 2, "evaluate_every": 1})
    first, second = (
        [
            loss
            for _, loss in train(spec.model_copy(update={"precision": p}), tmp_path / p)["losses"]
        ]
        for p in ("fp32", "bf16")
    )
    # batch normalisation magnifies the rounding of a state
    assert second == pytest.approx(first, rel=0.3, abs=0.02)
    assert second != first


@pytest.mark.parametrize(
    ("run", "precision"), [*((run, "fp32") for run in TRAINED), ("micse", "bf16")]
)
def test_killed_and_resumed(run, precision, make_spec, train, tmp_path, kill_at):
    """A killed run ends with the weights and the report of one that was not (tests/chaos: killed
    several times)."""
    spec = make_spec(**RUNS[run], params={"steps": 4, "evaluate_every": 2})
    spec = spec.model_copy(update={"precision": precision})
    whole = train(spec, tmp_path / "whole")
    kill_at(3)
    with pytest.raises(KeyboardInterrupt):
        train(spec, tmp_path / "killed", checkpoint_seconds=0)
    assert not (tmp_path / "killed" / "model").exists()
    kill_at(None)
    resumed = train(spec, tmp_path / "killed", checkpoint_seconds=0)
    assert (whole["resumed_at"], resumed["resumed_at"]) == (None, 2)
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    for fact in ("curve", "losses", "best_step", "best_encoder", "best_dev", "steps"):
        assert resumed[fact] == whole[fact]


@runs(KINDS)
def test_finished_run_is_not_made_again(run, finished, make_spec, train):
    out = finished(**RUNS[run])
    before = {path: path.stat().st_mtime_ns for path in (out / "model").rglob("*")}
    report = json.loads((out / "train.json").read_text())
    assert train(make_spec(**RUNS[run]), out) == report
    assert {path: path.stat().st_mtime_ns for path in (out / "model").rglob("*")} == before


@runs(PLAIN)
def test_roberta(run, tiny_roberta, make_spec, train, sentences, tmp_path):
    """Trains on another architecture, and sentence-transformers reads the result as we do."""
    spec = make_spec(**RUNS[run], encoder=tiny_roberta, params={"steps": 2})
    report = train(spec, tmp_path / "run")
    assert np.isfinite([loss for _, loss in report["losses"]]).all()
    model, some = tmp_path / "run" / "model", [*sentences[:20], LONG]
    np.testing.assert_allclose(
        st_vectors(model, some), open_model(str(model)).embed(some), atol=1e-5
    )


# ---------------------------------------------------------------- what is exported


def st_vectors(model, sentences):
    # a prompt's pooling is ours
    loaded = SentenceTransformer(str(model), device="cpu", trust_remote_code=True)
    return loaded.encode(sentences, batch_size=4, show_progress_bar=False)


def hf_vectors(model, sentences, pooler):
    """By the two lines that a model card would show; of poolers themselves: test_sts.py."""
    tokenizer, encoder = (
        AutoTokenizer.from_pretrained(model),
        AutoModel.from_pretrained(model).eval(),
    )
    sentences = [PROMPT_TEMPLATES.get(pooler, "[X]").replace("[X]", s) for s in sentences]
    limit = encoder.config.max_position_embeddings
    batch = tokenizer(
        sentences, padding=True, truncation=True, max_length=limit, return_tensors="pt"
    )
    with torch.no_grad():
        output = encoder(**batch, output_hidden_states=True)
    ids, mask = batch["input_ids"], batch["attention_mask"].bool()
    return pool(pooler, Encoded(output, ids, mask, tokenizer.mask_token_id)).numpy()


EXPORTED = {run: RUNS[run] for run in PLAIN}
EXPORTED |= {f"bert-{p}": {"method": "bert", "params": {"pooler": p}} for p in POOLERS}


@pytest.mark.parametrize("run", EXPORTED)
def test_export_gives_equal_vectors_everywhere(run, finished, sentences):
    """AutoModel with AutoTokenizer, SentenceTransformer and this project read the same folder
    alike. It has a model card that names the run, no pickled weights, no traces of training."""
    model = finished(**EXPORTED[run]) / "model"
    some, facts = [*sentences[:12], LONG], read_facts(model)
    if facts["pooler"] in PROMPT_TEMPLATES:
        some.remove(LONG)  # of which AutoTokenizer would cut off the end of the template
    ours = open_model(str(model)).embed(some)
    np.testing.assert_allclose(hf_vectors(model, some, facts["pooler"]), ours, atol=1e-5)
    np.testing.assert_allclose(st_vectors(model, some), ours, atol=1e-5)
    assert facts["run"] in (model / "README.md").read_text()
    assert not {path.suffix for path in model.parent.rglob("*")} & {
        ".bin",
        ".pt",
        ".pth",
        ".pkl",
        ".part",
    }


@pytest.mark.parametrize("run", [*KINDS, *(run for run in EXPORTED if run.startswith("bert-"))])
def test_encoding_does_not_depend_on_the_batch(run, finished, sentences):
    model, some = str(finished(**(RUNS | EXPORTED)[run]) / "model"), sentences[:130]
    wanted = open_model(model, evaluation=Evaluation(batch_size=128)).embed(some)
    order = np.random.default_rng(0).permutation(len(some))
    shuffled = open_model(model, evaluation=Evaluation(batch_size=3)).embed(
        [some[i] for i in order]
    )
    np.testing.assert_allclose(shuffled, wanted[order], atol=1e-5)
