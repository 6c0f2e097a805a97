"""Released checkpoints as rows of a table: their runs, at the commits of evidence/checkpoints.lock.yaml.

The list itself is evidence/checkpoints.yaml (csebench/plan/evidence.py). The table belongs to scale paper, and to no
page of `all`: it needs the hub, and nothing in it is trained. Its page: csebench/report/checkpoints_page.py.
"""

from __future__ import annotations

from collections.abc import Callable

import yaml
from pydantic import Field, model_validator

from csebench.base.caches import cached
from csebench.base.errors import BadInput, unknown
from csebench.base.files import write_text
from csebench.plan import evidence
from csebench.plan.catalog import STS_COLUMNS
from csebench.plan.evidence import AVERAGE, Checkpoint, read_with_lines
from csebench.plan.papers import Column, Recipe, Row, Table
from csebench.plan.schema import EncoderRef, Strict

NAME = "checkpoints"  # of the page, and of its table
SCALE = "paper"
METHOD = "released"
LOCK = "checkpoints.lock.yaml"
COMMAND = "csebench lock-checkpoints"
LOCK_HEAD = f"""\
# Commits of the released checkpoints in checkpoints.yaml, each looked up once: `{COMMAND}` adds those that are
# missing, where the hub can be reached. While it is empty, no checkpoint has been looked up yet.
"""


class LockedCheckpoint(Strict):
    """What the hub gave for an id: its commit, or the reason why there is none."""

    commit: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    unavailable: str | None = None
    date: str  # of the look-up

    @model_validator(mode="after")
    def has_one(self):
        if (self.commit is None) == (self.unavailable is None):
            raise ValueError("needs either `commit`, or `unavailable` with the reason")
        return self


class Lock(Strict):
    """evidence/checkpoints.lock.yaml."""

    checkpoints: dict[str, LockedCheckpoint] = {}


@cached
def locked() -> dict[str, LockedCheckpoint]:
    """The entries of the lock file by hub id; none where there is no file.

    Raises:
        BadInput: with file and line, also for an id that checkpoints.yaml does not have.
    """
    path = evidence.folder() / LOCK
    if not path.is_file():
        return {}
    content, lines = read_with_lines(path, Lock)
    known = [checkpoint.hub for checkpoint in evidence.checkpoints()]
    for hub in content.checkpoints:
        if hub not in known:
            raise unknown("checkpoint of evidence/checkpoints.yaml", hub, known, lines.where("checkpoints", hub))
    return content.checkpoints


def lock(look_up: Callable[[str], str], date: str) -> list[str]:
    """Look up the commits of scored checkpoints that the lock file does not have, and write them to it.

    Args:
        look_up: from a hub id to its commit; raises BadInput with the reason where the hub gives none. Anything else
            that it raises ends the look-up, and nothing is written.
        date: of the look-up, for the file.

    Returns:
        the hub ids that were looked up.
    """
    known = locked()
    new = waiting()
    entries = {hub: entry.model_dump(exclude_none=True) for hub, entry in known.items()}
    for hub in new:
        try:
            entries[hub] = {"commit": look_up(hub), "date": date}
        except BadInput as reason:
            entries[hub] = {"unavailable": str(reason), "date": date}
    text = yaml.safe_dump({"checkpoints": dict(sorted(entries.items()))}, sort_keys=False, width=200)
    write_text(evidence.folder() / LOCK, LOCK_HEAD + text)
    return new


@cached
def scales() -> list[str]:
    """The scales that have the page."""
    return [SCALE]


def table() -> Table:
    """The table of all released checkpoints: one row each, with the average that its README states."""
    rows = []
    for checkpoint in evidence.checkpoints():
        stated, reason = checkpoint.stated.get(AVERAGE), unscored_reason(checkpoint)
        rows.append(
            Row(
                label=checkpoint.hub,
                run=None if reason else recipe(checkpoint),
                missing=reason,
                source="measured",
                values=[*[None] * (len(STS_COLUMNS) - 1), stated],
            )
        )
    return Table(title="released checkpoints", columns=[Column(label=c, task=c) for c in STS_COLUMNS], rows=rows)


def unscored_reason(checkpoint: Checkpoint) -> str | None:
    """Why a checkpoint is not scored; None for one that is."""
    if checkpoint.pooler is None:
        return f"no pooler of this project gives its vectors: {checkpoint.note}"
    entry = locked().get(checkpoint.hub)
    if entry is None:
        return f"its commit has not been looked up: `{COMMAND}`"
    return f"{entry.unavailable} ({entry.date})" if entry.unavailable else None


def recipe(checkpoint: Checkpoint) -> Recipe:
    """The recipe of a checkpoint with a commit in the lock file."""
    commit = locked()[checkpoint.hub].commit
    assert commit is not None and checkpoint.pooler is not None, checkpoint.hub
    encoder = EncoderRef(name=checkpoint.hub, revision=commit)
    return Recipe(method=METHOD, params={"pooler": checkpoint.pooler}, released=encoder)


def waiting() -> list[str]:
    """Hub ids of scored checkpoints whose commits have not been looked up."""
    return [c.hub for c in evidence.checkpoints() if c.pooler is not None and c.hub not in locked()]


def require_lock() -> None:
    """Raises BadInput, with what to do, where commits have not been looked up."""
    if hubs := waiting():
        raise BadInput(
            f"evidence/{LOCK}: no commit of {len(hubs)} released checkpoints ({hubs[0]} …); run `{COMMAND}` where the"
            " hub can be reached."
        )
