"""Snakemake end to end, on a copy of the project with one small table."""

import json
import os
import re
import shutil

import pytest
from project import Project, one_row_project

from csebench.base.files import with_digest, write_json

pytestmark = pytest.mark.slow

PAGES = ["table2.md", "table3.md", "methods.md", "tiny/table2.md", "tiny/table3.md"]
REPORTS = ["index.md", "claims.md", "audit.md"]
DRAWN = ["tiny/figure1.svg", "tiny/figure1.png", "tiny/figure1.csv"]


@pytest.fixture(scope="module")
def project(made, tmp_path_factory):
    """The made project, which tests change one after the other."""
    return made.copy_to(tmp_path_factory.mktemp("workflow") / "csebench")


def test_page_csv_and_scores(project):
    page = project.read("table2.md")
    assert re.search(r"\| SimCSE \| \d+\.\d\d ± \d+\.\d\d \|", page) and "| SimCSE | 67.94 ± 1.16 | – |" in page
    assert "| Other | 1.00 | 2.00 |" in page and "- Other: no adapter yet." in page
    assert re.search(r"\| SimCSE \| \d+\.\d\d ± \d+\.\d\d \|", project.read("table3.md"))
    scores = sorted((project.folder / "results" / "scores").glob("*.json"))
    assert len([p for p in scores if ".beir." in p.name]) == 2
    # the untrained encoder, a control and SimCSE by seed, whose two small sizes share their runs; one seed of 10 %
    assert len([p for p in scores if ".sts." in p.name]) == 1 + 2 + 2 + 1
    content = next(c for p in scores if (c := json.loads(p.read_text()))["spec"]["method"] == "simcse")
    provenance = content["provenance"]
    assert {"commit", "dirty_diff_sha256", "packages", "processor", "seconds", "peak_memory_mb"} <= set(provenance)
    assert content["training"]["provenance"]["data_sha256"]["corpus"] == content["spec"]["corpus"]["sha256"]
    csv = project.read("scores.csv").splitlines()
    assert len(csv) == 1 + sum(len(json.loads(p.read_text())["scores"]) for p in scores)
    assert "tiny,table2,2,SimCSE,0.1%,67.94,1.16," in project.read("cells.csv")


def test_everything_is_written_and_links_to_what_there_is(project):
    folder = project.folder / "results"
    for name in (*PAGES, *DRAWN, *REPORTS):
        assert (folder / name).stat().st_size > 0, name
        links = re.findall(r"\]\(([^)#]+)\)", project.read(name)) if name.endswith(".md") else []
        for link in links:
            assert link.startswith("http") or ((folder / name).parent / link).exists(), f"{name}: {link}"
    assert "[3 runs](tiny/table2.md)" in project.read("index.md")
    assert "[4 runs](tiny/figure1.md)" in project.read("index.md")
    assert "(claimed: +36.5)" in project.read("claims.md") and "## Tiny: 0" in project.read("audit.md")


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


WRITTEN = {"page", "figure", "csv", "all"}


def test_deleted_score_is_made_again_alone(project):
    """And what is written from it: Table 3 shows other scores of the run, and is left alone."""
    cell = next(line for line in project.read("cells.csv").splitlines() if line.startswith("tiny,figure1,2,SimCSE,1%"))
    score = project.folder / "results" / "scores" / f"{cell.split()[-1]}.sts.json"
    before, table3 = score.read_text(), (project.folder / "results" / "table3.md").stat().st_mtime_ns
    score.unlink()
    done = project.make("all")
    assert project.started(done) == {"evaluate"} | WRITTEN
    assert project.jobs(done, "evaluate") == 1
    assert score.read_text() == before
    assert (project.folder / "results" / "table3.md").stat().st_mtime_ns == table3


def test_edited_label_renders_again_and_trains_nothing(project):
    project.edit("papers/tiny.yaml", "SimCSE", "SimCSE (renamed)")
    assert project.started(project.make("results/table2.md")) == {"page"}
    assert "SimCSE (renamed)" in project.read("table2.md")
    assert project.started(project.make("all")) == WRITTEN | {"evidence"}
    for name in ("tiny/table3.md", "tiny/figure1.csv", "tiny/figure1.svg"):
        assert "SimCSE (renamed)" in project.read(name), name
    assert "+36.54 over BERT" in project.read("claims.md")


def test_partial_page_schedules_no_training(project):
    shutil.rmtree(project.folder / "results", ignore_errors=True)
    partial = [f"results/partial/{name}.md" for name in ("table2", "tiny/table3", "index", "claims", "audit")]
    assert project.started(project.make(*partial)) == {"partial_page"}
    assert "missing" in project.read("partial/table2.md")
    assert "[missing: 0 of 3 runs scored](tiny/table2.md)" in project.read("partial/index.md")
    assert "not testable" in project.read("partial/claims.md")
    project.make("results/table2.md")  # the models are still there: scores only
    assert "missing" not in project.csebench("render", "table2").stdout
    assert project.started(project.make(*partial)) == {"partial_page"}
    assert "[3 runs](tiny/table2.md)" in project.read("partial/index.md")
    assert "[missing: 0 of 2 runs scored](tiny/table3.md)" in project.read("partial/index.md")
    assert "missing" not in project.read("partial/table2.md")


