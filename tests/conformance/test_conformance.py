"""What every method and component must do.

They are found by file name: `pytest tests/conformance/test_conformance.py -k NAME`. A new file in
methods/ needs no test of its own, because these are its tests. Trainings of every method are marked
slow. Recorded first steps, and trainings of each kind of run, are not.
"""

import functools
import json
import platform
from pathlib import Path

import numpy as np
import pytest
import torch
from host_random import HostRandom
from pydantic import BaseModel
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from tiny_runs import weights
from transformers import AutoModel, AutoTokenizer, DynamicCache

from csebench.base.models import added_folder, read_facts
from csebench.model.encoder import MODULES_FILE, PREFIX_KEY, Encoder
from csebench.model.families import ENCODER_POOLERS
from csebench.model.pooling import PROMPT_TEMPLATES, Encoded, pool
from csebench.plan.catalog.registry import (
    COMPONENTS,
    METHODS,
    adapter_names,
    declaration,
    fill,
    typed_params,
)
from csebench.plan.schema.declarations import EncoderRef, Evaluation
from csebench.score.models import load_map, open_model
from csebench.train import trainer

RANKED = [f"sentence {number} of a corpus" for number in range(20)]
LONG = "a long walk along the river and over the hills " * 40  # longer than any encoder reads


def all_runs():
    """List every method, its variants that take another path through the code, and every component
    on SimCSE.

    test_pairs.py has every pair of method and component.

    Returns:
        Keyword arguments of make_spec by the name of the run.
    """
    runs = {}
    paths = set()
    for name in adapter_names(METHODS):
        for variant in (None, *declaration(name).variant_params):
            path = code_path(name, variant)
            if path not in paths:
                paths.add(path)
                run = f"{name}-{variant}" if variant else name
                runs[run] = {"method": name, "variant": variant}
    for component in adapter_names(COMPONENTS):
        runs[f"simcse+{component}"] = {"method": "simcse", "components": {component: {}}}
    return runs


def code_path(name, variant):
    """Describe which code a variant runs: its components, and the settings that can choose a
    branch."""
    method = declaration(name)
    changed = {}
    if variant is not None:
        changed = dict(method.variant_params[variant])
    components = {component: {} for component in method.components}
    components |= changed.pop("components", {})
    used = {component: params for component, params in components.items() if params is not None}

    if method.is_trained:
        changed = fill(method, changed, name)
    branches = [branching(changed)]
    for component, params in used.items():
        branches.append(branching(fill(declaration(component, COMPONENTS), params, component)))
    return name, str(sorted(used)), str(branches)


def branching(settings):
    """Select the settings that can choose a branch: texts, truth values, and numbers that are
    zero."""
    selected = {}
    for key, value in sorted(settings.items()):
        if isinstance(value, str | bool) or value == 0:
            selected[key] = value
    return selected


RUNS = all_runs()
TRAINED = [run for run, settings in RUNS.items() if declaration(settings["method"]).is_trained]
PLAIN = [run for run in TRAINED if not RUNS[run].get("variant")]
# what is done with a finished run depends on no more
KINDS = ["simcse", "bert", "whitening", "bert_flow", "random"]

ADAPTERS = [(name, METHODS) for name in adapter_names(METHODS)]
ADAPTERS += [(name, COMPONENTS) for name in adapter_names(COMPONENTS)]
every_adapter = pytest.mark.parametrize(
    ("name", "folder"), ADAPTERS, ids=[name for name, _ in ADAPTERS]
)


def runs(ids):
    return pytest.mark.parametrize("run", ids)


@every_adapter
def test_declared_values_fit_their_own_schema(name, folder):
    """Declared values pass the check that a user's values must pass, unchanged."""
    declared = declaration(name, folder)
    check_fits(declared, {key: value for key, (value, _) in declared.params.items()})


@every_adapter
def test_variants_fit_their_own_schema(name, folder):
    declared = declaration(name, folder)
    for variant in declared.variant_params.values():
        own = dict(variant)
        components = own.pop("components", {})
        check_fits(declared, own)
        for component, params in components.items():
            check_fits(declaration(component, COMPONENTS), params or {})


