"""Snakemake end to end, on a copy of the project with one small table."""

import json
import os
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field

import pytest
from project import Project, copy_of_project, one_row_project, planned_rules

from csebench.base.project import ROOT
from csebench.plan import targets

pytestmark = pytest.mark.slow

WRITERS = {"page", "figure", "csv", "all"}  # the rules that write results from scores


@pytest.fixture(scope="module")
def project(made, tmp_path_factory):
    """A copy of the made project, which the tests of this file change one after the other."""
    return made.copy_to(tmp_path_factory.mktemp("workflow") / "csebench")


def test_pages_and_scores(project):
    assert "- 3 of 3 runs scored" in project.read("tiny/table2.md")
    assert "- 2 of 2 runs scored" in project.read("tiny/table3.md")
    paths = sorted((project.folder / "results" / "scores").glob("*.json"))
    counts = Counter(path.name.split(".")[1] for path in paths)
    # the untrained encoder; a control and SimCSE with two seeds each; SimCSE at 10 % with one
    assert counts["sts"] == 1 + 2 + 2 + 1
    assert counts["beir"] == 2

    contents = [json.loads(path.read_text()) for path in paths]
    content = next(content for content in contents if content["spec"]["method"] == "simcse")
    noted = {"commit", "dirty_diff_sha256", "packages", "processor", "seconds", "peak_memory_mb"}
    assert noted <= content["provenance"].keys()
    trained_on = content["training"]["provenance"]["data_sha256"]["corpus"]
    assert trained_on == content["spec"]["corpus"]["sha256"]


def test_a_row_is_made_alone(project):
    """Its scores exist, so that nothing is trained or scored."""
    done = project.make("results/tiny/table2/simcse.csv")
    assert project.started(done) == {"row"}
    head, *lines = project.read("tiny/table2/simcse.csv").splitlines()
    assert head.startswith("paper,table,number,row,column,seed,ours,")
    assert [line.split(",")[3] for line in lines] == ["SimCSE", "SimCSE"]


def test_a_moved_checkout_plans_no_job(made, tmp_path):
    """It plans no job either if CSEBENCH_DATA has moved with it."""
    first = made.copy_to(tmp_path / "first")
    moved = Project(first.folder.rename(tmp_path / "second"))
    assert not moved.planned("all")

    moved.edit("config/smoke.yaml", "data_root: data/smoke\n", "")
    moved.env["CSEBENCH_DATA"] = str(moved.folder / "data" / "smoke")
    moved.make("results/table3.md")
    moved_again = Project(moved.folder.rename(tmp_path / "third"))
    moved_again.env["CSEBENCH_DATA"] = str(moved_again.folder / "data" / "smoke")
    assert not moved_again.planned("results/table3.md")


def test_deleted_score_is_made_again_alone(project):
    """What is written from the score is made again, too. Table 3 shows other scores of the run, and
    stays as it is."""
    lines = project.read("cells.csv").splitlines()
    cell = next(line for line in lines if line.startswith("tiny,figure1,2,SimCSE,1%"))
    run_id = cell.split()[-1]
    score = project.folder / "results" / "scores" / f"{run_id}.sts.json"
    table3 = project.folder / "results" / "table3.md"
    score_before = score.read_text()
    time_of_table3 = table3.stat().st_mtime_ns

    score.unlink()
    done = project.make("all")

    assert project.started(done) == {"evaluate"} | WRITERS
    assert project.jobs(done, "evaluate") == 1
    assert score.read_text() == score_before
    assert table3.stat().st_mtime_ns == time_of_table3


def test_edited_label_renders_again_and_trains_nothing(project):
    project.edit("papers/tiny.yaml", "SimCSE", "SimCSE (renamed)")
    assert project.started(project.make("results/table2.md")) == {"page"}
    assert project.started(project.make("all")) == WRITERS | {"evidence"}
    for name in ("table2.md", "tiny/table3.md", "tiny/figure1.csv", "tiny/figure1.svg"):
        assert "SimCSE (renamed)" in project.read(name), name
    assert "36.54 above BERT" in project.read("claims.md")


