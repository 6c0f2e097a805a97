"""The key of a run depends on every setting that changes its numbers, and on nothing else. No
torch."""

import json
import sys

import pytest
from pydantic import ValidationError

import methods
from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.cli.train_options import read_spec
from csebench.plan.catalog.registry import declaration, fill, load
from csebench.plan.recipe import Conditions, make_spec
from csebench.plan.schema.declarations import (
    LARGEST_INTEGER,
    Dataset,
    Declaration,
    EncoderRef,
    RunSettings,
)
from csebench.plan.schema.paper import Recipe

ENCODER = EncoderRef(name="some/encoder", revision="1" * 40)
CORPUS = Dataset(path="wiki/corpus.txt", sha256="a" * 64)
LITERAL = {"name": "x", "version": 1, "title": "X", "paper": "P", "citation": "C"}


def given(corpus=CORPUS, dev="d" * 64, tuned=None, **settings):
    """Return conditions of a run; `settings` are those of a scale."""
    return Conditions({"sentences": corpus}, dev, RunSettings(**settings), tuned=tuned or {})


def spec(
    method="simcse",
    params=None,
    components=None,
    variant=None,
    sweep=None,
    given=given(),
    **changes,
):
    """Make the spec of a run from a recipe.

    Args:
        sweep: settings that a table varies.
        changes: size, seed or encoder, if not the usual ones.
    """
    recipe = Recipe(
        method=method,
        params=params or {},
        components=components or {},
        variant=variant,
        sweep=sweep or {},
    )
    settings = {"size": 1000, "seed": 48, "encoder": ENCODER, **changes}
    return make_spec(recipe, given=given, where="test", **settings)


SAME = {
    "order of keys": (
        {
            "params": {"steps": 100, "temperature": 0.07},
            "components": {"ami": {"samples": 5}, "moco": {"queue": 8}},
        },
        {
            "params": {"temperature": 0.07, "steps": 100},
            "components": {"moco": {"queue": 8}, "ami": {"samples": 5}},
        },
    ),
    "numbers as text": (
        {"params": {"learning_rate": "3.0e-5", "batch_size": "64", "weight_decay": 0}},
        {},
    ),
    "types of a component": (
        {"components": {"ami": {"weight": "2.5e-3"}}},
        {"components": {"ami": {}}},
    ),
    "the step that is kept by default": ({"params": {"selection": "best"}}, {}),
    "where the corpus lies": (
        {"given": given(Dataset(path="other/corpus.txt", sha256="a" * 64, note="a copy"))},
        {},
    ),
    "size for a control": ({"method": "random", "size": 10}, {"method": "random"}),
    "a variant that is refined": (
        {
            "method": "mirror_bert",
            "variant": "code",
            "params": {"mean_over_padding": False, "selection": "best"},
        },
        {"method": "mirror_bert"},
    ),
}


@pytest.mark.parametrize(("one", "two"), SAME.values(), ids=SAME)
def test_key_stays_with(one, two):
    assert spec(**one).run_id == spec(**two).run_id


@pytest.mark.parametrize("method", ["simcse", "micse", "bert", "random", "whitening"])
def test_a_written_spec_keeps_its_key(method):
    """A run that is trained again from `runs/<run>/spec.json` is the same run. Neither types nor
    the order of keys count."""
    components = {"ami": {}} if method == "simcse" else {}
    written = spec(method, components=components)
    content = json.loads(written.model_dump_json())
    for component in content["components"].values():
        component["params"] = {key: str(value) for key, value in component["params"].items()}
    turned = {key: content[key] for key in reversed(content)}

    read = read_spec(json.dumps(turned))

    assert read.run_id == written.run_id