def test_finished_model_survives_a_forced_rerun(project):
    model = next((project.folder / "runs").glob("simcse-*")) / "model" / "model.safetensors"
    before = model.stat().st_mtime_ns
    assert "train" in project.started(project.make("results/table2.md", "--forceall"))
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
    (project.folder / "methods" / "dropped.py").write_text(template.replace('"template"', '"dropped"'))
    assert re.search(r"^dropped +two_views", project.csebench("methods").stdout, re.M)
    project.make("results/methods.md")
    assert re.search(r"\| Template +\| (\*\*)?\d+\.\d\d", project.read("methods.md"))

    loss = "return info_nce(views.z1, views.z2, self.p.temperature, views.queue)"
    faulty = template.replace('"template"', '"faulty"').replace(loss, "return views.z1.sum() * float('nan')")
    (project.folder / "methods" / "faulty.py").write_text(faulty)
    (project.folder / "methods" / "broken.py").write_text("DECLARATION = {'name': 'broken', 'version': 'one'}\n")
    shutil.rmtree(project.folder / "results")
    done = project.snakemake("all", "--keep-going", "--quiet", "all")  # which hides all that Snakemake prints
    assert done.returncode == 1 and re.search(r"faulty-(\w+): loss is nan at step 1.*\(runs/faulty-\1/", done.stderr)
    for name in (*PAGES, *DRAWN):
        assert (project.folder / "results" / name).exists() == (name != "methods.md"), name
    assert not (project.folder / "results" / "index.md").exists()
    listed = project.csebench("methods").stdout
    assert re.search(r"^broken +BROKEN +methods/broken.py: line 1: version", listed, re.M)
    project.make("results/partial/methods.md", "results/partial/index.md")
    assert "missing" in project.read("partial/methods.md")
    assert "[3 runs](tiny/table2.md)" in project.read("partial/index.md")


def test_models_are_deleted_when_all_scores_are_published(tmp_path):
    """A scale that keeps only scores: its models are trained again for a missing score only."""
    project = one_row_project(tmp_path / "csebench")
    project.edit("config/smoke.yaml", "keep: model", "keep: scores")
    tables, runs = ("results/table2.md", "results/table3.md"), project.folder / "runs"
    project.make(tables[0])
    models = sorted(path.parent.name for path in runs.glob("simcse-*/model"))
    assert len(models) == 2  # Table 3 shows other scores of them
    assert "train" not in project.started(project.make(*tables))
    assert not list(runs.glob("*/model")) and len(list(runs.glob("*/pruned.json"))) == 2
    page = project.read("table2.md")
    assert not project.planned(*tables)
    missing = f"results/scores/{models[0]}.sts.json"
    (project.folder / missing).unlink()
    assert project.jobs(project.make(missing, *tables), "train") == 1
    assert not list(runs.glob("*/model")) and project.read("table2.md") == page


def test_a_search_its_page_and_a_scale_that_uses_it(copy):
    done = copy.csebench("tune", "simcse", "--trials", "2")
    assert done.returncode == 0, done.stderr
    search = json.loads(copy.read("tuning/simcse.json"))
    runs = [run for trial in search["trials"] for run in trial["runs"]]
    for run in runs:
        report = json.loads((copy.folder / "runs" / run["run"] / "train.json").read_text())
        assert (report["best_dev"], report["model_sha256"]) == (run["dev"], run["model_sha256"])
    copy.make("results/methods.md")
    assert runs[-1]["run"] in copy.read("methods.md")

    plan = ("plan", "table2", "--runs", "--json")
    before = copy.csebench(*plan).stdout
    search["trials"][1]["runs"][0]["dev"] = 1.0  # whichever was better: the one that is not as the scale has it
    search["chosen"] = search["trials"][1]["settings"]
    write_json(copy.folder / "results" / "tuning" / "simcse.json", with_digest(search))
    assert copy.csebench(*plan).stdout == before
    copy.edit("config/smoke.yaml", "keep: model", "tuned: true\nkeep: model")
    done = copy.csebench(*plan)
    assert done.returncode == 0 and done.stdout != before, done.stderr


# ---------------------------------------------------------------- what an edit makes again

TABLE2, TABLE3 = {"results/table2.md", "results/tiny/table2.md"}, {"results/table3.md", "results/tiny/table3.md"}
FIGURE = {"results/tiny/figure1.svg", "results/tiny/figure1.md"}
OVER_ALL = {"results/index.md", "results/claims.md", "results/audit.md"}
EVERY = TABLE2 | TABLE3 | FIGURE | OVER_ALL | {"results/methods.md"}


