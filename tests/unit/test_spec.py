"""Run identity: what a key depends on, and what it does not. No torch."""

import json

import pytest

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.plan import catalog, recipe, targets
from csebench.plan.cli_spec import read_spec
from csebench.plan.declarations import Dataset, Declaration, EncoderRef, RunSettings
from csebench.plan.papers import Recipe
from csebench.plan.recipe import Conditions, make_spec, refuse_contradictions
from csebench.plan.registry import COMPONENTS, METHODS, any_declaration, declaration, fill, names
from csebench.plan.spec import Spec

ENCODER = EncoderRef(name="some/encoder", revision="1" * 40)
CORPUS = Dataset(path="wiki/corpus.txt", sha256="a" * 64)
BASE = dict(size=1000, seed=48, encoder=ENCODER)


def given(corpus=CORPUS, dev_sha256="d" * 64, **changes):
    return Conditions({"sentences": corpus}, dev_sha256, RunSettings(**changes))


def spec(method="simcse", params=None, components=None, variant=None, given=given(), **changes):
    """A spec as the planner makes it."""
    recipe = Recipe(method=method, params=params or {}, components=components or {}, variant=variant)
    return make_spec(recipe, given=given, where="test", **(BASE | changes))


# ---------------------------------------------------------------- what does not count


def test_order_of_keys_does_not_count():
    one = spec(params={"steps": 100, "temperature": 0.07}, components={"ami": {"samples": 5}, "moco": {"queue": 8}})
    two = spec(params={"temperature": 0.07, "steps": 100}, components={"moco": {"queue": 8}, "ami": {"samples": 5}})
    assert one.run_id == two.run_id


def test_order_of_keys_in_a_spec_file_does_not_count():
    content = spec(components={"ami": {}, "moco": {}}).model_dump()

    def turned(value):
        return {k: turned(value[k]) for k in reversed(value)} if isinstance(value, dict) else value

    assert list(turned(content)) != list(content)
    assert read_spec(json.dumps(turned(content))).run_id == read_spec(json.dumps(content)).run_id


@pytest.mark.parametrize("written", ["3e-5", "3.0e-5", "0.00003", 0.00003, 3e-5])
def test_spelling_of_a_small_number_does_not_count(written):
    """YAML reads 3e-5 as a string, and the command line gives strings only."""
    assert spec(params={"learning_rate": written}).run_id == spec(params={"learning_rate": 3e-5}).run_id


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [("batch_size", "64", 64), ("weight_decay", 0, 0.0), ("clip", "1", 1.0), ("dropout", "0.2", 0.2)],
)
def test_type_of_a_number_does_not_count(name, one, two):
    assert spec(params={name: one}).run_id == spec(params={name: two}).run_id


def test_components_are_typed_too():
    one = spec(components={"ami": {"weight": "2.5e-3", "samples": "150"}})
    assert one.run_id == spec(components={"ami": {"weight": 0.0025}}).run_id
    assert one.components["ami"].params == {"weight": 0.0025, "form": "paper", "samples": 150}


def test_a_default_written_out_is_the_default():
    default = declaration("simcse").params["temperature"][0]
    assert spec(params={"temperature": default}).run_id == spec().run_id


def test_where_the_corpus_lies_does_not_count():
    elsewhere = Dataset(path="some/other/folder/corpus.txt", sha256=CORPUS.sha256, note="a copy")
    assert spec(given=given(corpus=elsewhere)).run_id == spec().run_id


@pytest.mark.parametrize("method", ["simcse", "micse", "bert", "random", "oracle"])
def test_a_written_spec_keeps_its_key(method):
    """`runs/<run>/spec.json` trained again is the same run."""
    assert read_spec(spec(method).model_dump_json()).run_id == spec(method).run_id


def test_a_written_spec_of_a_fitted_method_keeps_its_key():
    assert read_spec(spec("whitening").model_dump_json()).run_id == spec("whitening").run_id


