"""What targets need from outside the project: models and data, whether they are here, can be
fetched, or neither. Behind `csebench check` and `csebench fetch TARGET`. Never imports torch."""

import re
import shutil
from collections.abc import Iterator
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
HERE, REACHABLE, MISSING = "here", "reachable", "missing"
TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class Need:
    """A model, a source of `csebench fetch`, or a task of mteb."""

    kind: str  # encoder, generator, translator, data, mteb
    name: str
    ref: EncoderRef | None = None  # of a model
    files: tuple[str, ...] = ()  # of the data root, that the source brings


@dataclass(frozen=True)
class State:
    """Whether a need is met, could be, or cannot be."""

    need: Need
    state: str
    size: int | None = None  # bytes, on disk or to be fetched; None where it was not looked up
    why: str = ""


def needs(pages: list[Page]) -> list[Need]:
    """Distinct needs of the runs and scores of pages, models first."""
    specs = {
        run_id: spec for page in pages for run_id, spec in page.available_runs().items()
    }.values()
    scale = catalog.scale(pages[0].scale)
    models = {need for spec in specs for need in _models(spec)}
    files = {file for spec in specs for file in recipe.training_files(spec, scale)}
    tasks, by_source = set(), {}
    for evaluator in {
        e for page in pages for _, e in page.scores() if unavailable(e, page.scale) is None
    }:
        wanted = protocol(evaluator)
        if from_hub(wanted, catalog.data_root(scale)):
            tasks.add(Need("mteb", str(wanted.params["task"])))
        else:
            files |= {*wanted.files}
    for file in sorted(files):
        by_source.setdefault(source_of(file) or file, []).append(file)
    data = [Need("data", name, files=tuple(paths)) for name, paths in by_source.items()]
    return [
        need
        for kinds in (models, data, tasks)
        for need in sorted(kinds, key=attrgetter("kind", "name"))
    ]


def _models(spec: Spec) -> Iterator[Need]:
    """Models that a run reads: its encoder, and what its parameters name."""
    if spec.run_before is None and declaration(spec.method).kind != "control":
        yield Need("encoder", spec.encoder.name, spec.encoder)
    named = [("translator", spec.params["translators"])] if spec.back_translated else []
    named += [item for component in spec.components.values() for item in component.params.items()]
    for kind, value in named:
        for ref in map(EncoderRef.parse, filter(PINNED.fullmatch, str(value).split())):
            yield Need(kind, ref.name, ref)


def check_needs(pages: list[Page], ask: bool = True) -> list[State]:
    """State of every need: of what is not here, servers are asked, several at a time. Without
    `ask`, what can be fetched counts as reachable, and tasks of mteb, whose lookup takes
    seconds, are left out."""
    wanted = [need for need in needs(pages) if ask or need.kind != "mteb"]
    with ThreadPoolExecutor(8) as pool:
        states = pool.map(lambda need: need_state(need, pages[0].scale, ask), wanted)
        return list(bar(states, "checking", "source", total=len(wanted)))


def need_state(need: Need, scale_name: str, ask: bool = True) -> State:
    """Whether a need is here, can be fetched (`ask`: its server, for the size), or is missing,
    and why."""
    scale = catalog.scale(scale_name)
    try:
        if files := files_of(need, scale):
            return State(need, HERE, sum(path.stat().st_size for path in files if path.is_file()))
        lacking = [name for name in need.files if not matches(catalog.data_root(scale), name)]
        if reasons := [why for name in lacking if (why := missing(name, scale))]:
            return State(need, MISSING, why=reasons[0])
        return State(need, REACHABLE, remote_size(need) if ask else None)
    except (BadInput, RunFailed, OSError) as error:
        return State(need, MISSING, why=str(error))


def files_of(need: Need, scale: Scale) -> list[Path]:
    """Files and folders of a need; none where something of it is not here."""
    if need.ref is not None:
        folder = hub.local_folder(need.ref)
        if folder is not None:
            check_revision(folder, need.ref.revision)
        else:
            folder = hub.cached_model(need.ref)
        return [] if folder is None else [*folder.iterdir()]
    if need.kind == "mteb":
        return [
            path
            for folder in cached_task(*task_source(mteb_task(need.name)))
            for path in folder.rglob("*")
        ]
    by_pattern = [matches(catalog.data_root(scale), pattern) for pattern in need.files]
    return [path for paths in by_pattern for path in paths.values()] if all(by_pattern) else []


