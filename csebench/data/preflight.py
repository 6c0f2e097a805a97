"""Models and data that targets need, for `csebench check` and `csebench fetch TARGET`.

A need is a model or data. It is here, or can be fetched, or is missing. data/fetch.py and
base/hub.py do the fetching. Never imports torch.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from urllib.request import Request, urlopen

from pydantic import RootModel

from csebench.base import hub
from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import matches, sha256
from csebench.base.models import check_revision
from csebench.base.project import ROOT
from csebench.base.terminal import bar, table_text
from csebench.base.yaml_lines import read_yaml
from csebench.data.fetch import SUPPLY, cached_task, fetch_source, load_task, mteb_task, task_source
from csebench.plan import recipe
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import from_hub, missing, source_of, sources
from csebench.plan.catalog.registry import declaration, protocol
from csebench.plan.schema.declarations import EncoderRef, Scale
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import Page, unavailable

PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")  # a model of the hub, as parameters name it
GB = 10**9
MB = 10**6
HERE = "here"
REACHABLE = "reachable"
MISSING = "missing"
TIMEOUT_SECONDS = 10
MOST_NAMES = 4  # that stand before a reason
OFFLINE = (
    "not here, and the hub cannot be reached. Try again with a network. Or run `csebench fetch"
    " TARGET --scale SCALE` on another machine, and copy its HF_HOME and data/official/ to this"
    " one (docs/data.md)."
)


@dataclass(frozen=True)
class Need:
    """A model, a source of `csebench fetch`, or a task of mteb."""

    kind: str  # encoder, generator, teacher, translator, data, mteb
    name: str
    ref: EncoderRef | None = None  # only of a model
    files: tuple[str, ...] = ()  # only of a source: files of the data root, or patterns of them


@dataclass(frozen=True)
class State:
    """Whether a need is here, can be fetched, or is missing."""

    need: Need
    state: str  # HERE, REACHABLE or MISSING
    size: int | None = None  # bytes on disk, or to be fetched; None if it was not looked up
    why: str = ""  # why it is missing


# ---------------------------------------------------------------- needs


def needs(pages: list[Page]) -> list[Need]:
    """List what the runs and scores of pages need, each need once.

    Models come first, then data, then tasks of mteb.
    """
    scale = catalog.scale(pages[0].scale)
    data_root = catalog.data_root(scale)
    models: set[Need] = set()
    files: set[str] = set()
    tasks: set[Need] = set()
    for spec in _specs(pages):
        models.update(_models(spec))
        files.update(recipe.training_files(spec, scale))
    for evaluator in _evaluators(pages):
        declared = protocol(evaluator)
        if from_hub(declared, data_root):
            tasks.add(Need("mteb", str(declared.params["task"])))
        else:
            files.update(declared.files)
    by_kind_and_name = attrgetter("kind", "name")
    return [
        *sorted(models, key=by_kind_and_name),
        *sorted(_data(files), key=by_kind_and_name),
        *sorted(tasks, key=by_kind_and_name),
    ]


def _specs(pages: list[Page]) -> Iterable[Spec]:
    """List the runs of pages, each once, without those that cannot be made."""
    specs = {}
    for page in pages:
        specs.update(page.available_runs())
    return specs.values()


def _evaluators(pages: list[Page]) -> set[str]:
    """List the evaluators of pages, without those that cannot be run."""
    evaluators = set()
    for page in pages:
        for _, evaluator in page.scores():
            if unavailable(evaluator, page.scale) is None:
                evaluators.add(evaluator)
    return evaluators


def _models(spec: Spec) -> Iterator[Need]:
    """Give the models that a run reads: its encoder, and the models that its parameters name."""
    if spec.run_before is None and declaration(spec.method).kind != "control":
        yield Need("encoder", spec.encoder.name, spec.encoder)
    parameters = list(spec.params.items())
    for component in spec.components.values():
        parameters.extend(component.params.items())
    for parameter, value in parameters:
        if parameter == "translators" and not spec.back_translated:
            continue
        kind = parameter.removesuffix("s")  # a parameter in the plural names several models
        for word in str(value).split():
            if PINNED.fullmatch(word):
                ref = EncoderRef.parse(word)
                yield Need(kind, ref.name, ref)


def _data(files: Iterable[str]) -> list[Need]:
    """Group files by the source that brings them. A file without a public source stands alone."""
    files_of_source: dict[str, list[str]] = {}
    for file in sorted(files):
        files_of_source.setdefault(source_of(file) or file, []).append(file)
    return [Need("data", name, files=tuple(group)) for name, group in files_of_source.items()]


# ---------------------------------------------------------------- their state


def check_needs(pages: list[Page], ask: bool = True) -> list[State]:
    """Look up the state of every need.

    If the hub cannot be reached, no server is asked, and what is not here is missing.

    Args:
        ask: ask servers, several at a time, for the needs that are not here. If false, a need that
            could be fetched counts as reachable without asking, and tasks of mteb are left out,
            because their lookup takes seconds.
    """
    needed = needs(pages)
    if not ask:
        needed = [need for need in needed if need.kind != "mteb"]
    is_offline = ask and not hub.can_be_reached()
    asks_servers = ask and not is_offline
    with ThreadPoolExecutor(8) as pool:
        lookups = pool.map(lambda need: need_state(need, pages[0].scale, asks_servers), needed)
        states = list(bar(lookups, "checking", "source", total=len(needed)))
    if is_offline:
        states = [missing_offline(state) for state in states]
    return states


def missing_offline(state: State) -> State:
    """Turn the state of a need that would have to be fetched into MISSING."""
    if state.state == REACHABLE:
        return State(state.need, MISSING, why=OFFLINE)
    return state


def need_state(need: Need, scale_name: str, ask: bool = True) -> State:
    """Look up whether a need is here, can be fetched, or is missing.

    Args:
        ask: if the need is not here, ask its server for the size. If false, it is only assumed
            that the server can be reached.
    """
    scale = catalog.scale(scale_name)
    try:
        files = files_of(need, scale)
        if files:
            size = sum(path.stat().st_size for path in files if path.is_file())
            return State(need, HERE, size)
        reason = _why_no_source(need, scale)
        if reason is not None:
            return State(need, MISSING, why=reason)
        size = remote_size(need) if ask else None
        return State(need, REACHABLE, size)
    except (BadInput, RunFailed, OSError) as error:
        return State(need, MISSING, why=str(error))


def _why_no_source(need: Need, scale: Scale) -> str | None:
    """Return why a file of a need is not here and cannot be fetched. None if all can be."""
    for name in need.files:
        if matches(catalog.data_root(scale), name):
            continue
        reason = missing(name, scale)
        if reason:
            return reason
    return None


def files_of(need: Need, scale: Scale) -> list[Path]:
    """List the files and folders of a need. The list is empty if any part is not here."""
    if need.ref is not None:
        return _files_of_model(need.ref)
    if need.kind == "mteb":
        paths = []
        for folder in cached_task(*task_source(mteb_task(need.name))):
            paths.extend(folder.rglob("*"))
        return paths
    paths = []
    for pattern in need.files:
        found = matches(catalog.data_root(scale), pattern)
        if not found:
            return []
        paths.extend(found.values())
    return paths


def _files_of_model(ref: EncoderRef) -> list[Path]:
    """List the files in the folder of a model. The list is empty if the model is not here."""
    folder = hub.local_folder(ref)
    if folder is not None:
        check_revision(folder, ref.revision)
    else:
        folder = hub.cached_model(ref)
    if folder is None:
        return []
    return list(folder.iterdir())


def remote_size(need: Need) -> int:
    """Ask the servers how many bytes have to be fetched for a need."""
    if need.ref is not None:
        return hub.missing_bytes(need.ref, f"{need.kind} {need.name} at {need.ref.revision[:12]}")
    if need.kind == "mteb":
        repository, revision = task_source(mteb_task(need.name))
        _, files = hub.listed(repository, revision, "dataset", f"mteb:{need.name}")
        return sum(file.size for file in files.values())
    source = sources()[need.name]
    if source.hub is not None:
        ref = EncoderRef.parse(source.hub)
        _, files = hub.listed(ref.name, ref.revision, "dataset", f"{ref.name}/{source.file}")
        return files[source.file].size
    return sum(_size_on_server(download.url) for download in source.downloads)


def _size_on_server(url: str) -> int:
    """Ask a server for the size of a file. It is 0 if the server does not say."""
    try:
        with urlopen(Request(url, method="HEAD"), timeout=TIMEOUT_SECONDS) as answer:
            return int(answer.headers.get("Content-Length") or 0)
    except OSError as error:
        raise RunFailed(f"{url}: cannot be reached ({error}); try again, or {SUPPLY}.") from None


# ---------------------------------------------------------------- fetching


def fetch_all(pages: list[Page]) -> Iterator[tuple[str, bool]]:
    """Fetch the needs of pages that are not here.

    Returns:
        A pair for every need: a line about it, and whether it could not be fetched.
    """
    for need in bar(needs(pages), "fetching", "source"):
        state = need_state(need, pages[0].scale, ask=False)
        label = f"{need.kind} {need.name}"
        if state.state == HERE:
            yield f"{label}: here", False
        elif state.state == MISSING:
            yield f"{label}: {state.why}", True
        else:
            try:
                bring(need)
                yield f"{label}: fetched{weights_note(need)}", False
            except (BadInput, RunFailed) as error:
                yield f"{label}: {error}", True


def bring(need: Need) -> None:
    """Fetch a need. Files go into the folder of fetched data, models and tasks into caches."""
    if need.ref is not None:
        hub.fetch_model(need.ref, need.kind)
    elif need.kind == "mteb":
        load_task(mteb_task(need.name))
    else:
        fetch_source(need.name, Path(catalog.FETCHED))


def weights_note(need: Need) -> str:
    """Say whether the weights of a fetched model are those that data/weights.yaml states.

    Returns:
        The end of a line; empty if data/weights.yaml states nothing about the model.
    """
    if need.ref is None:
        return ""
    sha256_by_name = read_yaml(ROOT / "data" / "weights.yaml", RootModel[dict[str, str]]).root
    expected = sha256_by_name.get(need.name)
    if expected is None:
        return ""
    actual = sha256(hub.fetch_model(need.ref, need.kind) / "pytorch_model.bin")
    if actual == expected:
        return "; its weights are as data/weights.yaml states"
    return (
        f"; its weights have sha256 {actual}, but data/weights.yaml states another one: correct the"
        " entry"
    )


# ---------------------------------------------------------------- sentences about them


def show(states: list[State]) -> str:
    """Word the state of every need, and whether the disk has room for what has to be fetched.

    A reason that several needs share is given once. The disk is left out if sizes are not known.
    """
    rows = []
    names_by_reason: dict[str, list[str]] = {}
    bytes_to_fetch = 0
    for state in states:
        size = ""
        if state.size is not None:
            size = _size(state.size)
        rows.append([state.need.kind, state.need.name, state.state, size])
        if state.why:
            names_by_reason.setdefault(state.why, []).append(state.need.name)
        if state.state == REACHABLE:
            bytes_to_fetch += state.size or 0
    reasons = []
    for reason, names in names_by_reason.items():
        if len(names) == 1 and names[0] in reason:  # do not name it twice
            reasons.append(f"- {reason}")
        elif len(names) <= MOST_NAMES:
            reasons.append(f"- {', '.join(names)}: {reason}")
        else:
            reasons.append(f"- {len(names)} of them: {reason}")
    table = table_text(["", "name", "state", "size"], rows)
    if OFFLINE in names_by_reason:
        return "\n".join([table, *reasons])
    free = shutil.disk_usage(".").free
    room = "enough" if bytes_to_fetch < free else "NOT ENOUGH"
    disk = f"disk: {_size(bytes_to_fetch)} to fetch; {_size(free)} free: {room}"
    return "\n".join([table, *reasons, disk])


def _size(count: int) -> str:
    if count >= GB / 10:
        return f"{count / GB:.1f} GB"
    return f"{count / MB:.1f} MB"


def downloads(pages: list[Page]) -> str:
    """Say how many models and data have to be downloaded first, and what is missing."""
    states = check_needs(pages, ask=False)
    reachable = [state for state in states if state.state == REACHABLE]
    lines = [
        f"Models and data to be downloaded: {len(reachable)} (`csebench check` has their sizes)."
    ]
    lines += [f"Missing: {state.why}" for state in states if state.state == MISSING]
    return "\n".join(lines)