def test_components_of_a_written_spec_are_typed_too():
    one = spec(components={"ami": {}})
    content = one.model_dump()
    content["components"]["ami"]["params"]["weight"] = "2.5e-3"
    assert read_spec(json.dumps(content)).run_id == one.run_id


# ---------------------------------------------------------------- what counts


CHANGES = {
    "seed": {"seed": 49},
    "size": {"size": 5000},
    "hyper-parameter of the trainer": {"params": {"steps": 7}},
    "hyper-parameter of the method": {"params": {"temperature": 0.07}},
    "pooler": {"params": {"pooler": "avg"}},
    "component": {"components": {"ami": {}}},
    "encoder": {"encoder": EncoderRef(name="another/encoder", revision=ENCODER.revision)},
    "encoder revision": {"encoder": EncoderRef(name=ENCODER.name, revision="2" * 40)},
    "corpus": {"given": given(Dataset(path=CORPUS.path, sha256="b" * 64))},
    "dev set": {"given": given(dev_sha256="e" * 64)},
    "precision": {"given": given(precision="bf16")},
    "threads": {"given": given(threads=2)},
    "scale's setting": {"given": given(override={"steps": 7, "batch_size": 4})},
    "method": {"method": "ct"},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_key_changes_with(change):
    assert spec(**change).run_id != spec().run_id


def test_all_keys_differ():
    assert len({spec(**change).run_id for change in [{}, *CHANGES.values()]}) == len(CHANGES) + 1


def test_key_changes_with_a_component_parameter():
    assert spec(components={"ami": {"weight": 0.1}}).run_id != spec(components={"ami": {}}).run_id


@pytest.mark.parametrize("bumped", ["simcse", "ami"])
def test_key_changes_with_a_version(bumped, monkeypatch):
    before = spec(components={"ami": {}})

    def newer(name, *folder):
        found = declaration(name, *folder)
        return found.model_copy(update={"version": found.version + 1}) if name == bumped else found

    monkeypatch.setattr(recipe, "declaration", newer)
    assert spec(components={"ami": {}}).run_id != before.run_id


def test_key_changes_with_the_trainer_version():
    assert spec().model_copy(update={"trainer_version": 99}).run_id != spec().run_id


def test_run_id_says_the_method():
    assert spec("mirror_bert").run_id.startswith("mirror_bert-")


# ---------------------------------------------------------------- cells, and runs that do not depend on a seed


def test_a_cell_is_its_runs_without_the_seed():
    assert len({spec(seed=seed).run_id for seed in range(5)}) == 5
    assert len({spec(seed=seed).cell_id for seed in range(5)}) == 1
    others = {spec(**c).cell_id for name, c in CHANGES.items() if name != "seed"}
    assert len(others | {spec().cell_id}) == len(CHANGES)


def test_an_untrained_method_has_one_run():
    """No seed, no size, no training setting, no corpus moves BERT as it is."""
    changed = given(override={"steps": 7, "batch_size": 4}, precision="bf16")
    other = Dataset(path="other.txt", sha256="c" * 64)
    runs = {spec("bert", given=g).run_id for g in (given(), changed, given(other, "e" * 64))}
    runs |= {spec("bert", seed=seed, size=size).run_id for seed in (1, 2, 3) for size in (10, 1000)}
    assert len(runs) == 1
    assert spec("bert", params={"pooler": "cls"}).run_id not in runs


def test_a_control_has_seeds_but_no_corpus():
    """The random control is another draw for every seed, whatever there is to train on."""
    assert len({spec("random", seed=seed).run_id for seed in (1, 2, 3)}) == 3
    assert spec("random", size=10).run_id == spec("random").run_id


def test_a_variant_is_what_it_sets():
    variant = dict(declaration("micse").variant_params["code"])
    components = variant.pop("components")
    assert spec("micse", variant="code").run_id == spec("micse", params=variant, components=components).run_id
    assert spec("micse", variant="code").run_id != spec("micse").run_id


def test_a_recipe_refines_its_variant():
    refined = spec("mirror_bert", variant="code", params={"mean_over_padding": False, "selection": "best"})
    assert refined.run_id == spec("mirror_bert").run_id


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params": {"temprature": 0.1}}, "'temperature'"),
        ({"params": {"steps": -1}}, "steps"),
        ({"params": {"steps": 2.5}}, "steps"),
        ({"params": {"dropout": 1.0}}, "dropout"),
        ({"params": {"pooler": "clss"}}, "cls_before_pooler"),
        ({"components": {"ammi": {}}}, "'ami'"),
        ({"components": {"ami": {"wieght": 1}}}, "'weight'"),
        ({"components": {"ami": {"form": "papper"}}}, "'paper'"),
        ({"variant": "cod", "method": "micse"}, "'code'"),
        ({"method": "simsce"}, "'simcse'"),
    ],
)
def test_a_recipe_that_does_not_fit_is_refused_with_the_valid_name(change, message):
    with pytest.raises(BadInput, match=message):
        spec(**change)


