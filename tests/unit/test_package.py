"""The package: what it says of itself, the environments of its lock, and what it does without
its checkout."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from project import Project

import csebench
from csebench.base.project import REPOSITORY, ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, ENVS = SETTINGS["project"], ROOT / "envs"
MAKE = runpy.run_path(str(ENVS / "make.py"))
FAMILIES = MAKE["FAMILIES"]
LOCKED = {name: version for name, (version, _) in MAKE["lock"]().items()}
EXTRAS = PROJECT["optional-dependencies"]
DEPENDENCIES = [Requirement(line) for line in PROJECT["dependencies"] + EXTRAS["docs"]]


def test_citation_and_changelog_fit_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (csebench.__version__, PROJECT["license"])
    assert citation["repository-code"] == PROJECT["urls"]["Repository"] == REPOSITORY
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[:2] == ["Unreleased", csebench.__version__]


def test_a_wheel_has_all_tables_of_data():
    included = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {f"data/{path.name}" for path in (ROOT / "data").glob("*.yaml")} <= {*included}


def test_lock_satisfies_the_project():
    assert len(LOCKED) == len(re.findall(r"^[^#\n]", (ENVS / "lock.txt").read_text(), re.M))
    for wanted in (*DEPENDENCIES, *map(Requirement, EXTRAS["syntax"])):
        assert wanted.specifier.contains(LOCKED[canonicalize_name(wanted.name)]), wanted


def test_families_are_those_of_rules_and_hold_what_jobs_import():
    """The dependencies in pyproject.toml, without what starts and watches jobs. Training can
    score."""
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    assert set(re.findall(r"envs/([\w.]+)", rules)) == {f"{family}.yaml" for family in FAMILIES}
    not_of_jobs = {"pandas", "snakemake"}
    assert (
        set.union(*FAMILIES.values())
        == {canonicalize_name(d.name) for d in DEPENDENCIES} - not_of_jobs
    )
    assert FAMILIES["train"] >= FAMILIES["evaluate"]


@pytest.mark.parametrize("family", FAMILIES)
def test_an_environment_is_what_make_writes_with_the_pins_of_the_lock(family):
    text = (ENVS / f"{family}.yaml").read_text()
    pins = dict(pin.split("==") for pin in yaml.safe_load(text)["dependencies"][-1]["pip"])
    assert text == MAKE["environment"](family)
    assert pins.items() <= LOCKED.items() and pins.keys() >= FAMILIES[family]
    assert (family == "report") == (
        not re.findall(r"^(torch|nvidia|cuda|triton|transformers)", "\n".join(pins), re.M)
    )


def test_images_install_the_lock():
    docker, apptainer = ((ENVS / name).read_text() for name in ("Dockerfile", "apptainer.def"))
    python = f"python:{MAKE['PYTHON']}-slim-bookworm\n"
    assert f"FROM {python}" in docker and f"From: {python}" in apptainer
    assert "COPY lock.txt /\n" in docker and "\n    envs/lock.txt /lock.txt\n" in apptainer
    packages = r"--no-install-recommends (.+?)(?: \\)?\n|(https://\S+)"
    assert re.findall(packages, docker) == re.findall(packages, apptainer)


@pytest.mark.slow
def test_a_wheel_is_enough_for_a_folder_of_ones_own(tmp_path):
    """Without a clone: a table from the published scores, a method that is tried, and its page
    by Snakemake."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", tmp_path, ROOT], check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    shutil.unpack_archive(wheel, site := tmp_path / "site", "zip")
    before, work = {*site.rglob("*")}, Project(tmp_path)
    work.env["PYTHONPATH"] = str(site)
    assert work.csebench("--version").stdout == f"csebench {csebench.__version__}\n"
    assert work.csebench("init", "work").returncode == 0
    work.folder = tmp_path / "work"
    done = work.csebench("render", "micse/table2", "--scale", "mini")
    committed = (ROOT / "results" / "mini" / "micse" / "table2.md").read_text()
    elsewhere = committed.replace("../../../docs/", f"{REPOSITORY}/blob/main/docs/")
    elsewhere = elsewhere.replace("`snakemake -j4", "`snakemake -s $(csebench snakefile) -j4")
    assert done.stdout.rstrip() == elsewhere.rstrip(), done.stderr
    assert work.csebench("new", "method", "mine").returncode == 0
    done = work.csebench("try", "methods/mine.py", "--scale", "smoke", "--seeds", "1")
    assert done.returncode == 0 and "Page: results/try_mine/table1.md" in done.stdout, done.stderr
    (work.folder / "results" / "try_mine" / "table1.md").unlink()
    work.make("-s", work.csebench("snakefile").stdout.strip(), "results/try_mine/table1.md")
    assert {path for path in site.rglob("*") if "__pycache__" not in path.parts} <= before