CHANGES = {
    "seed": {"seed": 49},
    "size": {"size": 5000},
    "hyper-parameter of the method": {"params": {"temperature": 0.07}},
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
    specs = [spec()]
    for change in CHANGES.values():
        specs.append(spec(**change))

    assert len({made.run_id for made in specs}) == len(CHANGES) + 1
    assert len({made.cell_id for made in specs}) == len(CHANGES)
    assert spec(seed=49).cell_id == spec().cell_id


def test_a_changed_copy_of_a_run_has_an_id_of_its_own():
    original = spec()
    first_id = original.run_id  # which the spec then remembers

    changed = original.with_seed(original.seed + 1)

    assert changed.run_id == spec(seed=original.seed + 1).run_id != first_id
    assert changed.with_seed(original.seed).run_id == first_id


def test_seeds_of_sources_are_part_of_the_run_and_not_of_the_cell():
    base = spec()
    varied = base.model_copy(update={"seeds": {"order": 7}})

    assert varied.run_id != base.run_id
    assert varied.cell_id == base.cell_id
    assert varied.seed_of("order") == 7
    assert varied.seed_of("head") == base.seed


def test_a_method_may_declare_what_runs_do_not_state():
    """Its default is then part of the identity. The value that other runs do not state is no part
    of it, as elsewhere."""
    declared = Declaration.model_validate({**LITERAL, "params": {"selection": ("last", "sec. 1")}})
    by_default = fill(declared, {}, "x")
    assert by_default["selection"] == "last"

    changed = fill(declared, {"selection": "best"}, "x")
    assert "selection" not in changed
    settings = declared.unstated | changed
    assert settings["selection"] == "best"


def test_what_is_searched_is_a_parameter():
    with pytest.raises(ValidationError, match="search: unknown parameter 'temprature'"):
        Declaration.model_validate({**LITERAL, "search": {"temprature": [0.1]}})


def test_a_recipe_may_bring_back_a_component_that_a_variant_leaves_out():
    without = spec("micse", variant="released")
    assert list(without.components) == ["ami"]

    brought_back = spec("micse", variant="released", components={"moco": {}})
    assert list(brought_back.components) == ["ami", "moco"]


CHOSEN_BY_SEARCH = {
    "temperature": 0.5,
    "learning_rate": 0.5,
    "batch_size": 32,
    "ami.weight": 0.5,
}


def test_later_layers_override_earlier_ones():
    """The layers are the recipe, the scale, a search (for settings that neither variant nor recipe
    sets), and what a table varies."""
    tuned = {"simcse+ami": CHOSEN_BY_SEARCH}
    conditions = given(
        override={"learning_rate": 1e-4},
        kinds={"two_views": {"batch_size": 16}, "supervised": {"clip": 9.0}},
        substitutes={"samples": {"150": 7}},
        tuned=tuned,
    )
    settings = spec(
        params={"learning_rate": 3e-3, "temperature": 0.1},
        components={"ami": {"weight": 0.1}},
        sweep={"batch_size": 8},
        given=conditions,
    ).settings
    assert settings["learning_rate"] == 1e-4  # by the scale
    assert settings["temperature"] == 0.1  # by the recipe
    assert settings["batch_size"] == 8  # by the table
    assert settings["ami.weight"] == 0.1  # by the recipe
    assert settings["ami.samples"] == 7  # substituted by the scale
    assert settings["clip"] == 1.0  # the scale changes it for another kind

    searched = spec(components={"ami": {}}, given=given(tuned=tuned)).settings
    assert {key: searched[key] for key in CHOSEN_BY_SEARCH} == CHOSEN_BY_SEARCH


@pytest.fixture
def own_method(tmp_path, monkeypatch):
    """The file of a method in a folder that joins the project."""
    # without the folders that other tests joined; loading adds this one
    monkeypatch.setattr(methods, "__path__", [str(ROOT / "methods")])
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path))
    (tmp_path / "methods").mkdir()
    sys.modules.pop("methods.mine", None)  # another test may have loaded one
    yield tmp_path / "methods" / "mine.py"
    caches.clear()
    sys.modules.pop("methods.mine", None)


def test_a_search_changes_nothing_that_a_variant_sets():
    conditions = given(tuned={"msse": {"contrast": 0.5}})
    without_nce = spec("msse", variant="without_nce", given=conditions, size=10**6)
    assert without_nce.params["contrast"] == 0.0

    conditions = given(tuned={"micse": {"ami.weight": 0.5}})
    code = spec("micse", variant="code", given=conditions)
    assert code.settings["ami.weight"] == 1e-4


def write_method(file, extends, imports, base, **declared):
    """Write the file of a method `mine` whose class extends `base`."""
    literal = {**LITERAL, "name": "mine", **declared}
    if extends is not None:
        literal["extends"] = extends
    file.write_text(f"{imports}\nDECLARATION = {literal}\nclass Method({base}): pass\n")
    caches.clear()


SUPERVISED = "from methods.simcse_sup import Method as Base"