def test_seeds_of_sources_are_part_of_the_run_and_not_of_the_cell():
    base = spec("simcse")
    varied = base.model_copy(update={"seeds": {"order": 7}})
    assert varied.run_id != base.run_id
    assert varied.cell_id == base.cell_id
    assert (varied.seed_of("order"), varied.seed_of("head")) == (7, base.seed)


def test_what_is_at_its_default_is_no_part_of_an_id():
    """Seeds of sources, and which step is kept, came later: runs without them keep their ids."""
    content = spec("simcse").model_dump()
    assert "seeds" not in content
    assert "selection" not in content["params"]
    assert spec("simcse", params={"selection": "best"}).run_id == spec("simcse").run_id
    assert spec("simcse", params={"selection": "last"}).run_id != spec("simcse").run_id


def test_a_method_may_declare_what_runs_do_not_state():
    """Its default is then part of the identity, and the value that runs do not state is none of it, as elsewhere."""
    literal = {"name": "x", "version": 1, "title": "X", "paper": "P", "citation": "C"}
    declared = Declaration.model_validate({**literal, "params": {"selection": ("last", "sec. 1")}})
    assert fill(declared, {}, "x")["selection"] == "last"
    stated = fill(declared, {"selection": "best"}, "x")
    assert "selection" not in stated and (declared.unstated | stated)["selection"] == "best"


# ---------------------------------------------------------------- settings that contradict each other

DECLARED = [(folder, name) for folder in (METHODS, COMPONENTS) for name in names(folder)]
BELOW = [(folder, name, less, more) for folder, name in DECLARED for less, more in any_declaration(name, folder).below]


@pytest.mark.parametrize(("folder", "name", "less", "more"), BELOW, ids=str)
def test_what_must_be_below_is(folder, name, less, more):
    """Equal values are refused; the declared ones are not, nor is any of the search."""
    declared = any_declaration(name, folder)
    defaults = {key: value for key, (value, _) in declared.params.items()}
    equal = {less: defaults.get(more, more)} if less in defaults else {more: less}
    kind = {"params": equal} if folder == METHODS else {"components": {name: equal}}
    method = name if folder == METHODS else "simcse"
    with pytest.raises(BadInput, match=f"{name}: .* must be below"):
        spec(method, size=10**6, **kind)
    spec(method, size=10**6, **({} if folder == METHODS else {"components": {name: {}}}))


def published_specs():
    files = sorted((ROOT / "results").rglob("scores/*.json"))
    specs = {json.dumps(spec, sort_keys=True): spec for f in files if (spec := json.loads(f.read_bytes()).get("spec"))}
    return [Spec.model_validate(spec) for spec in specs.values()]


def test_no_published_run_contradicts_itself():
    specs = published_specs()
    for published in specs:
        refuse_contradictions(published, published.run_id)
    assert len(specs) > 500


@pytest.mark.parametrize("scale", catalog.scale_names())
def test_no_scale_contradicts_itself(scale):
    """Planning refuses a run that does."""
    assert len(targets.runs(scale)) > 100