@every_adapter
def test_values_to_search_fit_their_own_schema(name, folder):
    """`csebench tune` tries several distinct values."""
    declared = declaration(name, folder)
    for key, values in declared.search.items():
        assert len(set(values)) == len(values) > 1
        for value in values:
            check_fits(declared, {key: value})


def check_fits(declared, params):
    assert fill(declared, params, declared.name).items() >= params.items()


@every_adapter
def test_says_where_values_come_from(name, folder):
    declared = declaration(name, folder)
    for key, (_, source) in declared.params.items():
        assert source.strip(), key
        assert not hasattr(BaseModel, key), f"the parameter {key} hides pydantic's"
    for text in (declared.title, declared.paper, declared.citation, *declared.deviations):
        assert text.strip()


# ---------------------------------------------------------------- steps and training


RECORDED = Path(__file__).with_name("first_steps.json")
MOCO = {"moco": {}}
ADDED_RUNS = {
    "ct+moco": {"method": "ct", "components": MOCO},
    "mirror_bert+moco": {"method": "mirror_bert", "components": MOCO},
    "simcse_sup+moco": {"method": "simcse_sup", "components": MOCO},
    # settings whose declared value hides what they do: 0, 1, or the default of a loss
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
    "infocse, lower": {
        "method": "infocse",
        "components": {"auxiliary_mlm": {"weight": 1.0, "detach": False, "lower_dropout": 0.3}},
    },
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
    # the tiny encoder finds all sentences alike, so the declared threshold leaves no negative
    "dclr, clear": {"method": "dclr", "params": {"threshold": 0.99, "temperature": 0.5}},
    "simcse, average": {"method": "simcse", "params": {"pooler": "avg_first_last_2022"}},
}


@functools.cache
def loaded(encoder, dropout, with_pooler):
    """Load an encoder once for all runs that start from it, because loading takes long.

    Returns:
        the encoder, to be copied, and the state of torch's random numbers after it was loaded.
    """
    torch.manual_seed(0)
    return Encoder.load(encoder, dropout, with_pooler, new_pooler=True), torch.get_rng_state()


def assembled(spec, chunk_size=None):
    """Return the modules and the optimiser of a run, always with the same random weights."""
    encoder, random_state = loaded(
        spec.encoder, spec.params["dropout"], spec.params["pooler"] == "cls"
    )
    encoder = encoder.copy()
    torch.set_rng_state(random_state)
    params = typed_params(spec.method, spec.params)
    components = {}
    for name, component in spec.components.items():
        components[name] = typed_params(name, component.params, COMPONENTS)
    modules, optimizer = trainer.assemble(spec.method, encoder, params, components, chunk_size)
    modules["method"].read_corpus(RANKED)
    return modules, optimizer


def batches(spec, sentences, method):
    """Return three batches of sentences, or of triplets if the method trains on these."""
    rows = sentences
    if declaration(spec.method).corpus == "triplets":
        rows = list(zip(sentences, sentences[1:], sentences[2:], strict=False))
    size = method.sentences_per_step()
    return [rows[:size], rows[size : 2 * size], rows[2 * size : 3 * size]]