@pytest.mark.parametrize(
    ("extends", "declared", "kind"),
    [
        ("simcse_sup", {}, "supervised"),
        ("msse_sup", {}, "supervised"),
        ("simcse_sup", {"kind": "token_level"}, "token_level"),
        (None, {}, "two_views"),
    ],
)
def test_a_method_is_of_the_kind_of_the_method_that_it_extends(extends, declared, kind, own_method):
    write_method(own_method, extends, "", "object", **declared)

    assert declaration("mine").kind == kind


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ("mine", r"methods/mine.py: line 2: extends: 'mine' is, or extends, mine itself\."),
        ("simcsee", r"line 2: extends: unknown method 'simcsee'\. Did you mean 'simcse'"),
        (7, r"line 2: extends: unknown method '7'"),
    ],
)
def test_what_a_method_extends_exists(extends, message, own_method):
    write_method(own_method, extends, "", "object")

    with pytest.raises(BadInput, match=message):
        declaration("mine")


@pytest.mark.parametrize(
    ("extends", "imports", "message"),
    [
        ("scd", SUPERVISED, "extends: its class does not extend that of scd"),
        (None, SUPERVISED, 'whose kind is supervised; declare "extends": "simcse_sup"'),
    ],
)
def test_the_class_of_a_method_extends_what_is_declared(extends, imports, message, own_method):
    write_method(own_method, extends, imports, "Base")

    with pytest.raises(BadInput, match=message):
        load("mine")


def test_a_class_that_extends_what_is_declared_is_loaded(own_method):
    write_method(own_method, "simcse_sup", SUPERVISED, "Base")

    assert load("mine").__name__ == "Method"


@pytest.mark.parametrize(
    ("stated", "schedule"),
    [
        ((1001, 10, 125), (200, 2, 125)),
        ((500, 0, 125), (100, 0, 100)),
        ((200, 0, 25), (50, 0, 25)),
        ((40, 0, 125), (40, 0, 40)),
    ],
)
def test_a_scale_makes_a_fraction_of_the_steps(stated, schedule):
    """It makes at least 50 steps, or all of fewer. STS-B dev is evaluated as often, or once at the
    end."""
    names = ("steps", "warmup_steps", "evaluate_every")
    params = dict(zip(names, stated, strict=True))

    made = spec(params=params, given=given(steps_factor=0.2))

    assert tuple(made.params[name] for name in names) == schedule


def test_a_recipe_without_its_corpus_is_refused():
    with pytest.raises(BadInput, match="no sentences to train simcse on"):
        spec(given=given(corpus=None))


def test_limits_themselves_are_allowed():
    made = spec(params={"steps": 10, "warmup_steps": 10, "batch_size": 1000})
    assert made.params["batch_size"] == 1000


def test_a_number_is_not_negative_where_the_declared_one_is_not():
    params = {"zero": (0.0, "s"), "below": (-1.0, "s")}
    declared = Declaration.model_validate({**LITERAL, "params": params})

    changed = declared.hyperparameters.model_validate({"below": -2})
    assert changed.model_dump()["below"] == -2
    with pytest.raises(ValidationError):
        declared.hyperparameters.model_validate({"zero": -0.1})


def fill_parameter(declared, value):
    """Give a value to the only parameter of a method, which declares another one."""
    content = LITERAL | {"params": {"a": (declared, "s")}}
    hyperparameters = Declaration.model_validate(content).hyperparameters
    return hyperparameters.model_validate({"a": value}).model_dump()["a"]


@pytest.mark.parametrize(
    ("declared", "value"),
    [(1, 0), (0, 0), (0.5, 0.0), (0.0, 0.5), (-1, -5), (-1, 5), (-0.5, -3.0), (True, False)],
)
def test_values_that_a_declared_one_allows(declared, value):
    assert fill_parameter(declared, value) == value


@pytest.mark.parametrize(
    ("declared", "value"),
    [(1, -1), (0, -1), (0, 0.5), (0.5, -0.1), (1, LARGEST_INTEGER + 1), (True, 2), ("avg", 1)],
)
def test_values_that_a_declared_one_refuses(declared, value):
    with pytest.raises(ValidationError):
        fill_parameter(declared, value)


@pytest.mark.parametrize(
    ("component", "params"), [("mlm", {"probability": 1}), ("moco", {"queue": 0})]
)
def test_what_must_be_below_a_number_is_not_equal_to_it(component, params):
    with pytest.raises(BadInput, match=f"{component}: .* must be below"):
        spec(components={component: params})
