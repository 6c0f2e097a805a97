"""Snakemake end to end, on a copy of the project with one small table."""

import json
import os
import re
import shutil
from collections import Counter

import pytest
from project import Project, copy_of_project, one_row_project

from csebench.base.project import ROOT
from csebench.plan import targets

pytestmark = pytest.mark.slow

WRITTEN = {"page", "figure", "csv", "all"}  # rules


@pytest.fixture(scope="module")
def project(made, tmp_path_factory):
    """The made project, which tests change one after the other."""
    return made.copy_to(tmp_path_factory.mktemp("workflow") / "csebench")


def test_pages_and_scores(project):
    for name, count in (("tiny/table2.md", 3), ("tiny/table3.md", 2)):
        assert f"- {count} of {count} runs scored" in project.read(name), name
    scores = sorted((project.folder / "results" / "scores").glob("*.json"))
    # the untrained encoder, a control and SimCSE by seed; one seed of 10 %
    counts = Counter(path.name.split(".")[1] for path in scores)
    assert (counts["sts"], counts["beir"]) == (1 + 2 + 2 + 1, 2)
    content = next(
        c for p in scores if (c := json.loads(p.read_text()))["spec"]["method"] == "simcse"
    )
    noted = {"commit", "dirty_diff_sha256", "packages", "processor", "seconds", "peak_memory_mb"}
    assert noted <= content["provenance"].keys()
    assert (
        content["training"]["provenance"]["data_sha256"]["corpus"]
        == content["spec"]["corpus"]["sha256"]
    )


def test_a_moved_checkout_plans_nothing_anew(made, tmp_path):
    """Nor where CSEBENCH_DATA has moved with it."""
    moved = Project(made.copy_to(tmp_path / "first").folder.rename(tmp_path / "second"))
    assert not moved.planned("all")
    moved.edit("config/smoke.yaml", "data_root: data/smoke\n", "")
    moved.env["CSEBENCH_DATA"] = str(moved.folder / "data" / "smoke")
    moved.make("results/table3.md")
    again = Project(moved.folder.rename(tmp_path / "third"))
    again.env["CSEBENCH_DATA"] = str(again.folder / "data" / "smoke")
    assert not again.planned("results/table3.md")


def test_deleted_score_is_made_again_alone(project):
    """And what is written from it: Table 3 shows other scores of the run, and is left alone."""
    cell = next(
        line
        for line in project.read("cells.csv").splitlines()
        if line.startswith("tiny,figure1,2,SimCSE,1%")
    )
    score = project.folder / "results" / "scores" / f"{cell.split()[-1]}.sts.json"
    table3 = project.folder / "results" / "table3.md"
    before = score.read_text(), table3.stat().st_mtime_ns
    score.unlink()
    done = project.make("all")
    assert project.started(done) == {"evaluate"} | WRITTEN and project.jobs(done, "evaluate") == 1
    assert (score.read_text(), table3.stat().st_mtime_ns) == before


def test_edited_label_renders_again_and_trains_nothing(project):
    project.edit("papers/tiny.yaml", "SimCSE", "SimCSE (renamed)")
    assert project.started(project.make("results/table2.md")) == {"page"}
    assert project.started(project.make("all")) == WRITTEN | {"evidence"}
    for name in ("table2.md", "tiny/table3.md", "tiny/figure1.csv", "tiny/figure1.svg"):
        assert "SimCSE (renamed)" in project.read(name), name
    assert "+36.54 over BERT" in project.read("claims.md")


def test_partial_page_schedules_no_training(project):
    shutil.rmtree(project.folder / "results")
    partial = [
        f"results/partial/{name}.md"
        for name in ("table2", "tiny/table3", "index", "claims", "audit")
    ]
    assert project.started(project.make(*partial)) == {"partial_page"}
    assert "missing" in project.read("partial/table2.md")
    assert "[missing: 0 of 3 runs scored](tiny/table2.md)" in project.read("partial/index.md")
    project.make("results/table2.md")  # the models are still there: scores only
    assert project.started(project.make(*partial)) == {"partial_page"}
    assert "[3 runs](tiny/table2.md)" in project.read("partial/index.md")
    assert "missing" not in project.read("partial/table2.md")


def test_finished_model_survives_a_forced_rerun(project):
    run = next((project.folder / "runs").glob("simcse-*"))
    before = (model := run / "model" / "model.safetensors").stat().st_mtime_ns
    assert "train" in project.started(project.make(f"runs/{run.name}/train.json", "--forceall"))
    assert model.stat().st_mtime_ns == before


