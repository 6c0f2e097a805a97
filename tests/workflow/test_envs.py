"""The lock fits pyproject.toml, the environments fit the lock, and the images install it."""

import re
import runpy
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from csebench.base.project import ROOT

ENVS = ROOT / "envs"
MAKE = runpy.run_path(str(ENVS / "make.py"))
FAMILIES = MAKE["FAMILIES"]
LOCKED = {name: version for name, (version, _) in MAKE["lock"]().items()}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WANTED = {None: PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
DEPENDENCIES, SYNTAX, DOCS = ([Requirement(line) for line in WANTED[extra]] for extra in (None, "syntax", "docs"))


def test_lock_satisfies_the_project():
    lines = [line for line in (ENVS / "lock.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(LOCKED) == len(lines)
    for wanted in DEPENDENCIES + SYNTAX + DOCS:
        assert wanted.specifier.contains(LOCKED[canonicalize_name(wanted.name)]), wanted


def test_every_dependency_is_of_a_family():
    """What jobs import is in pyproject.toml and the other way round; what starts and watches them is in none."""
    not_of_jobs = {"pandas", "snakemake"}
    assert set.union(*FAMILIES.values()) == {canonicalize_name(d.name) for d in DEPENDENCIES + DOCS} - not_of_jobs


@pytest.mark.parametrize("family", FAMILIES)
def test_an_environment_is_what_make_writes_with_the_pins_of_the_lock(family):
    text = (ENVS / f"{family}.yaml").read_text()
    pins = dict(pin.split("==") for pin in yaml.safe_load(text)["dependencies"][-1]["pip"])
    assert text == MAKE["environment"](family)
    assert pins.items() <= LOCKED.items() and pins.keys() >= FAMILIES[family]
    assert (family == "report") == (not re.findall(r"^(torch|nvidia|cuda|triton|transformers)", "\n".join(pins), re.M))


def test_rules_run_in_the_environments_and_training_can_score():
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    assert set(re.findall(r"envs/([\w.]+)", rules)) == {f"{family}.yaml" for family in FAMILIES}
    assert FAMILIES["train"] >= FAMILIES["evaluate"]


def test_images_install_the_lock():
    docker, apptainer = ((ENVS / name).read_text() for name in ("Dockerfile", "apptainer.def"))
    python = f"python:{MAKE['PYTHON']}-slim-bookworm"
    assert f"FROM {python}\n" in docker and f"From: {python}\n" in apptainer
    assert "build -t csebench -f envs/Dockerfile envs\n" in docker and "COPY lock.txt /\n" in docker
    assert "\n    envs/lock.txt /lock.txt\n" in apptainer
    packages = r"--no-install-recommends (.+?)(?: \\)?\n|(https://\S+)"
    assert re.findall(packages, docker) == re.findall(packages, apptainer)