def test_partial_page_schedules_no_training(project):
    shutil.rmtree(project.folder / "results")
    names = ("table2", "tiny/table3", "index", "claims", "audit")
    partial_pages = [f"results/partial/{name}.md" for name in names]
    assert project.started(project.make(*partial_pages)) == {"partial_page"}
    assert "missing" in project.read("partial/table2.md")
    assert "missing: 0 of 3 runs scored" in project.read("partial/index.md")

    project.make("results/table2.md")  # the models are still there: scores only
    assert project.started(project.make(*partial_pages)) == {"partial_page"}
    row = re.search(
        r"^\| \[Table 2\]\(tiny/table2\.md\) .*$", project.read("partial/index.md"), re.M
    )
    assert row is not None and row[0].endswith("| complete |")
    assert "missing" not in project.read("partial/table2.md")


def test_finished_model_survives_a_forced_rerun(project):
    run = next((project.folder / "runs").glob("simcse-*"))
    model = run / "model" / "model.safetensors"
    time_before = model.stat().st_mtime_ns

    done = project.make(f"runs/{run.name}/train.json", "--forceall")

    assert "train" in project.started(done)
    assert model.stat().st_mtime_ns == time_before


def test_the_steps_by_hand_in_readme(project):
    readme = (project.folder / "README.md").read_text().replace("\\\n", " ")
    lines = [line for line in readme.splitlines() if line.startswith("    csebench ")]
    train, evaluate = [line.split()[1:] for line in lines]
    assert train[0] == "train"
    assert evaluate[0] == "evaluate"

    trained = project.csebench(*train)
    assert trained.returncode == 0, trained.stderr
    evaluated = project.csebench(*evaluate)
    assert evaluated.returncode == 0, evaluated.stderr
    assert "STS-B" in evaluated.stdout
    assert (project.folder / evaluate[-1]).exists()


def test_a_dropped_file_is_a_method_in_a_table_and_a_faulty_one_harms_no_other(project):
    methods = project.folder / "methods"
    results = project.folder / "results"
    template = (methods / "_template.py").read_text()
    (methods / "dropped.py").write_text(template.replace('"template"', '"dropped"'))
    project.make("results/methods.md")
    assert re.search(r"\| Template +\| (\*\*)?\d+\.\d\d", project.read("methods.md"))

    loss = "return info_nce(views.z1, views.z2, self.p.temperature, views.queue)"
    nan = "return views.z1.sum() * float('nan')"
    faulty = template.replace('"template"', '"faulty"').replace(loss, nan)
    (methods / "faulty.py").write_text(faulty)
    broken = "DECLARATION = {'name': 'broken', 'version': 'one'}\n"
    (methods / "broken.py").write_text(broken)
    shutil.rmtree(results)
    # `--quiet all` hides all that Snakemake itself prints
    done = project.snakemake("all", "--keep-going", "--quiet", "all")
    assert done.returncode == 1
    assert re.search(r"faulty-(\w+): loss is nan at step 1.*\(runs/faulty-\1/", done.stderr)

    made = ("table2.md", "tiny/table2.md", "tiny/table3.md", "tiny/figure1.svg", "tiny/figure1.csv")
    for name in made:
        assert (results / name).exists(), name
    for name in ("methods.md", "index.md"):
        assert not (results / name).exists(), name
    project.make("results/partial/methods.md")
    assert "missing" in project.read("partial/methods.md")


