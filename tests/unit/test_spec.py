"""Run identity: what a key depends on, and what it does not; from a recipe to a run. No torch."""

import json

import pytest
from pydantic import ValidationError

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.plan import catalog, registry, tuning
from csebench.plan.cli_spec import read_spec
from csebench.plan.declarations import Dataset, Declaration, EncoderRef, RunSettings
from csebench.plan.papers import Recipe
from csebench.plan.recipe import Conditions, make_spec, refuse_contradictions
from csebench.plan.registry import COMPONENTS, METHODS, any_declaration, declaration, fill, names
from csebench.plan.spec import Spec

ENCODER = EncoderRef(name="some/encoder", revision="1" * 40)
CORPUS = Dataset(path="wiki/corpus.txt", sha256="a" * 64)
LITERAL = {"name": "x", "version": 1, "title": "X", "paper": "P", "citation": "C"}


def given(corpus=CORPUS, dev="d" * 64, tuned=None, **settings):
    return Conditions({"sentences": corpus}, dev, RunSettings(**settings), tuned=tuned or {})


def spec(method="simcse", params=None, components=None, variant=None, sweep=None, given=given(), **changes):
    """A spec as the planner makes it."""
    recipe = Recipe(
        method=method, params=params or {}, components=components or {}, variant=variant, sweep=sweep or {}
    )
    return make_spec(recipe, given=given, where="test", **{"size": 1000, "seed": 48, "encoder": ENCODER, **changes})


# ---------------------------------------------------------------- what does not count

SAME = {
    "order of keys": (
        {"params": {"steps": 100, "temperature": 0.07}, "components": {"ami": {"samples": 5}, "moco": {"queue": 8}}},
        {"params": {"temperature": 0.07, "steps": 100}, "components": {"moco": {"queue": 8}, "ami": {"samples": 5}}},
    ),
    "spelling of a small number": ({"params": {"learning_rate": "3.0e-5"}}, {"params": {"learning_rate": 0.00003}}),
    "a number as text": ({"params": {"batch_size": "64"}}, {"params": {"batch_size": 64}}),
    "a whole number": ({"params": {"weight_decay": 0, "clip": "1"}}, {"params": {"weight_decay": 0.0, "clip": 1.0}}),
    "types of a component": ({"components": {"ami": {"weight": "2.5e-3"}}}, {"components": {"ami": {}}}),
    "a default that is written out": ({"params": {"temperature": 0.05}}, {}),
    "the step that is kept by default": ({"params": {"selection": "best"}}, {}),
    "where the corpus lies": ({"given": given(Dataset(path="other/corpus.txt", sha256="a" * 64, note="a copy"))}, {}),
    "size for a control": ({"method": "random", "size": 10}, {"method": "random"}),
    "a variant that is refined": (
        {"method": "mirror_bert", "variant": "code", "params": {"mean_over_padding": False, "selection": "best"}},
        {"method": "mirror_bert"},
    ),
}


@pytest.mark.parametrize(("one", "two"), SAME.values(), ids=SAME)
def test_key_stays_with(one, two):
    assert spec(**one).run_id == spec(**two).run_id


@pytest.mark.parametrize("method", ["simcse", "micse", "bert", "random", "whitening"])
def test_a_written_spec_keeps_its_key(method):
    """`runs/<run>/spec.json` trained again is the same run; neither types nor the order of keys count."""
    made = spec(method, components={"ami": {}} if method == "simcse" else {})
    content = json.loads(made.model_dump_json())
    for component in content["components"].values():
        component["params"] = {key: str(value) for key, value in component["params"].items()}
    turned = {key: content[key] for key in reversed(content)}
    assert read_spec(json.dumps(turned)).run_id == made.run_id
    assert made.run_id.startswith(f"{method}-")


# ---------------------------------------------------------------- what counts

CHANGES = {
    "seed": {"seed": 49},
    "size": {"size": 5000},
    "hyper-parameter of the trainer": {"params": {"steps": 7}},
    "hyper-parameter of the method": {"params": {"temperature": 0.07}},
    "pooler": {"params": {"pooler": "avg"}},
    "step that is kept": {"params": {"selection": "last"}},
    "component": {"components": {"ami": {}}},
    "component's parameter": {"components": {"ami": {"weight": 0.1}}},
    "encoder": {"encoder": EncoderRef(name="another/encoder", revision=ENCODER.revision)},
    "encoder revision": {"encoder": EncoderRef(name=ENCODER.name, revision="2" * 40)},
    "corpus": {"given": given(Dataset(path=CORPUS.path, sha256="b" * 64))},
    "dev set": {"given": given(dev="e" * 64)},
    "precision": {"given": given(precision="bf16")},
    "threads": {"given": given(threads=2)},
    "scale's setting": {"given": given(override={"steps": 7, "batch_size": 4})},
    "method": {"method": "ct"},
}


def test_every_change_gives_another_key_and_all_but_the_seed_another_cell():
    assert len({spec(**change).run_id for change in [{}, *CHANGES.values()]}) == len(CHANGES) + 1
    assert len({spec(**change).cell_id for change in [{}, *CHANGES.values()]}) == len(CHANGES)
    assert spec(seed=49).cell_id == spec().cell_id


