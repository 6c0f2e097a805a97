"""Scale paper from an empty cache to its pages, with the hub on this machine.

Recipes are unchanged. Steps and sizes are cut.
"""

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
    """Choose few pages that show every method, component, encoder and evaluator of all pages."""
    parts = {page: parts_of(page) for page in pages}
    left = set().union(*parts.values())

    def new_parts_per_run(page):
        return len(parts[page] & left) / (1 + len(page.available_runs()))

    chosen = []
    while left:
        best = max(pages, key=new_parts_per_run)
        chosen.append(str(best.path))
        left -= parts[best]
    return chosen


def parts_of(page):
    """Name the methods, components, encoders and evaluators of a page."""
    parts = {evaluator for _, evaluator in page.available()}
    for spec in page.available_runs().values():
        parts |= {spec.method, *spec.components}
        if spec.run_before is None:
            parts.add(spec.encoder.name)
    return parts


def test_scale_paper_with_every_method_encoder_and_evaluator(project):
    """Pages are fetched, trained, scored and rendered.

    What is missing has no public source, and its page says so. Rows on small BERTs get verdicts,
    because they have three seeds. At scale small, which has no BERT-base, such rows get them, too.
    """
    without_source = "results/paper/msse/table8.md"
    pages = dict.fromkeys([*covering(targets.pages("paper")), without_source])
    incomplete = project.rehearse(*pages)
    assert incomplete == [without_source]
    assert "misc/flickr30k/captions.token" in project.read("paper/msse/table8.md")

    judged = r"^\| (\w+-SimCSE-BERT-\w+) \| .* \| (?:agrees|inconclusive|differs): [^|]* run \|"
    labels = re.findall(judged, project.read("paper/congen/table1.md"), re.M)
    assert labels == [
        "Sup-SimCSE-BERT-Tiny",
        "Sup-SimCSE-BERT-Mini",
        "Sup-SimCSE-BERT-Small",
        "Unsup-SimCSE-BERT-Tiny",
        "Unsup-SimCSE-BERT-Mini",
        "Unsup-SimCSE-BERT-Small",
    ]
    assert printed_view("congen", "table1", "small").judged
    assert not printed_view("infocse", "table4", "small").judged


def test_the_workflow_leaves_only_what_a_fault_touches(project):
    """A data set is gone, and an archive's server breaks off once. With --keep-going the page that
    does not show the data set is complete, training ends well, and the run has its other scores."""
    figures = yaml.safe_load((project.folder / "papers/msse.yaml").read_text())["figures"]
    small_figures = {}
    for name in ("4", "5"):
        small_figures[name] = figures[name] | {"compare": [], "rows": figures[name]["rows"][:1]}
    project.change("papers/msse.yaml", {"figures": small_figures, "claims": []})
    figure4 = "results/paper/msse/figure4.svg"
    figure5 = "results/paper/msse/figure5.svg"

    project.hub.fail("gone", "mteb/quora")
    project.hub.fail("breaks", "files/title_StackOverflow.txt", times=1)
    done = project.snakemake(figure5, figure4, "--keep-going")
    assert done.returncode == 1, done.stderr[-3000:]
    assert "Error in rule train" not in done.stdout + done.stderr
    assert not (project.folder / figure5).exists(), done.stderr
    assert (project.folder / figure4).exists(), done.stderr

    score_files = (project.folder / "results/paper/scores").glob("*.json")
    scores = {path.name.partition(".")[2] for path in score_files}
    assert "mteb.MassiveIntentClassification.json" in scores
    assert "mteb.QuoraRetrieval.json" not in scores
    notes = list(project.folder.glob("runs/*/scores/mteb.QuoraRetrieval.failed.txt"))
    assert len(notes) == 1
    assert "mteb/quora" in notes[0].read_text()
    status = project.csebench("status", "msse/figure5", "--scale", "paper").stdout
    assert "QuoraRetrieval" in status

    project.hub.faults.clear()
    project.make(figure5, figure4)
    assert (project.folder / figure5).exists()
    assert not list(project.folder.glob("runs/*/scores/*.failed.txt"))