def test_the_steps_by_hand_in_readme(project):
    readme = (project.folder / "README.md").read_text().replace("\\\n", " ")
    commands = [line.split() for line in readme.splitlines() if line.startswith("    csebench ")]
    assert [words[1] for words in commands] == ["train", "evaluate"]
    for words in commands:
        done = project.csebench(*words[1:])
        assert done.returncode == 0, done.stderr
    assert "STS-B" in done.stdout and (project.folder / words[-1]).exists()


def test_a_dropped_file_is_a_method_in_a_table_and_a_faulty_one_harms_no_other(project):
    template = (project.folder / "methods" / "_template.py").read_text()
    (project.folder / "methods" / "dropped.py").write_text(
        template.replace('"template"', '"dropped"')
    )
    project.make("results/methods.md")
    assert re.search(r"\| Template +\| (\*\*)?\d+\.\d\d", project.read("methods.md"))
    loss = "return info_nce(views.z1, views.z2, self.p.temperature, views.queue)"
    faulty = template.replace('"template"', '"faulty"').replace(
        loss, "return views.z1.sum() * float('nan')"
    )
    (project.folder / "methods" / "faulty.py").write_text(faulty)
    (project.folder / "methods" / "broken.py").write_text(
        "DECLARATION = {'name': 'broken', 'version': 'one'}\n"
    )
    shutil.rmtree(project.folder / "results")
    # which hides all that Snakemake prints
    done = project.snakemake("all", "--keep-going", "--quiet", "all")
    assert done.returncode == 1 and re.search(
        r"faulty-(\w+): loss is nan at step 1.*\(runs/faulty-\1/", done.stderr
    )
    made = ("table2.md", "tiny/table2.md", "tiny/table3.md", "tiny/figure1.svg", "tiny/figure1.csv")
    assert all((project.folder / "results" / name).exists() for name in made)
    assert not any(
        (project.folder / "results" / name).exists() for name in ("methods.md", "index.md")
    )
    project.make("results/partial/methods.md")
    assert "missing" in project.read("partial/methods.md")


def test_models_are_deleted_when_all_scores_are_published(tmp_path):
    """A scale that keeps only scores: its models are trained again for a missing score only."""
    project = one_row_project(tmp_path / "csebench")
    project.edit("config/smoke.yaml", "keep: model", "keep: scores")
    tables, runs = ("results/table2.md", "results/table3.md"), project.folder / "runs"
    project.make(*tables)  # which show other scores of the same runs
    pruned = sorted(path.parent.name for path in runs.glob("*/pruned.json"))
    assert len(pruned) == 2 and not list(runs.glob("*/model"))
    page = project.read("table2.md")
    assert not project.planned(*tables)
    missing = f"results/scores/{pruned[0]}.sts.json"
    (project.folder / missing).unlink()
    assert project.jobs(project.make(missing, *tables), "train") == 1
    assert not list(runs.glob("*/model")) and project.read("table2.md") == page


def test_a_search_and_its_page(copy):
    done = copy.csebench("tune", "simcse", "--trials", "2")
    assert done.returncode == 0, done.stderr
    runs = [
        run
        for trial in json.loads(copy.read("tuning/simcse.json"))["trials"]
        for run in trial["runs"]
    ]
    for run in runs:
        report = json.loads((copy.folder / "runs" / run["run"] / "train.json").read_text())
        assert (report["best_dev"], report["model_sha256"]) == (run["dev"], run["model_sha256"])
    copy.make("results/methods.md")
    assert "What tuning chose for each method" in copy.read("methods.md")


def test_a_fresh_clone_trains_and_scores_nothing_of_what_is_published(tmp_path):
    """Neither without data, nor with a folder that has none of it. Pages are written anew with
    the committed bytes."""
    page = "results/mini/micse/table2.md"
    published = {key for page in targets.parse_target("all", "mini") for key in page.available()}
    if not all((ROOT / targets.score_path(*key, "mini")).exists() for key in published):
        pytest.skip("published scores are of an older version of the code: runs have other ids")
    # with times of now, as git gives them
    clone = copy_of_project(tmp_path / "csebench", copy_function=shutil.copyfile)
    rules = clone.planned("all", "--config", "scale=mini")
    assert not {"train", "evaluate"} & rules and "page" in rules
    clone.env["CSEBENCH_DATA"] = str(tmp_path)
    assert clone.started(clone.make("--forcerun", "page", "--", page)) >= {"page"}
    for name in (page, page.replace(".md", ".svg")):
        assert (clone.folder / name).read_bytes() == (ROOT / name).read_bytes(), name


TABLE3, FIGURE = {"table3.md", "tiny/table3.md"}, {"tiny/figure1.svg", "tiny/figure1.md"}
OVER_ALL = {"index.md", "claims.md", "audit.md"}
EVERY = {"table2.md", "tiny/table2.md", "methods.md"} | TABLE3 | FIGURE | OVER_ALL


