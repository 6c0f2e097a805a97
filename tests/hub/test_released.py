"""Released checkpoints from an empty lock to their page, against the loopback hub: files in their authors' formats."""

import io
import re
from datetime import UTC, datetime

import pytest
import torch
import yaml
from safetensors.torch import load_file

from csebench.plan import evidence
from csebench.report.checkpoints_page import AS_RELEASED, DIFFERS

pytestmark = pytest.mark.slow

PAGE = "results/paper/checkpoints.md"
SIMCSE, SUPERVISED, DIFFCSE, ESIMCSE = (
    "princeton-nlp/unsup-simcse-bert-base-uncased",
    "princeton-nlp/sup-simcse-roberta-base",
    "voidism/diffcse-bert-base-uncased-sts",
    "ffgcc/esimcse-bert-base-uncased",
)


@pytest.fixture(scope="module")
def checkpoints(sentences):
    import hub_models

    return hub_models.checkpoints(sentences)


@pytest.fixture
def project(project, checkpoints):
    project.hub.repositories += checkpoints
    project.edit("config/paper.yaml", {"keep": "model"})
    return project


def lock(project):
    done = project.run("lock-checkpoints")
    assert done.returncode == 0, done.stderr
    return yaml.safe_load((project.folder / "evidence" / "checkpoints.lock.yaml").read_text())["checkpoints"]


def row(page, hub):
    """The cells of a checkpoint in the first table."""
    (line,) = (line for line in page.splitlines() if line.startswith("|") and f"[{hub}]" in line)
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_files_of_the_hub_are_scored_and_the_page_has_a_verdict_for_each(project, checkpoints):
    count = len(evidence.checkpoints())
    project.hub.fail("gated", ESIMCSE)
    entries = lock(project)
    today = datetime.now(UTC).date().isoformat()
    for repository in checkpoints[:3]:
        assert entries[repository.id] == {"commit": repository.commit, "date": today}
    assert entries[ESIMCSE] == {"unavailable": "access to it is restricted on the hub", "date": today}
    assert not project.rehearse("checkpoints")["failed"]
    page = project.read("paper/checkpoints.md")
    assert f"3 of {count} checkpoints are scored: 0 as released, 3 with another number" in page
    method, _, commit, pooler, paper, readme, ours, difference, verdict = row(page, SIMCSE)
    assert (method, commit) == ("unsup-SimCSE, BERT-base", f"`{checkpoints[0].commit[:10]}` ({today})")
    assert (pooler, paper, readme, verdict) == ("cls_before_pooler", "76.25", "76.25", DIFFERS)
    assert float(difference) == pytest.approx(float(ours) - 76.25)
    not_scored = page.split("## Not scored")[1]
    assert f"{ESIMCSE}: access to it is restricted on the hub ({today})." in not_scored
    assert re.search(rf"sap-ai-research/miCSE.*: the hub has no such public model \({today}\)", not_scored)
    for repository, prefix in zip(checkpoints[:3], ("", "", "bert."), strict=True):
        assert weights_of_run(project, repository.id) == weights_of_file(repository, prefix)
    # A README that states what the file scores
    listed = project.folder / "evidence" / "checkpoints.yaml"
    listed.write_text(listed.read_text().replace("stated: {Avg.: 76.25}", f"stated: {{Avg.: {ours}}}"))
    project.run("render", "checkpoints", "--out", PAGE)
    page = project.read("paper/checkpoints.md")
    assert row(page, SIMCSE)[4:] == ["76.25", ours, ours, "+0.00", AS_RELEASED]
    assert f"3 of {count} checkpoints are scored: 1 as released, 2 with another number" in page


def test_a_checkpoint_that_goes_away_after_the_look_up_leaves_the_others(project, checkpoints):
    lock(project)
    project.hub.fail("gone", DIFFCSE)
    assert len(project.rehearse("checkpoints")["failed"]) == 1
    page = project.read("partial/paper/checkpoints.md")
    assert f"3 of {len(evidence.checkpoints())} checkpoints are scored" in page
    reason = (
        f"training failed: encoder voidism/diffcse-bert-base-uncased-sts at {checkpoints[2].commit[:12]}: the hub has"
    )
    assert f"{DIFFCSE}: {reason} no such repository or commit" in page.split("## Not scored")[1]


def weights_of_run(project, hub):
    """Names and sums of the weights that a run exported."""
    (folder,) = (
        path.parent for path in project.folder.glob("runs/released-*/spec.json") if f'"{hub}"' in path.read_text()
    )
    return {name: weight.sum().item() for name, weight in load_file(folder / "model" / "model.safetensors").items()}


def weights_of_file(repository, prefix):
    """Those of the encoder in its authors' file; the pooler where it is part of the vectors."""
    content = torch.load(io.BytesIO(repository.files["pytorch_model.bin"]))
    names = [name for name in content if name.startswith(prefix) and not name.startswith(("discriminator", "mlp"))]
    names = [
        name for name in names if "position_ids" not in name and (repository.id == SUPERVISED or "pooler" not in name)
    ]
    return {name.removeprefix(prefix): content[name].sum().item() for name in names}