def test_models_are_deleted_when_all_scores_are_published(tmp_path):
    """A scale may keep only scores. Its models are trained again only for a missing score."""
    project = one_row_project(tmp_path / "csebench")
    project.edit("config/smoke.yaml", "keep: model", "keep: scores")
    tables = ("results/table2.md", "results/table3.md")  # they show other scores of the same runs
    runs = project.folder / "runs"

    project.make(*tables)
    pruned = sorted(path.parent.name for path in runs.glob("*/pruned.json"))
    assert len(pruned) == 2
    assert not list(runs.glob("*/model"))
    assert not project.planned(*tables)

    page = project.read("table2.md")
    missing = f"results/scores/{pruned[0]}.sts.json"
    (project.folder / missing).unlink()
    assert project.jobs(project.make(missing, *tables), "train") == 1
    assert not list(runs.glob("*/model"))
    assert project.read("table2.md") == page


def test_a_search_and_its_page(copy):
    done = copy.csebench("tune", "simcse", "--trials", "2")
    assert done.returncode == 0, done.stderr

    for trial in json.loads(copy.read("tuning/simcse.json"))["trials"]:
        for run in trial["runs"]:
            report = json.loads((copy.folder / "runs" / run["run"] / "train.json").read_text())
            assert report["best_dev"] == run["dev"]
            assert report["model_sha256"] == run["model_sha256"]

    copy.make("results/methods.md")
    assert "What tuning chose for each method" in copy.read("methods.md")


def test_a_fresh_clone_trains_and_scores_nothing_of_what_is_published(tmp_path):
    """Data may be missing, or be in a folder that has none of it. Pages are written again with the
    committed bytes."""
    complete = []
    for page in targets.parse_target("all", "mini"):
        scores = [targets.score_path(*score, "mini") for score in page.available()]
        if all((ROOT / path).exists() for path in scores):
            complete.append(str(page.path))
    page = "results/mini/micse/table2.md"
    assert page in complete
    assert len(complete) > 40  # the rest lacks runs

    # copyfile leaves out times, so that files have the time of now, as git gives them
    clone = copy_of_project(tmp_path / "csebench", copy_function=shutil.copyfile)
    rules = clone.planned(*complete, "--config", "scale=mini")
    assert not {"train", "evaluate"} & rules
    assert "page" in rules

    clone.env["CSEBENCH_DATA"] = str(tmp_path)
    assert clone.started(clone.make("--forcerun", "page", "--", page)) >= {"page"}
    for name in (page, page.replace(".md", ".svg")):
        assert (clone.folder / name).read_bytes() == (ROOT / name).read_bytes(), name


# ---------------------------------------------------------------- what is made again

TABLE2 = {"table2.md", "tiny/table2.md"}
TABLE3 = {"table3.md", "tiny/table3.md"}
FIGURE = {"tiny/figure1.svg", "tiny/figure1.md"}
OVER_ALL = {"index.md", "claims.md", "audit.md", "settings.md"}
ALL_PAGES = {"methods.md"} | TABLE2 | TABLE3 | FIGURE | OVER_ALL


@dataclass(frozen=True)
class Planned:
    """What Snakemake would do for `all`."""

    rules: set[str]
    pages: set[str]  # pages that it would write

    @property
    def rules_of_runs(self) -> set[str]:
        return self.rules & {"train", "evaluate"}


def planned(project) -> Planned:
    done = project.make("all", "-n")
    printed = done.stdout + done.stderr
    written = re.findall(r"^Job \d+: (?:write|draw) results/(\S+)", printed, re.M)
    return Planned(planned_rules(printed), set(written) & ALL_PAGES)


IMPORT = "\nfrom csebench"
NOTE = "\n# a note\nfrom csebench"


def test_what_no_page_depends_on_makes_nothing_again(copy):
    """No page depends on the trainer: a change of numbers has a new version, and so other runs.
    Nor does any depend on the times of data and scores."""
    for module in ("train/trainer.py", "model/encoder.py", "study/work.py"):
        copy.edit(f"csebench/{module}", IMPORT, NOTE)
    for path in (copy.folder / "data" / "smoke").rglob("*.csv"):
        path.write_bytes(path.read_bytes())
    for path in (copy.folder / "results" / "scores").glob("simcse-*.sts.json"):
        os.utime(path, (0, 0))
    assert planned(copy) == Planned(rules=set(), pages=set())