def first_steps(spec, sentences):
    """Make three steps.

    Returns:
        The squared norm of the gradients and the loss of each step, and what the trainer asks a
        method.
    """
    # clipping would change the gradients
    without_clipping = spec.model_copy(update={"params": spec.params | {"clip": 1e9}})
    modules, optimizer = assembled(without_clipping)
    method = modules["method"]
    weights = []
    for group in optimizer.param_groups:
        weights += group["params"]
    of_steps = []

    def note_norm(*_):
        norms = [weight.grad.square().sum() for weight in weights if weight.grad is not None]
        of_steps.append(sum(norms))

    optimizer.register_step_pre_hook(note_norm)
    for batch in batches(spec, sentences, method):
        loss = trainer.optimise(method, modules["components"], optimizer, batch, "fp32")
        of_steps.append(loss)

    facts = [float(value) for value in of_steps]
    facts += [method.learning_rate_factor(step) for step in range(4)]
    facts += [
        method.sentences_per_step(),
        method.group,
        len(method.encoders()),
        len(weights),
        len(method.exported()),
        float(method.keeps_last),
        float(method.decays_all),
    ]
    return facts


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="other machines draw other random numbers"
)
@pytest.mark.parametrize("run", [*TRAINED, *ADDED_RUNS])
def test_first_steps_are_those_recorded(run, make_spec, sentences, request):
    """Published runs were made with these steps. An intended change of a step changes a line of
    first_steps.json, too: `--update-golden -n 0` writes the lines that are missing or wrong."""
    recorded = json.loads(RECORDED.read_text())
    updates = request.config.getoption("--update-golden")
    if run not in recorded and not updates:
        pytest.skip(f"first_steps.json has no line of {run}; --update-golden -n 0 writes it")
    settings = RUNS | ADDED_RUNS
    found = first_steps(make_spec(**settings[run]), sentences)
    if updates and recorded.get(run) != pytest.approx(found, rel=1e-3, abs=1e-5):
        record(run, found, recorded)
        return
    assert found == pytest.approx(recorded[run], rel=1e-3, abs=1e-5)


def record(run, values, recorded):
    """Write the first steps of a run into first_steps.json, in seven digits."""
    recorded = recorded | {run: [float(f"{value:.7g}") for value in values]}
    in_order = [name for name in [*TRAINED, *ADDED_RUNS] if name in recorded]
    lines = [f" {json.dumps(name)}: {json.dumps(recorded[name])}" for name in in_order]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def losses_of(report):
    """Return the losses that a training logged."""
    return [loss for _, loss in report["losses"]]


@pytest.mark.slow
@runs(PLAIN)
def test_loss_falls_on_a_repeated_batch(run, make_spec, train, tmp_path, monkeypatch):
    """40 steps see the same batch, with the learning rate raised."""

    def first_batch(step, sentences, size, *_):
        return sentences[:size]

    monkeypatch.setattr("csebench.train.trainer.batch_at", first_batch)
    monkeypatch.setattr("csebench.train.loop.LOG_EVERY", 1)
    spec = make_spec(**RUNS[run], params={"steps": 40, "evaluate_every": 40, "learning_rate": 1e-3})

    losses = np.array(losses_of(train(spec, tmp_path / "run")))

    assert len(losses) == 40
    assert np.isfinite(losses).all()
    # single steps jump: batch normalisation, drawn masks
    assert losses[20:].mean() < losses[:3].mean(), losses


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_dropout_that_gpus_fuse_is_the_cpus_where_the_host_draws(dtype):
    """test_real_gpu.py compares a GPU with the CPU in this way."""
    x = torch.randn(3, 4, 5, dtype=dtype).transpose(0, 1)
    torch.manual_seed(0)
    plain = torch.nn.functional.dropout(x, 0.3)
    torch.manual_seed(0)
    with HostRandom("cpu"):
        fused, _ = torch.native_dropout(x, 0.3, True)
    assert torch.equal(fused, plain)


@pytest.mark.slow
@runs([*PLAIN, "random"])
def test_another_seed_gives_another_model(run, finished):
    """test_killed_and_resumed checks that the same seed gives the same model."""
    model1 = open_model(str(finished(**RUNS[run], seed=1) / "model"))
    model2 = open_model(str(finished(**RUNS[run], seed=2) / "model"))
    assert not np.array_equal(model1.embed(["a"]), model2.embed(["a"]))


@pytest.mark.slow
@runs(PLAIN)
def test_bf16_moves_the_loss_little(run, make_spec, train, tmp_path):
    """Vectors are compared in fp32, so the first losses of a run in either precision are close."""
    spec = make_spec(**RUNS[run], params={"steps": 2, "evaluate_every": 1})
    losses = {}
    for precision in ("fp32", "bf16"):
        report = train(with_precision(spec, precision), tmp_path / precision)
        losses[precision] = losses_of(report)

    # batch normalisation magnifies the rounding of a state
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.3, abs=0.02)
    assert losses["bf16"] != losses["fp32"]


