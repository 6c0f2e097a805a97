"""The settings of methods: declared value, our value and its origin, and the page that shows
them."""

import pytest

from csebench import cli
from csebench.plan.catalog.files import SIDE_BY_SIDE, scale
from csebench.plan.catalog.registry import COMPONENTS, METHODS, declaration, valid_declarations
from csebench.plan.grids import plan_grid
from csebench.plan.tuning import tuned_settings
from csebench.report.numbers.method_settings import (
    MethodSetting,
    Origin,
    hosts_of_component,
    method_settings,
)
from csebench.report.pages.method_settings import settings_page
from csebench.report.words.method_settings import changes_sentence, origin_text, settings_sentence

SCALE = "mini"
LEARNING_RATE = MethodSetting(
    "learning_rate", 7e-6, "run_diffcse.sh: --learning_rate", 3e-5, Origin.SEARCH, "simcse"
)
WEIGHT = MethodSetting("rtd.weight", 0.005, "sec. 4.1", 0.02, Origin.SEARCH, "diffcse")
BATCH = MethodSetting("batch_size", 64, "run_diffcse.sh", 24, Origin.SCALE)
OPTIMIZER = MethodSetting("optimizer", "adamw", "", "adamw", Origin.DECLARED)


def setting(name, key):
    """Find a setting of a method at scale mini."""
    found = {setting.key: setting for setting in method_settings(name, SCALE)}
    return found[key]


def test_a_setting_inherits_the_choice_of_the_search_on_simcse():
    found = setting("diffcse", "learning_rate")
    assert (found.declared, found.source) == (7e-6, "run_diffcse.sh")
    assert found.here == tuned_settings(SCALE)["simcse"]["learning_rate"]
    assert (found.origin, found.search) == (Origin.SEARCH, "simcse")


def test_a_setting_of_a_supervised_method_comes_from_the_supervised_search():
    assert setting("msse_sup", "learning_rate").search == "simcse_sup"


def test_a_method_chooses_its_own_settings_in_its_own_search():
    found = setting("informin_cl", "reconstruction")
    assert found.declared == 0.4
    assert found.here == tuned_settings(SCALE)["informin_cl"]["reconstruction"]
    assert (found.origin, found.search) == (Origin.SEARCH, "informin_cl")


def test_a_scale_replaces_declared_values():
    found = setting("diffcse", "batch_size")
    assert (found.declared, found.here) == (64, scale(SCALE).override["batch_size"])
    assert found.origin == Origin.SCALE
    found = setting("scd", "projector")  # too large for the scale
    assert (found.declared, found.here, found.origin) == (4096, 1024, Origin.SCALE)


def test_a_shortened_schedule_comes_from_the_scale():
    steps = {setting.key: setting for setting in method_settings("simcse", "short")}["steps"]
    assert (steps.declared, steps.origin) == (15625, Origin.SCALE)
    assert steps.here == round(scale("short").steps_factor * 15625)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("diffcse", "projector"),  # nothing changes it
        ("ct", "batch_size"),  # the scale changes it for other methods
        ("scd", "temperature"),  # a search chose it for other methods
    ],
)
def test_other_values_are_kept(name, key):
    found = setting(name, key)
    assert (found.here, found.origin) == (found.declared, Origin.DECLARED)


def test_a_component_has_the_settings_of_the_method_that_has_it():
    assert hosts_of_component("rtd", SCALE) == ["diffcse"]
    found = setting("diffcse", "rtd.weight")
    assert (found.declared, found.origin, found.search) == (0.005, Origin.SEARCH, "diffcse")
    found = setting("esimcse", "moco.queue")  # the component's own default is another
    assert (found.declared, found.source) == (160, "set by methods/esimcse.py")


def test_an_added_component_has_what_the_search_with_it_chose():
    assert "mirror_bert+ami" in hosts_of_component("ami", SCALE)
    found = setting("mirror_bert+ami", "ami.weight")
    assert found.here == tuned_settings(SCALE)["mirror_bert+ami"]["ami.weight"]
    assert found.search == "mirror_bert+ami"


@pytest.mark.parametrize("scale_name", ["mini", "short", "paper"])
def test_our_values_are_those_of_the_planned_runs(scale_name):
    for row in plan_grid(SIDE_BY_SIDE, SIDE_BY_SIDE, scale_name):
        for spec in row[0].specs[:1]:
            settings = method_settings(spec.method, scale_name)
            assert {setting.key: setting.here for setting in settings} == spec.settings


def test_the_sentence_names_both_values_the_source_and_the_search():
    settings = [BATCH, OPTIMIZER, LEARNING_RATE, WEIGHT]
    assert settings_sentence("diffcse", settings, SCALE) == (
        "DiffCSE: learning rate 7e-6 declared (run_diffcse.sh), 3e-5 here, from SimCSE's search;"
        " rtd weight 0.005 declared (sec. 4.1), 0.02 here, from its own search;"
        " config/mini.yaml sets batch."
    )


def test_differences_are_counted_by_origin():
    settings = [BATCH, OPTIMIZER, LEARNING_RATE, WEIGHT]
    assert changes_sentence(settings, SCALE) == (
        "At scale mini, 3 of 4 settings differ from the declared ones: config/mini.yaml sets 1, and"
        " searches chose 2."
    )


def test_without_a_difference_the_sentence_says_so():
    expected = "DiffCSE: every value is the declared one."
    assert settings_sentence("diffcse", [OPTIMIZER], SCALE) == expected


def test_the_table_names_where_each_value_comes_from():
    origins = [
        origin_text(setting, "diffcse", SCALE)
        for setting in (LEARNING_RATE, WEIGHT, BATCH, OPTIMIZER)
    ]
    assert origins == [
        "search on SimCSE (unsupervised)",
        "own search",
        "config/mini.yaml",
        "declared",
    ]


def test_the_page_has_a_section_for_every_method_and_component():
    text = settings_page(SCALE).write("markdown")
    assert "| learning rate | 7e-6 | run_diffcse.sh |" in text
    titles = [declared.title for declared in valid_declarations(COMPONENTS).values()]
    for declared in valid_declarations(METHODS).values():
        if declared.loads_encoder:
            titles.append(declared.title)
    for title in titles:
        assert f"\n## {title}\n" in text


def test_show_prints_the_same_sentence(capsys):
    sentence = settings_sentence("diffcse", method_settings("diffcse", SCALE), SCALE)
    assert cli.main(["show", "diffcse", "--scale", SCALE]) == 0
    assert sentence in " ".join(capsys.readouterr().out.split())


def test_show_names_the_methods_that_have_a_component(capsys):
    assert cli.main(["show", "rtd", "--scale", SCALE]) == 0
    assert f"{declaration('diffcse').title}: " in capsys.readouterr().out