@dataclass(frozen=True)
class Edit:
    """An edit of a file, and what must be made again."""

    file: str
    old: str
    new: str
    pages: set[str]
    rules_of_runs: set[str] = field(default_factory=set)


TEST_FILE = "data/smoke/downstream/STS/STSBenchmark/sts-test.csv"
EDITS = [
    # code: pages, and no run
    Edit("methods/components/ami.py", IMPORT, NOTE, ALL_PAGES),
    Edit("evaluators/transfer.py", IMPORT, NOTE, ALL_PAGES),
    Edit("csebench/score/store.py", IMPORT, NOTE, ALL_PAGES),
    # a setting: every run
    Edit("config/smoke.yaml", "steps: 6", "steps: 7", ALL_PAGES, {"train", "evaluate"}),
    # a test file: its scores, because a page must not show scores of other data
    Edit(TEST_FILE, " a ", " the ", ALL_PAGES - TABLE3, {"evaluate"}),
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.file)
def test_an_edit_makes_what_depends_on_it_again(edit, copy):
    copy.edit(edit.file, edit.old, edit.new)
    jobs = planned(copy)
    assert jobs.rules_of_runs == edit.rules_of_runs
    assert jobs.pages == edit.pages


def test_other_values_with_an_old_time_rebuild_the_pages_that_show_them(copy):
    """`cp -p`, `rsync -a` and `tar -x` leave such files. The run is the figure's run of 400
    sentences."""
    paths = list((copy.folder / "results" / "scores").glob("simcse-*.sts.json"))
    (score,) = [path for path in paths if corpus_size(path) == 400]
    score.write_text('{"value": 1}')
    os.utime(score, (0, 0))

    jobs = planned(copy)
    assert jobs.pages == FIGURE | OVER_ALL
    assert not jobs.rules_of_runs
    assert planned(copy).pages == jobs.pages  # until they are made


def corpus_size(score_file):
    """Read on how many sentences the run of a score file was trained."""
    return json.loads(score_file.read_text())["spec"]["corpus"]["size"]


@pytest.mark.parametrize(
    ("missing", "target", "made_again"),
    [
        ("scores/simcse-*.sts.json", "results/tiny/figure1.svg", {"evaluate", "figure"}),
        ("table3.md", "results/index.md", {"page"}),
    ],
)
def test_a_page_that_was_there_first_does_not_hide_what_is_missing(
    missing, target, made_again, copy
):
    """Files between a page and its scores are made again, though no file is newer than the page."""
    for path in (copy.folder / "results").glob(missing):
        path.unlink()
    assert copy.planned(target) == made_again


# ---------------------------------------------------------------- hostile names and settings

COMMAND = "$(touch${IFS}X)`touch${IFS}X`;touch${IFS}X;x'|touch${IFS}X&touch${IFS}X"
HOSTILE_TARGETS = [
    "data/official/beir/{}/source.json",
    "data/back-translation/{}.txt",
    "runs/{}-0123456789/train.json",
    "results/scores/simcse-0123456789.{}.json",
    "results/{}/table2.md",
    "results/partial/{}.md",
]
HOSTILE_SETTINGS = [
    "--config=scale=smoke;touch${IFS}X",
    "--set-resources=train:chunk_size='$(touch X)'",
]


@pytest.mark.parametrize("target", HOSTILE_TARGETS)
def test_a_hostile_name_is_refused_before_any_job(target, project):
    """A name reaches a shell only as a word. tests/unit/test_rules.py checks the rules, too."""
    done = project.run("-j1", "--", target.format(COMMAND))
    assert done.returncode != 0
    assert not project.started(done)
    assert not list(project.folder.rglob("X"))


@pytest.mark.parametrize("setting", HOSTILE_SETTINGS)
def test_no_setting_runs_a_command(setting, project):
    done = project.run("-j1", "results/table2.md", "--forcerun", "train", setting)
    assert done.returncode != 0, done.stderr
    assert not list(project.folder.rglob("X")), done.stderr