def planned(project) -> tuple[set[str], set[str]]:
    """Rules that `all` would run, and the pages that they write."""
    done = project.run("all", "-n")
    assert done.returncode == 0, done.stderr
    printed = done.stdout + done.stderr
    written = re.findall(r"^Job \d+: (?:write|draw) (\S+)", printed, re.M)
    return set(re.findall(r"^(\w+) +\d+$", printed, re.M)) - {"all", "total"}, {*written} & EVERY


def write_old(path, content: str) -> None:
    """With a time that is older than that of any page, as `cp -p`, `rsync -a` and `tar -x` leave it."""
    path.write_text(content)
    os.utime(path, (0, 0))


def test_what_no_page_depends_on_makes_nothing_again(copy):
    """The trainer: what it changes has a new version, and with it other runs. Newer copies of the same data; the same
    scores at another time."""
    for module in ("train/losses.py", "model/encoder.py", "run.py"):
        append(copy.folder / "csebench" / module)
    for path in (copy.folder / "data" / "smoke").rglob("*.csv"):
        path.write_bytes(path.read_bytes())
    for path in (copy.folder / "results" / "scores").glob("simcse-*.sts.json"):
        write_old(path, path.read_text())
    assert planned(copy) == (set(), set())


def append(path) -> None:
    path.write_text(path.read_text() + "\n# a note\n")


@pytest.mark.parametrize("file", ["methods/components/ami.py", "evaluators/transfer.py", "csebench/score/store.py"])
def test_edited_code_rebuilds_the_pages_and_trains_nothing(file, copy):
    append(copy.folder / file)
    rules, pages = planned(copy)
    assert pages == EVERY and not rules & {"train", "evaluate"}


def test_an_edited_setting_trains_again(copy):
    copy.edit("config/smoke.yaml", "steps: 6", "steps: 7")
    rules, pages = planned(copy)
    assert {"train", "evaluate"} <= rules and pages == EVERY


def test_a_test_file_that_is_changed_in_place_is_scored_again(copy):
    """Rather than the pages saying "Nothing to be done" over the scores of other data."""
    file = copy.folder / "data" / "smoke" / "downstream" / "STS" / "STSBenchmark" / "sts-test.csv"
    first, second, *rest = file.read_text().splitlines()
    file.write_text("\n".join([second, first, *rest]) + "\n")
    rules, pages = planned(copy)
    assert "evaluate" in rules and "train" not in rules
    assert pages >= EVERY - TABLE3 and not pages & TABLE3


def test_other_values_with_an_old_time_rebuild_the_pages_that_show_them(copy):
    (path,) = [
        path
        for path in (copy.folder / "results" / "scores").glob("simcse-*.sts.json")
        if json.loads(path.read_text())["spec"]["corpus"]["size"] == 400
    ]
    write_old(path, '{"value": 1}')
    rules, pages = planned(copy)
    assert pages == FIGURE | OVER_ALL and not rules & {"train", "evaluate"}
    assert planned(copy)[1] == pages  # until they are made


@pytest.mark.parametrize(
    ("missing", "target", "made_again"),
    [
        ("scores/simcse-*.sts.json", "results/tiny/figure1.svg", {"evaluate", "figure"}),
        ("table3.md", "results/index.md", {"page"}),
    ],
)
def test_a_page_that_was_there_first_does_not_hide_what_is_missing(missing, target, made_again, copy):
    """What is between a page and its scores, though no file is newer than the page."""
    for path in (copy.folder / "results").glob(missing):
        path.unlink()
    assert copy.planned(target) == made_again


# ---------------------------------------------------------------- no name reaches a shell as anything but a word

COMMAND = "$(touch${IFS}X)`touch${IFS}X`;touch${IFS}X;x'|touch${IFS}X&touch${IFS}X"
HOSTILE = [
    f"data/official/beir/{COMMAND}/source.json",
    f"data/back-translation/{COMMAND}.txt",
    f"runs/{COMMAND}-0123456789/train.json",
    f"results/scores/simcse-0123456789.{COMMAND}.json",
    f"results/{COMMAND}/table2.md",
    f"results/partial/{COMMAND}.md",
]


@pytest.mark.parametrize("target", HOSTILE)
def test_a_hostile_name_is_refused_before_any_job(target, project):
    """Also: tests/unit/test_rules.py."""
    done = project.run("-j1", "--", target)
    assert done.returncode != 0 and not project.started(done) and not list(project.folder.rglob("X"))


@pytest.mark.parametrize(
    "setting", ["--config=scale=smoke;touch${IFS}X", "--set-resources=train:chunk_size='$(touch X)'"]
)
def test_no_setting_runs_a_command(setting, project):
    done = project.run("-j1", "results/table2.md", "--forcerun", "train", setting)
    assert done.returncode != 0 and not list(project.folder.rglob("X")), done.stderr
