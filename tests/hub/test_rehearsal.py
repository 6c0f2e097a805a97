"""Scale paper from an empty cache to its pages, against the loopback hub: recipes unchanged,
steps and sizes cut."""

import re

import pytest
import yaml
from hub_project import Rehearsal

from csebench.plan import targets
from csebench.report.numbers.cells import printed_view

pytestmark = pytest.mark.slow


@pytest.fixture
def project(hub, tmp_path):
    return Rehearsal(tmp_path / "csebench", hub)


def covering(pages):
    """Paths of some pages with every method, component, encoder and evaluator that all have, in
    few runs."""
    parts, left = {}, set()
    for page in pages:
        specs = page.available_runs().values()
        parts[page.path] = {evaluator for _, evaluator in page.available()}
        parts[page.path] |= {name for spec in specs for name in (spec.method, *spec.components)}
        parts[page.path] |= {spec.encoder.name for spec in specs if spec.run_before is None}
        left |= parts[page.path]
    while left:
        best = max(
            pages, key=lambda page: len(parts[page.path] & left) / (1 + len(page.available_runs()))
        )
        left -= parts[best.path]
        yield str(best.path)


def test_scale_paper_with_every_method_encoder_and_evaluator(project):
    """Fetched, trained, scored and rendered. What is missing has no public source, and its page
    says so. Rows on small BERTs get verdicts, with three seeds; also at scale small, which has
    no BERT-base."""
    without_source = "results/paper/msse/table8.md"
    incomplete = project.rehearse(
        *dict.fromkeys([*covering(targets.pages("paper")), without_source])
    )
    assert incomplete == [without_source]
    assert "misc/flickr30k/captions.token" in project.read("paper/msse/table8.md")
    judged = r"^\| (\w+-SimCSE-BERT-\w+) \| .* \(\d\d\.\d\d [✓≈↓↑]\) \|$"
    rows = re.findall(judged, project.read("paper/congen/table1.md"), re.M)
    assert rows == [
        f"{kind}-SimCSE-BERT-{size}"
        for kind in ("Unsup", "Sup")
        for size in ("Tiny", "Mini", "Small")
    ]
    assert (
        printed_view("congen", "table1", "small").judged
        and not printed_view("infocse", "table4", "small").judged
    )


def test_the_workflow_leaves_only_what_a_fault_touches(project):
    """A data set that is gone, and an archive whose server breaks off once: with --keep-going the
    page that does not show the first is complete, the training jobs end well, and the other scores
    of the same run are there.
    """
    figures = yaml.safe_load((project.folder / "papers/msse.yaml").read_text())["figures"]
    few = {
        name: figures[name] | {"compare": [], "rows": figures[name]["rows"][:1]}
        for name in ("4", "5")
    }
    project.change("papers/msse.yaml", {"figures": few, "claims": []})
    project.hub.fail("gone", "mteb/quora")
    project.hub.fail("breaks", "files/title_StackOverflow.txt", times=1)
    pages = [f"results/paper/msse/{name}" for name in ("figure5.svg", "figure4.svg")]
    done = project.snakemake(*pages, "--keep-going")
    assert done.returncode == 1, done.stderr[-3000:]
    assert "Error in rule train" not in done.stdout + done.stderr
    assert [(project.folder / page).exists() for page in pages] == [False, True], done.stderr
    scores = {
        path.name.partition(".")[2]
        for path in (project.folder / "results/paper/scores").glob("*.json")
    }
    assert (
        "mteb.MassiveIntentClassification.json" in scores
        and "mteb.QuoraRetrieval.json" not in scores
    )
    notes = list(project.folder.glob("runs/*/scores/mteb.QuoraRetrieval.failed.txt"))
    assert len(notes) == 1 and "mteb/quora" in notes[0].read_text()
    assert "QuoraRetrieval" in project.csebench("status", "msse/figure5", "--scale", "paper").stdout
    project.hub.faults.clear()
    project.make(*pages)
    assert (project.folder / pages[0]).exists() and not list(
        project.folder.glob("runs/*/scores/*.failed.txt")
    )
