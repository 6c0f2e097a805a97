"""What targets need from outside the project: models and data, whether they are here, can be fetched, or neither.
Behind `csebench check` and `csebench fetch TARGET`. Never imports torch."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from tabulate import tabulate

from csebench.base import hub
from csebench.base.data_root import matches
from csebench.base.display import bar
from csebench.base.errors import BadInput, RunFailed
from csebench.data import fetch
from csebench.plan import catalog, recipe
from csebench.plan.declarations import EncoderRef
from csebench.plan.registry import declaration, protocol
from csebench.plan.spec import Spec
from csebench.plan.targets import Page, unavailable
from csebench.plan.where_data_is import beir, cannot_be_had, downloads, from_hub, no_file, source_of

PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")  # a model of the hub, as parameters name it
GB = 10**9
HERE, REACHABLE, MISSING = "here", "reachable", "missing"
TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class Need:
    """A model, a source of `csebench fetch`, or a task of mteb."""

    kind: str  # encoder, generator, translators, data, mteb
    name: str
    ref: EncoderRef | None = None  # of a model
    files: tuple[str, ...] = ()  # of the data root, that the source brings


@dataclass(frozen=True)
class State:
    need: Need
    state: str
    size: int | None = None  # bytes, on disk or to be fetched
    why: str = ""


# ---------------------------------------------------------------- what is needed


def needs(pages: Iterable[Page]) -> list[Need]:
    """Distinct needs of the runs and scores of pages, models first."""
    pages = list(pages)
    specs = {run_id: spec for page in pages for run_id, spec in page.available_runs().items()}
    models = {need for spec in specs.values() for need in _models(spec)}
    scale = catalog.scale(pages[0].scale)
    files: set[str] = set()
    for spec in specs.values():
        files |= {*recipe.training_files(spec, scale)}
    tasks, sources, root = set(), {}, catalog.data_root(scale)
    for evaluator in sorted({evaluator for page in pages for _, evaluator in page.scores()}):
        wanted = protocol(evaluator)
        if from_hub(wanted, root):
            tasks.add(Need("mteb", wanted.params["task"]))
        else:
            files |= {*wanted.files}
    for file in sorted(files):
        source = source_of(file)
        sources.setdefault(source[0] if source else file, []).append(file)
    data = [Need("data", name, files=tuple(paths)) for name, paths in sources.items()]
    by_name = lambda need: (need.kind, need.name)  # noqa: E731
    return [*sorted(models, key=by_name), *sorted(data, key=by_name), *sorted(tasks, key=by_name)]


def _models(spec: Spec) -> set[Need]:
    """Models that a run reads: its encoder, and what its parameters name."""
    models = set()
    if spec.run_before is None and declaration(spec.method).kind != "control":
        models.add(Need("encoder", spec.encoder.name, spec.encoder))
    if spec.back_translated:
        models |= _named("translator", spec.params["translators"])
    for component in spec.components.values():
        for key, value in component.params.items():
            models |= _named(key, value)
    return models


def _named(kind: str, value) -> set[Need]:
    refs = [EncoderRef.parse(name) for name in str(value).split() if PINNED.fullmatch(name)]
    return {Need(kind, ref.name, ref) for ref in refs}


# ---------------------------------------------------------------- whether it is there


def check(pages: list[Page]) -> list[State]:
    """State of every need; asks the servers of what is not here, several at a time."""
    scale = pages[0].scale
    with ThreadPoolExecutor(8) as pool:
        wanted = needs(pages)
        states = pool.map(lambda need: state_of(need, scale), wanted)
        return list(bar(states, "checking", "source", total=len(wanted)))


def state_of(need: Need, scale_name: str) -> State:
    """Whether a need is here, can be fetched, or is missing, and why."""
    try:
        if need.ref is not None:
            return _state_of_model(need)
        if need.kind == "mteb":
            return _state_of_task(need)
        return _state_of_files(need, scale_name)
    except (BadInput, RunFailed, OSError) as error:
        return State(need, MISSING, why=str(error))


def _state_of_model(need: Need) -> State:
    if (folder := hub.local_folder(need.ref) or hub.cached_model(need.ref)) is not None:
        return State(need, HERE, sum(path.stat().st_size for path in folder.iterdir() if path.is_file()))
    what = f"{need.kind} {need.name} at {need.ref.revision[:12]}"
    return State(need, REACHABLE, hub.missing_bytes(need.ref, what))


def _state_of_task(need: Need) -> State:
    repository, revision = mteb_source(need.name)
    if folders := fetch.cached_task(repository, revision):
        return State(need, HERE, sum(path.stat().st_size for f in folders for path in f.rglob("*") if path.is_file()))
    _, files = hub.listed(repository, revision, "dataset", f"mteb:{need.name}")
    return State(need, REACHABLE, sum(file.size for file in files.values()))


def _state_of_files(need: Need, scale_name: str) -> State:
    root = catalog.data_root(catalog.scale(scale_name))
    files = {pattern: matches(root, pattern) for pattern in need.files}
    if all(files.values()):
        return State(need, HERE, sum(path.stat().st_size for paths in files.values() for path in paths.values()))
    lacking = next(pattern for pattern, paths in files.items() if not paths)
    if catalog.scale(scale_name).data_root or need.name not in fetch.sources():
        return State(need, MISSING, why=no_file(lacking, catalog.scale(scale_name)))
    return State(need, REACHABLE, remote_size(need.name))


def remote_size(source: str) -> int:
    """Bytes of what `csebench fetch` brings for a source.

    Raises:
        OSError, RunFailed: its server cannot be reached.
    """
    if source in fetch.HUB_FILES:
        name = fetch.HUB_FILES[source]
        return hub.listed(fetch.REPOSITORY, fetch.REVISION, "dataset", f"{fetch.REPOSITORY}/{name}")[1][name].size
    if source.startswith("beir:"):
        urls = [beir().url.format(name=source.removeprefix("beir:"))]
    else:
        urls = [download.url for name, download in downloads().items() if name.startswith(source)]
    total = 0
    for url in urls:
        try:
            with urlopen(Request(url, method="HEAD"), timeout=TIMEOUT_SECONDS) as answer:
                total += int(answer.headers.get("Content-Length") or 0)
        except OSError as error:
            raise RunFailed(f"{url}: cannot be reached ({error}); {remedy_of(source)}") from None
    return total


def remedy_of(source: str) -> str:
    return f"try again, or put the files of {source} into the folder that CSEBENCH_DATA names (docs/data.md)."


def mteb_source(task: str) -> tuple[str, str]:
    """Repository and commit that the mteb package takes a task from."""
    import mteb

    dataset = mteb.get_task(task, languages=["eng"], eval_splits=["test"]).metadata.dataset
    return dataset["path"], dataset["revision"]


def absent(pages: list[Page]) -> tuple[list[Need], list[str]]:
    """What is not here, told without a connection: models and files to be downloaded, and messages about files that
    cannot be. A task of mteb is not looked up."""
    scale, absent, messages = catalog.scale(pages[0].scale), [], []
    for need in needs(pages):
        if need.ref is not None:
            absent += [] if hub.local_folder(need.ref) or hub.cached_model(need.ref) else [need]
        elif need.kind != "mteb":
            lacking = [name for name in need.files if not matches(catalog.data_root(scale), name)]
            lost = [name for name in lacking if cannot_be_had(name, scale)]
            messages += [no_file(name, scale) for name in lost]
            absent += [need] if len(lost) < len(lacking) else []
    return absent, messages


# ---------------------------------------------------------------- fetching


def fetch_all(pages: list[Page], report) -> list[str]:
    """Bring all that pages need and that is not here; what fails is reported, and the rest is fetched. A file without
    a public source is reported and is no failure: its cells are planned as missing.

    Args:
        report: is called with a line for every need.

    Returns:
        what failed, a line each.
    """
    scale, failed, by_hand = pages[0].scale, [], without_source(pages)
    for need in bar(needs(pages), "fetching", "source"):
        state = state_of(need, scale)
        if state.state == HERE:
            report(f"{need.kind} {need.name}: here")
            continue
        try:
            if need.ref is not None:
                hub.fetch_model(need.ref, need.kind)
            elif need.kind == "mteb":
                fetch.fetch_task(need.name)
            elif state.state == REACHABLE:
                fetch.sources()[need.name](Path(catalog.FETCHED))
            else:
                raise RunFailed(state.why)
            report(f"{need.kind} {need.name}: fetched")
        except (BadInput, RunFailed) as error:
            report(line := f"{need.kind} {need.name}: {error}")
            failed += [] if need.name in by_hand else [line]
    return failed


# ---------------------------------------------------------------- what is shown


def content(states: list[State]) -> list[dict]:
    """What `csebench check --json` prints."""
    return [
        {"kind": s.need.kind, "name": s.need.name, "state": s.state, "bytes": s.size, "why": s.why} for s in states
    ]


def show(states: list[State]) -> str:
    """One screen: every need with its state, and whether the disk has room for what is to be fetched."""
    rows = [[s.need.kind, s.need.name, s.state, "" if s.size is None else _size(s.size)] for s in states]
    lines = [tabulate(rows, ["", "name", "state", "size"], disable_numparse=True)]
    lines += [f"- {s.why if s.need.name in s.why else f'{s.need.name}: {s.why}'}" for s in states if s.why]
    fetched, free = sum(s.size or 0 for s in states if s.state == REACHABLE), shutil.disk_usage(".").free
    room = "enough" if fetched < free else "NOT ENOUGH"
    lines.append(f"disk: {_size(fetched)} to fetch; {_size(free)} free: {room}")
    return "\n".join(lines)


def lost(pages: list[Page], states: list[State]) -> set[str]:
    """What is missing although a page plans with it."""
    return {s.need.name for s in states if s.state == MISSING} - without_source(pages)


def without_source(pages: list[Page]) -> set[str]:
    """Files that no public source has: their cells are planned as missing."""
    evaluators = {evaluator for page in pages for _, evaluator in page.scores()}
    return {
        name
        for evaluator in evaluators
        if unavailable(evaluator, pages[0].scale)
        for name in protocol(evaluator).files
        if source_of(name) is None
    }


def _size(count: int) -> str:
    return f"{count / GB:.1f} GB" if count >= GB / 10 else f"{count / 10**6:.1f} MB"