def remote_size(need: Need) -> int:
    """Bytes that are to be fetched for a need."""
    if need.ref is not None:
        return hub.missing_bytes(need.ref, f"{need.kind} {need.name} at {need.ref.revision[:12]}")
    if need.kind == "mteb":
        _, files = hub.listed(*task_source(mteb_task(need.name)), "dataset", f"mteb:{need.name}")
        return sum(file.size for file in files.values())
    source, total = sources()[need.name], 0
    if source.hub is not None:
        ref = EncoderRef.parse(source.hub)
        return hub.listed(ref.name, ref.revision, "dataset", f"{ref.name}/{source.file}")[1][
            source.file
        ].size
    for wanted in source.downloads:
        try:
            with urlopen(Request(wanted.url, method="HEAD"), timeout=TIMEOUT_SECONDS) as answer:
                total += int(answer.headers.get("Content-Length") or 0)
        except OSError as error:
            raise RunFailed(
                f"{wanted.url}: cannot be reached ({error}); try again, or {SUPPLY}."
            ) from None
    return total


def fetch_all(pages: list[Page]) -> Iterator[tuple[str, bool]]:
    """Bring all that pages need and that is not here; gives a line for every need, and whether
    it failed."""
    for need in bar(needs(pages), "fetching", "source"):
        state = need_state(need, pages[0].scale, ask=False)
        try:
            if state.state == MISSING:
                raise RunFailed(state.why)
            if state.state == REACHABLE:
                bring(need)
            what = "here" if state.state == HERE else f"fetched{weights_note(need)}"
            yield f"{need.kind} {need.name}: {what}", False
        except (BadInput, RunFailed) as error:
            yield f"{need.kind} {need.name}: {error}", True


def bring(need: Need) -> None:
    """Fetch a model or a task into its cache, files into the folder of fetched data."""
    if need.ref is not None:
        hub.fetch_model(need.ref, need.kind)
    elif need.kind == "mteb":
        load_task(mteb_task(need.name))
    else:
        fetch_source(need.name, Path(catalog.FETCHED))


def weights_note(need: Need) -> str:
    """Whether the weights of a fetched model are those of data/weights.yaml; empty where that
    has none."""
    stated = read_yaml(ROOT / "data" / "weights.yaml", RootModel[dict[str, str]]).root.get(
        need.name
    )
    if need.ref is None or stated is None:
        return ""
    actual = sha256(hub.fetch_model(need.ref, need.kind) / "pytorch_model.bin")
    other = f"have sha256 {actual}, not that of data/weights.yaml: correct the entry"
    return f"; its weights {'are those of data/weights.yaml' if actual == stated else other}"


def show(states: list[State]) -> str:
    """One screen: every need with its state, and whether the disk has room for what is to be
    fetched."""
    rows = [
        [s.need.kind, s.need.name, s.state, "" if s.size is None else _size(s.size)] for s in states
    ]
    lines = [table_text(["", "name", "state", "size"], rows)]
    lines += [
        f"- {s.why if s.need.name in s.why else f'{s.need.name}: {s.why}'}" for s in states if s.why
    ]
    fetched, free = (
        sum(s.size or 0 for s in states if s.state == REACHABLE),
        shutil.disk_usage(".").free,
    )
    room = "enough" if fetched < free else "NOT ENOUGH"
    return "\n".join([*lines, f"disk: {_size(fetched)} to fetch; {_size(free)} free: {room}"])


def _size(count: int) -> str:
    return f"{count / GB:.1f} GB" if count >= GB / 10 else f"{count / 10**6:.1f} MB"


def downloads(pages: list[Page]) -> str:
    """How many models and data have to be downloaded first, and what cannot be."""
    states = check_needs(pages, ask=False)
    absent = sum(s.state == REACHABLE for s in states)
    lines = [f"Models and data to be downloaded: {absent} (`csebench check` has their sizes)."]
    return "\n".join([*lines, *(f"Missing: {s.why}" for s in states if s.state == MISSING)])
