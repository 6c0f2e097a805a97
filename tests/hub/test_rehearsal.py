"""Scales paper and small from an empty cache to their pages, against the loopback hub: recipes unchanged, steps and
sizes cut."""

import re

import pytest

pytestmark = pytest.mark.slow
FLICKR = "misc/flickr30k/captions.token"


@pytest.fixture
def rehearsal(hub, tmp_path):
    from hub_project import Rehearsal

    return lambda *scale, **seeds: Rehearsal(tmp_path / "csebench", hub, *scale, **seeds)


def covering(pages):
    """Paths of some pages with every method, component, encoder and evaluator that all have, in few runs."""
    parts, left = {}, set()
    for page in pages:
        specs = page.available_runs().values()
        parts[page.path] = {evaluator for _, evaluator in page.available()}
        parts[page.path] |= {name for spec in specs for name in (spec.method, *spec.components)}
        parts[page.path] |= {spec.encoder.name for spec in specs if spec.run_before is None}
        left |= parts[page.path]
    while left:
        best = max(pages, key=lambda page: len(parts[page.path] & left) / (1 + len(page.available_runs())))
        left -= parts[best.path]
        yield str(best.path)


def test_scale_paper_with_every_method_encoder_and_evaluator(rehearsal):
    """All pages are planned; some are fetched, trained, scored and rendered. What is missing has no public source, and
    its page says so."""
    from csebench.plan import targets

    project, wanted = rehearsal(), [*covering(targets.pages("paper")), "results/paper/msse/table8.md"]
    planned = project.csebench("plan", "all")
    assert planned.returncode == 0, planned.stderr
    result = project.rehearse(*dict.fromkeys(wanted))
    assert not result["failed"] and not project.hub.unknown
    pages = {name: page for name, page in result["pages"].items() if "table8" not in name}
    assert all(page["written"] and not page["reasons"] for page in pages.values())
    states = {name: {*page["states"]} - {"complete", "settings"} for name, page in pages.items()}
    assert not {name: left for name, left in states.items() if left}
    assert result["pages"][wanted[-1]]["reasons"] and FLICKR in project.read("paper/msse/table8.md")
    assert not list(project.folder.glob(f"runs/*/{FLICKR}"))


def test_small_judges_what_is_printed_on_its_encoders(rehearsal):
    """Every page is planned, and what is fetched needs no network. ConGen's rows, one run on each small BERT a seed,
    get verdicts; InfoCSE's, which print BERT-base, would get none."""
    from csebench.report.cells import printed_view

    project = rehearsal("small", seeds=[48, 49, 50])
    for command in (["plan", "all"], ["fetch", "congen/table1"]):
        done = project.csebench(*command)
        assert done.returncode == 0, done.stderr
    project.hub.requests.clear()
    assert not project.rehearse("congen/table1", HF_HUB_OFFLINE="1")["failed"]
    assert not project.hub.unknown and not project.hub.requests
    rows = re.findall(
        r"^\| (\w+-SimCSE-BERT-\w+) \| .* \(\d\d\.\d\d [✓≈↓↑]\) \|$", project.read("small/congen/table1.md"), re.M
    )
    assert rows == [f"{kind}-SimCSE-BERT-{size}" for kind in ("Unsup", "Sup") for size in ("Tiny", "Mini", "Small")]
    assert printed_view("congen", "table1", "small").judged and not printed_view("infocse", "table4", "small").judged


def test_the_workflow_leaves_only_what_a_fault_touches(rehearsal):
    """A data set that is gone, and an archive whose server breaks off: with --keep-going the pages that show neither
    are complete, the training jobs end well, and the other scores of the same runs are there."""
    project = rehearsal()
    project.hub.fail("gone", "mteb/quora")
    project.hub.fail("breaks", "files/title_StackOverflow.txt", times=1)
    targets = [f"results/paper/msse/{name}" for name in ("table3.md", "figure5.svg", "figure4.svg")]
    done = project.snakemake(*targets, "--keep-going")
    assert done.returncode == 1, done.stderr[-3000:]
    assert {*re.findall(r"Error in rule (\w+)", done.stdout + done.stderr)} <= {"evaluate", "fetch"}, done.stderr
    assert [(project.folder / target).exists() for target in targets] == [True, False, True], done.stderr
    scores = {path.name.partition(".")[2] for path in (project.folder / "results/paper/scores").glob("*.json")}
    assert "mteb.MassiveIntentClassification.json" in scores and "mteb.QuoraRetrieval.json" not in scores
    notes = list(project.folder.glob("runs/*/scores/mteb.QuoraRetrieval.failed.txt"))
    assert len(notes) == 3 and "mteb/quora" in notes[0].read_text()
    assert "QuoraRetrieval" in project.csebench("status", "msse/figure5").stdout
    project.hub.faults.clear()
    project.make(*targets)
    assert (project.folder / targets[1]).exists() and not list(project.folder.glob("runs/*/scores/*.failed.txt"))