def test_seeds_of_sources_are_part_of_the_run_and_not_of_the_cell():
    base = spec()
    varied = base.model_copy(update={"seeds": {"order": 7}})
    assert varied.run_id != base.run_id and varied.cell_id == base.cell_id
    assert (varied.seed_of("order"), varied.seed_of("head")) == (7, base.seed)


def test_a_run_may_start_from_the_model_of_another():
    first = spec()
    assert spec(encoder=first.model).run_before == first.run_id
    assert first.run_before is None


def test_a_method_may_declare_what_runs_do_not_state():
    """Its default is then part of the identity, and the value that runs do not state is none of it, as elsewhere."""
    declared = Declaration.model_validate({**LITERAL, "params": {"selection": ("last", "sec. 1")}})
    assert fill(declared, {}, "x")["selection"] == "last"
    stated = fill(declared, {"selection": "best"}, "x")
    assert "selection" not in stated and (declared.unstated | stated)["selection"] == "best"


def test_what_is_searched_is_a_parameter():
    with pytest.raises(ValidationError, match="search: unknown parameter 'temprature'"):
        Declaration.model_validate({**LITERAL, "search": {"temprature": [0.1]}})


def test_an_untrained_method_has_one_run_and_a_control_one_per_seed():
    """No seed, no size, no training setting, no corpus moves BERT as it is."""
    changed = given(override={"steps": 7, "batch_size": 4}, precision="bf16")
    other = given(Dataset(path="other.txt", sha256="c" * 64), "e" * 64)
    runs = {spec("bert", given=g, seed=s, size=n).run_id for g, s, n in ((changed, 1, 10), (other, 2, 50))}
    assert runs == {spec("bert").run_id} != {spec("bert", params={"pooler": "cls"}).run_id}
    assert spec("bert").params == {"pooler": declaration("bert").params["pooler"][0]}
    assert len({spec("random", seed=seed).run_id for seed in (1, 2, 3)}) == 3


# ---------------------------------------------------------------- layers of settings


def test_a_variant_is_what_it_sets():
    variant = dict(declaration("micse").variant_params["code"])
    components = variant.pop("components")
    assert spec("micse", variant="code").run_id == spec("micse", params=variant, components=components).run_id
    assert spec("micse", variant="code").run_id != spec("micse").run_id


def test_a_variant_leaves_out_a_component_that_a_recipe_may_bring_back():
    assert [*spec("micse", variant="released").components] == ["ami"]
    assert [*spec("micse", variant="released", components={"moco": {}}).components] == ["ami", "moco"]


def test_later_layers_override_earlier_ones():
    """Recipe, scale, what a search chose of what neither variant nor recipe sets, what a table varies."""
    scale = {"override": {"learning_rate": 1e-4}, "kinds": {"two_views": {"batch_size": 16}}}
    scale |= {"substitutes": {"samples": {"150": 7}}}
    tuned = {"simcse+ami": {"temperature": 0.5, "learning_rate": 0.5, "batch_size": 32, "ami.weight": 0.5}}
    made = spec(
        params={"learning_rate": 3e-3, "temperature": 0.1},
        components={"ami": {"weight": 0.1}},
        sweep={"batch_size": 8},
        given=given(**scale, tuned=tuned),
    )
    shown = {key: made.settings[key] for key in ("learning_rate", "temperature", "batch_size", "ami.weight")}
    assert shown == {"learning_rate": 1e-4, "temperature": 0.1, "batch_size": 8, "ami.weight": 0.1}
    assert made.settings["ami.samples"] == 7
    chosen = spec(components={"ami": {}}, given=given(tuned=tuned)).settings
    assert {key: chosen[key] for key in tuned["simcse+ami"]} == tuned["simcse+ami"]
    of_variant = spec("msse", variant="without_nce", given=given(tuned={"msse": {"contrast": 0.5}}), size=10**6)
    assert of_variant.params["contrast"] == 0.0
    coded = spec("micse", variant="code", given=given(tuned={"micse": {"ami.weight": 0.5}}))
    assert coded.settings["ami.weight"] == 1e-4


@pytest.fixture
def drop_in(monkeypatch):
    """`drop_in(text)`: as if methods/mine.py held this text."""
    files, read_text = registry.files, registry.read_text

    def dropped(text):
        mine = {METHODS: {"mine": METHODS / "mine.py"}}
        monkeypatch.setattr(registry, "files", lambda folder: files(folder) | mine.get(folder, {}))
        monkeypatch.setattr(registry, "read_text", lambda path: text if path.stem == "mine" else read_text(path))
        caches.clear()

    yield dropped
    monkeypatch.undo()
    caches.clear()


@pytest.mark.parametrize("name", catalog.scale_names())
def test_a_method_that_is_dropped_in_gets_what_simcse_gets(name, drop_in):
    """SimCSE under another name: at scale mini also what the search on SimCSE chose."""
    drop_in((ROOT / METHODS / "simcse.py").read_text().replace('"name": "simcse"', '"name": "mine"'))
    scale = catalog.scale(name)
    encoder = scale.encoders["bert-base"]
    of_scale = tuning.tuned_conditions(scale, encoder)
    simcse, mine = (spec(method, given=of_scale, encoder=encoder) for method in ("simcse", "mine"))
    assert mine.model_copy(update={"method": "simcse"}) == simcse