def planned(project) -> tuple[set[str], set[str]]:
    """Rules that `all` would run, and the pages that they write."""
    done = project.make("all", "-n")
    printed = done.stdout + done.stderr
    written = re.findall(r"^Job \d+: (?:write|draw) results/(\S+)", printed, re.M)
    return set(re.findall(r"^(\w+) +\d+$", printed, re.M)) - {"all", "total"}, {*written} & EVERY


NOTE = ("\nfrom csebench", "\n# a note\nfrom csebench")


def test_what_no_page_depends_on_makes_nothing_again(copy):
    """The trainer: what it changes has a new version, and with it other runs. Newer copies of
    the same data; the same scores at another time."""
    for module in ("train/trainer.py", "model/encoder.py", "study/work.py"):
        copy.edit(f"csebench/{module}", *NOTE)
    for path in (copy.folder / "data" / "smoke").rglob("*.csv"):
        path.write_bytes(path.read_bytes())
    for path in (copy.folder / "results" / "scores").glob("simcse-*.sts.json"):
        os.utime(path, (0, 0))
    assert planned(copy) == (set(), set())


EDITS = {  # what is there, what it becomes, the jobs and pages that are made again
    "methods/components/ami.py": (*NOTE, set(), EVERY),
    "evaluators/transfer.py": (*NOTE, set(), EVERY),
    "csebench/score/store.py": (*NOTE, set(), EVERY),
    "config/smoke.yaml": ("steps: 6", "steps: 7", {"train", "evaluate"}, EVERY),
    "data/smoke/downstream/STS/STSBenchmark/sts-test.csv": (
        " a ",
        " the ",
        {"evaluate"},
        EVERY - TABLE3,
    ),
}


@pytest.mark.parametrize("file", EDITS)
def test_an_edit_makes_what_depends_on_it_again(file, copy):
    """Code no run, a setting all, a test file its scores, as a page must not show those of other
    data."""
    old, new, jobs, wanted = EDITS[file]
    copy.edit(file, old, new)
    rules, pages = planned(copy)
    assert (rules & {"train", "evaluate"}, pages) == (jobs, wanted)


def test_other_values_with_an_old_time_rebuild_the_pages_that_show_them(copy):
    """As `cp -p`, `rsync -a` and `tar -x` leave them: of the run of the figure's 400 sentences."""
    scores = (copy.folder / "results" / "scores").glob("simcse-*.sts.json")
    (path,) = [
        path for path in scores if json.loads(path.read_text())["spec"]["corpus"]["size"] == 400
    ]
    path.write_text('{"value": 1}')
    os.utime(path, (0, 0))
    rules, pages = planned(copy)
    assert pages == FIGURE | OVER_ALL and not rules & {"train", "evaluate"}
    assert planned(copy)[1] == pages  # until they are made


MISSING = [("scores/simcse-*.sts.json", "results/tiny/figure1.svg", {"evaluate", "figure"})]
MISSING += [("table3.md", "results/index.md", {"page"})]


@pytest.mark.parametrize(("missing", "target", "made_again"), MISSING)
def test_a_page_that_was_there_first_does_not_hide_what_is_missing(
    missing, target, made_again, copy
):
    """What is between a page and its scores, though no file is newer than the page."""
    for path in (copy.folder / "results").glob(missing):
        path.unlink()
    assert copy.planned(target) == made_again


COMMAND = "$(touch${IFS}X)`touch${IFS}X`;touch${IFS}X;x'|touch${IFS}X&touch${IFS}X"
HOSTILE = [
    "data/official/beir/{}/source.json",
    "data/back-translation/{}.txt",
    "runs/{}-0123456789/train.json",
]
HOSTILE += [
    "results/scores/simcse-0123456789.{}.json",
    "results/{}/table2.md",
    "results/partial/{}.md",
]


@pytest.mark.parametrize("target", HOSTILE)
def test_a_hostile_name_is_refused_before_any_job(target, project):
    """No name reaches a shell as anything but a word. Also: tests/unit/test_rules.py."""
    done = project.run("-j1", "--", target.format(COMMAND))
    assert (
        done.returncode != 0 and not project.started(done) and not list(project.folder.rglob("X"))
    )


SETTINGS = ["--config=scale=smoke;touch${IFS}X", "--set-resources=train:chunk_size='$(touch X)'"]


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_runs_a_command(setting, project):
    done = project.run("-j1", "results/table2.md", "--forcerun", "train", setting)
    assert done.returncode != 0 and not list(project.folder.rglob("X")), done.stderr