def with_precision(spec, precision):
    return spec.model_copy(update={"precision": precision})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "precision"), [*((run, "fp32") for run in PLAIN), ("micse", "bf16")]
)
def test_killed_and_resumed(run, precision, make_spec, train, tmp_path, kill_at):
    """A killed run ends with the weights and the report of one that was not killed. A variant keeps
    its state in the modules of its method. In tests/chaos, runs are killed several times."""
    spec = make_spec(**RUNS[run], params={"steps": 4, "evaluate_every": 2})
    spec = with_precision(spec, precision)
    whole = train(spec, tmp_path / "whole")

    kill_at(3)
    with pytest.raises(KeyboardInterrupt):
        train(spec, tmp_path / "killed", checkpoint_seconds=0)
    assert not (tmp_path / "killed" / "model").exists()
    kill_at(None)
    resumed = train(spec, tmp_path / "killed", checkpoint_seconds=0)

    assert whole["resumed_at"] is None
    assert resumed["resumed_at"] == 2
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    for fact in ("curve", "losses", "best_step", "best_encoder", "best_dev", "steps"):
        assert resumed[fact] == whole[fact]


@runs(KINDS)
def test_finished_run_is_not_made_again(run, finished, make_spec, train):
    out = finished(**RUNS[run])
    times = modification_times(out / "model")
    report = json.loads((out / "train.json").read_text())

    assert train(make_spec(**RUNS[run]), out) == report
    assert modification_times(out / "model") == times


def modification_times(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.slow
@runs(PLAIN)
def test_roberta(run, tiny_roberta, make_spec, train, sentences, tmp_path):
    """A method trains on another architecture. sentence-transformers reads the result as we do."""
    spec = make_spec(**RUNS[run], encoder=tiny_roberta, params={"steps": 2})
    texts = [*sentences[:20], LONG]

    report = train(spec, tmp_path / "run")

    model = str(tmp_path / "run" / "model")
    assert np.isfinite(losses_of(report)).all()
    np.testing.assert_allclose(st_vectors(model, texts), open_model(model).embed(texts), atol=1e-5)


# ---------------------------------------------------------------- what is exported


def st_vectors(model, sentences):
    """Embed sentences with sentence-transformers."""
    # a prompt's pooling is ours, so the folder has code
    loaded = SentenceTransformer(str(model), device="cpu", trust_remote_code=True)
    return loaded.encode(sentences, batch_size=4, show_progress_bar=False)


def hf_vectors(model, sentences, pooler):
    """Embed sentences with transformers, our pooling, and the fitted map if there is one.

    A model may sum the vectors of several encoders.
    """
    facts = read_facts(model)
    vectors = pooled_vectors(model, sentences, pooler)
    for number in range(2, facts["encoders"] + 1):
        vectors = vectors + pooled_vectors(added_folder(model, number), sentences, pooler)
    fitted = load_map(model, facts["method"])
    if fitted is None:
        return vectors
    return fitted(vectors)


def pooled_vectors(model, sentences, pooler):
    """Embed sentences with one encoder by transformers and our pooling.

    tests/protocol/test_sts.py checks the poolers themselves.
    """
    tokenizer = AutoTokenizer.from_pretrained(model)
    encoder = AutoModel.from_pretrained(model).eval()
    prefix = exported_prefix(model)
    template = PROMPT_TEMPLATES.get(pooler, "[X]")
    batch = tokenizer(
        [template.replace("[X]", sentence) for sentence in sentences],
        padding=True,
        truncation=True,
        max_length=encoder.config.max_position_embeddings - prefix.shape[2],
        return_tensors="pt",
    )
    mask = batch["attention_mask"].bool()
    with torch.no_grad():
        output = encoder(
            **batch | with_prefix(prefix, mask, encoder.config), output_hidden_states=True
        )
        encoded = Encoded(output, batch["input_ids"], mask, tokenizer.mask_token_id)
        layer = exported_feature_layer(model)
        if layer is not None:
            encoded.features = layer(output.last_hidden_state, mask)
    return pool(pooler, encoded).numpy()


NO_PREFIX = torch.zeros(1, 2, 0, 1)


def exported_prefix(model):
    """Read the prefix of an exported encoder, (layers, 2, P, D). P is 0 if it has none."""
    file = model / MODULES_FILE
    if file.exists():
        return load_file(file).get(PREFIX_KEY, NO_PREFIX)
    return NO_PREFIX


def exported_feature_layer(model):
    """Return the feature layer of an exported encoder, or None if it has none."""
    encoder, *_ = Encoder.load_all(EncoderRef(name=str(model), revision="local"))
    return encoder.feature_layer


def with_prefix(prefix, mask, config):
    """Return what transformers is given to read a prefix: a cache of keys and values, and a mask.

    Args:
        prefix: (layers, 2, P, D).
        mask: (N, T) bool.
        config: the configuration of the model.
    """
    if prefix.shape[2] == 0:
        return {}
    rows, tokens = mask.shape
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(prefix.unflatten(-1, (config.num_attention_heads, -1))):
        by_head = [part.transpose(0, 1).expand(rows, -1, -1, -1) for part in (keys, values)]
        cache.update(*by_head, layer)
    visible = torch.nn.functional.pad(mask, (prefix.shape[2], 0), value=True)
    # transformers adds a mask of four dimensions to the scores as it is
    hidden = ~visible[:, None, None].expand(-1, -1, tokens, -1)
    scores = torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)
    return {"past_key_values": cache, "attention_mask": scores}


