"""The package: its metadata, the environments of its lock, and its use without a checkout."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from project import Project

import csebench
from csebench.base.extras import RUN_MODULES
from csebench.base.project import REPOSITORY, ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
ENVS = ROOT / "envs"
MAKE = runpy.run_path(str(ENVS / "make.py"))
FAMILIES = MAKE["FAMILIES"]
LOCKED = {name: version for name, (version, _) in MAKE["lock"]().items()}
EXTRAS = PROJECT["optional-dependencies"]
DEPENDENCIES = [
    Requirement(line) for line in PROJECT["dependencies"] + EXTRAS["run"] + EXTRAS["docs"]
]


def test_the_citation_fits_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == csebench.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == REPOSITORY
    assert PROJECT["urls"]["Repository"] == REPOSITORY


def test_the_citation_is_valid():
    reason = "pip install cffconvert, which needs an older jsonschema than other packages"
    cffconvert = pytest.importorskip("cffconvert", reason=reason)
    cffconvert.Citation((ROOT / "CITATION.cff").read_text()).validate()


def test_the_changelog_begins_with_the_version_of_the_package():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[:2] == ["Unreleased", csebench.__version__]


def test_a_wheel_has_all_tables_of_data():
    included = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    tables = {f"data/{path.name}" for path in (ROOT / "data").glob("*.yaml")}
    assert tables <= set(included)


def test_lock_satisfies_the_project():
    pins_in_file = re.findall(r"^[^#\n]", (ENVS / "lock.txt").read_text(), re.M)
    assert len(LOCKED) == len(pins_in_file)
    for requirement in [*DEPENDENCIES, *map(Requirement, EXTRAS["syntax"])]:
        version = LOCKED[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_families_are_those_of_rules():
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    named_in_rules = set(re.findall(r"envs/([\w.]+)", rules))
    assert named_in_rules == {f"{family}.yaml" for family in FAMILIES}


def test_families_hold_what_jobs_import():
    """Together they have the dependencies in pyproject.toml, without what starts and watches
    jobs."""
    dependencies = {canonicalize_name(requirement.name) for requirement in DEPENDENCIES}
    not_of_jobs = {"pandas", "snakemake"}
    assert set.union(*FAMILIES.values()) == dependencies - not_of_jobs
    assert FAMILIES["train"] >= FAMILIES["evaluate"], "a training can score"


def test_jobs_have_the_packages_that_their_verbs_check():
    packages = packages_distributions()
    checked = {canonicalize_name(packages[module][0]) for module in RUN_MODULES}
    run = {canonicalize_name(Requirement(line).name) for line in EXTRAS["run"]}
    not_of_all_jobs = {"sentencepiece", "snakemake"}
    assert checked == run - not_of_all_jobs
    assert checked <= FAMILIES["evaluate"]


def pins_of(family):
    """Read the versions in an environment, by package."""
    environment = yaml.safe_load((ENVS / f"{family}.yaml").read_text())
    pins = environment["dependencies"][-1]["pip"]
    return dict(pin.split("==") for pin in pins)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_environment_is_what_make_writes_with_the_pins_of_the_lock(family):
    assert (ENVS / f"{family}.yaml").read_text() == MAKE["environment"](family)
    pins = pins_of(family)
    assert pins.items() <= LOCKED.items()
    assert pins.keys() >= FAMILIES[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_reports_alone_are_made_without_torch(family):
    heavy = []
    for package in pins_of(family):
        if package.startswith(("torch", "nvidia", "cuda", "triton", "transformers")):
            heavy.append(package)
    assert (heavy == []) == (family == "report")


def test_images_install_the_lock():
    docker = (ENVS / "Dockerfile").read_text()
    apptainer = (ENVS / "apptainer.def").read_text()
    python = f"python:{MAKE['PYTHON']}-slim-bookworm\n"
    assert f"FROM {python}" in docker
    assert f"From: {python}" in apptainer
    assert "COPY lock.txt /\n" in docker
    assert "\n    envs/lock.txt /lock.txt\n" in apptainer
    packages = r"--no-install-recommends (.+?)(?: \\)?\n|(https://\S+)"
    assert re.findall(packages, docker) == re.findall(packages, apptainer)


ONE_PAIR = ("--settings", "1", "--seeds", "1")  # a run of the method, and one of SimCSE


def unpack_wheel(folder):
    """Build the project's wheel, and return the folder that it is unpacked into."""
    wheel_command = ["wheel", "--no-deps", "-q", "-w", folder, ROOT]
    subprocess.run([sys.executable, "-m", "pip", *wheel_command], check=True)
    (wheel,) = folder.glob("*.whl")
    site = folder / "site"
    shutil.unpack_archive(wheel, site, "zip")
    return site


def published_page_outside_a_clone():
    """Return a published page with the links and commands that it has outside of a clone."""
    page = (ROOT / "results" / "mini" / "micse" / "table2.md").read_text()
    page = page.replace("../../../docs/", f"{REPOSITORY}/blob/main/docs/")
    return page.replace("`snakemake -j4", "`snakemake -s $(csebench snakefile) -j4")


@pytest.mark.slow
def test_a_wheel_is_enough_for_a_folder_of_ones_own(tmp_path):
    """Without a clone: a table from the published scores, a method that is tried, and its page
    by Snakemake."""
    site = unpack_wheel(tmp_path)
    before = set(site.rglob("*"))
    work = Project(tmp_path)
    work.env["PYTHONPATH"] = str(site)
    assert work.csebench("--version").stdout == f"csebench {csebench.__version__}\n"
    assert work.csebench("init", "work").returncode == 0
    work.folder = tmp_path / "work"

    rendered = work.csebench("render", "micse/table2", "--scale", "mini")
    expected = published_page_outside_a_clone()
    assert rendered.stdout.rstrip() == expected.rstrip(), rendered.stderr

    assert work.csebench("new", "method", "mine").returncode == 0
    tried = work.csebench("try", "methods/mine.py", "--scale", "smoke", *ONE_PAIR)
    assert tried.returncode == 0, tried.stderr
    assert "Page: results/try_mine/table1.md" in tried.stdout, tried.stderr

    page = work.folder / "results" / "try_mine" / "table1.md"
    page.unlink()
    snakefile = work.csebench("snakefile").stdout.strip()
    work.make("-s", snakefile, "results/try_mine/table1.md")

    after = {path for path in site.rglob("*") if "__pycache__" not in path.parts}
    assert after <= before, "the package itself is left as it is"