def test_a_method_is_of_the_kind_of_the_class_that_it_extends(drop_in):
    literal = {**LITERAL, "name": "mine"}
    for imported, base, kind in (
        ("from methods.simcse_sup import Method as Base", "Base", "supervised"),
        ("from methods import simcse_sup", "simcse_sup.Method", "supervised"),
        ("import methods.simcse_sup", "methods.simcse_sup.Method", "supervised"),
        ("from csebench.train.method import Method as Base", "Base", "two_views"),
    ):
        drop_in(f"{imported}\nDECLARATION = {literal}\nclass Method({base}): pass\n")
        assert declaration("mine").kind == kind
    assert declaration("diffcse").kind == "two_views" and declaration("msse_sup").corpus == "triplets"


def test_a_scale_sets_what_a_method_of_the_kind_has_and_does_not_keep():
    kinds = {"two_views": {"temperature": 0.5, "pooler": "avg_top2", "batch_size": 24}, "supervised": {"steps": 7}}
    simcse, ct = (spec(method, given=given(kinds=kinds)) for method in ("simcse", "ct"))
    assert [simcse.params[key] for key in kinds["two_views"]] == [*kinds["two_views"].values()]
    assert ct.run_id == spec("ct").run_id and simcse.params["steps"] == spec().params["steps"]


def test_a_scale_substitutes_a_value_of_any_method_or_component_but_no_other_value():
    settings = given(substitutes={"queue": {"160": 24}, "projector": {"4096": 64}})
    assert spec("esimcse", given=settings).settings["moco.queue"] == 24
    assert spec("micse", given=settings).settings["moco.queue"] == 384
    assert spec("scd", given=settings).params["projector"] == 64
    assert spec("infocse", params={"pretraining": "none"}, given=settings).params["projector"] == "mlp"
    assert spec("scd", sweep={"projector": 4096}, given=settings).params["projector"] == 4096


def test_a_scale_makes_a_fraction_of_the_steps():
    """STS-B dev is evaluated as often, or once at the end; of 50 steps none is left out."""
    params = {"steps": 1001, "warmup_steps": 10, "evaluate_every": 125}
    names = ("steps", "warmup_steps", "evaluate_every")
    for factor, schedule in ((0.2, [200, 2, 125]), (0.0999, [100, 1, 100]), (1.0, [1001, 10, 125])):
        made = spec(params=params, given=given(steps_factor=factor))
        assert [made.params[name] for name in names] == schedule
    for steps, every, schedule in ((300, 25, [50, 25]), (40, 125, [40, 40])):
        made = spec(params={"steps": steps, "evaluate_every": every}, given=given(steps_factor=0.1))
        assert [made.params["steps"], made.params["evaluate_every"]] == schedule


# ---------------------------------------------------------------- refusals


def test_a_recipe_without_its_corpus_is_refused():
    """The other refusals: test_bad_input.py."""
    with pytest.raises(BadInput, match="no sentences to train simcse on"):
        spec(given=given(corpus=None))


def test_limits_themselves_are_allowed():
    assert spec(params={"steps": 10, "warmup_steps": 10, "batch_size": 1000}).params["batch_size"] == 1000


def test_a_number_is_not_negative_where_the_declared_one_is_not():
    declared = Declaration.model_validate({**LITERAL, "params": {"zero": (0.0, "s"), "below": (-1.0, "s")}})
    assert declared.hyperparameters.model_validate({"below": -2}).model_dump()["below"] == -2
    with pytest.raises(ValidationError):
        declared.hyperparameters.model_validate({"zero": -0.1})


DECLARED = [(folder, name) for folder in (METHODS, COMPONENTS) for name in names(folder)]
BELOW = [(folder, name, less, more) for folder, name in DECLARED for less, more in any_declaration(name, folder).below]


@pytest.mark.parametrize(("folder", "name", "less", "more"), BELOW, ids=str)
def test_what_must_be_below_is(folder, name, less, more):
    """Equal values are refused; the declared ones are not."""
    defaults = {key: value for key, (value, _) in any_declaration(name, folder).params.items()}
    equal = {less: defaults.get(more, more)} if less in defaults else {more: less}
    method, kind = (name, "params") if folder == METHODS else ("simcse", "components")
    with pytest.raises(BadInput, match=f"{name}: .* must be below"):
        spec(method, size=10**6, **{kind: equal if folder == METHODS else {name: equal}})
    spec(method, size=10**6, **({} if folder == METHODS else {"components": {name: {}}}))


def test_no_published_run_contradicts_itself():
    files = sorted((ROOT / "results").rglob("scores/*.json"))
    written = {
        json.dumps(made, sort_keys=True) for file in files if (made := json.loads(file.read_bytes()).get("spec"))
    }
    for published in map(Spec.model_validate_json, written):
        refuse_contradictions(published, published.run_id)
    assert len(written) > 500