EXPORTED = {run: RUNS[run] for run in PLAIN}
OF_POOLERS = {}
for pooler in ENCODER_POOLERS:
    OF_POOLERS[f"bert-{pooler}"] = {"method": "bert", "params": {"pooler": pooler}}
EXPORTED |= OF_POOLERS
NOT_EXPORTED = {".bin", ".pt", ".pth", ".pkl", ".part"}  # pickled weights, traces of training


@pytest.mark.slow
@pytest.mark.parametrize("run", EXPORTED)
def test_export_gives_equal_vectors_everywhere(run, finished, sentences):
    """AutoModel with AutoTokenizer, SentenceTransformer and this project read the same folder in
    the same way. AutoModel is given the prefix and the feature layer, if there is one. The model
    card names the run. There are no pickled weights and no traces of training."""
    model = finished(**EXPORTED[run]) / "model"
    facts = read_facts(model)
    pooler = facts["pooler"]
    texts = sentences[:12]
    if pooler not in PROMPT_TEMPLATES:  # AutoTokenizer would cut off the end of the template
        texts = [*texts, LONG]

    vectors = open_model(str(model)).embed(texts)

    np.testing.assert_allclose(hf_vectors(model, texts, pooler), vectors, atol=1e-5)
    np.testing.assert_allclose(st_vectors(model, texts), vectors, atol=1e-5)
    assert facts["run"] in (model / "README.md").read_text()
    suffixes = {path.suffix for path in model.parent.rglob("*")}
    assert not suffixes & NOT_EXPORTED


@pytest.mark.parametrize("run", [*KINDS, *OF_POOLERS])
def test_encoding_does_not_depend_on_the_batch(run, finished, sentences):
    settings = RUNS | EXPORTED
    model = str(finished(**settings[run]) / "model")
    texts = sentences[:130]
    order = np.random.default_rng(0).permutation(len(texts))

    expected = open_model(model, evaluation=Evaluation(batch_size=128)).embed(texts)
    in_small_batches = open_model(model, evaluation=Evaluation(batch_size=3))
    shuffled = in_small_batches.embed([texts[index] for index in order])

    np.testing.assert_allclose(shuffled, expected[order], atol=1e-5)
