"""Write one's own runs as a source of evidence, for `csebench report`.

The runs of a scale become experiments of a file `evidence/<name>.yaml`. A run is comparable only if
its spec is what its method declares at scale paper. Otherwise `setting` says what differs. The file
passes the checks of every other source (csebench/plan/catalog/evidence.py) before it is there.
Never imports torch.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import yaml

from csebench.base.errors import BadInput
from csebench.base.files import read_bytes, replacing
from csebench.base.outputs import is_taken, not_ours
from csebench.base.project import name_of
from csebench.base.terminal import counted
from csebench.plan import targets, tuning
from csebench.plan.catalog import evidence
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import declaration, evaluator_declaration
from csebench.plan.recipe import conditions, make_spec
from csebench.plan.schema.declarations import AS_IT_IS
from csebench.plan.schema.paper import Grid, Recipe
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import Page
from csebench.report.numbers.cells import PAPER_SCALE
from csebench.report.numbers.row_settings import is_trained, setting_name, setting_text
from csebench.report.numbers.standard_sets import is_standard_data
from csebench.score.data_of_scores import Scored
from csebench.score.score_file import unversioned_code_of
from csebench.score.store import stored_score, value

STS_EVALUATOR: str = Grid.model_fields["evaluator"].default
STSB_DEV_SCORE = evidence.DEV[0]
NAMES_FILE = "evidence/methods.yaml"
FIRST_LINES = """\
# yaml-language-server: $schema=../docs/schemas/source.json
# Written by `csebench report`, which may write it again; keep other runs in another file.
"""
WRITTEN_BY_REPORT = FIRST_LINES.splitlines()[1]

# parts of a link to GitHub
GITHUB = r"https://github\.com/(?P<repository>[\w.-]+/[\w.-]+)"
LINK_TO_FILES = re.compile(
    GITHUB + r"/(?:tree|blob)/(?P<commit>[0-9a-f]{8,40})/(?P<path>[^\s?#]+)(?:[?#]\S*)?"
)
LINK_TO_COMMIT = re.compile(GITHUB + r"/(?:tree|blob|commit)/[0-9a-f]{8,40}/?")
LINK_TO_BRANCH = re.compile(GITHUB + r"/(?:tree|blob)/\S+")
LINK_TO_ISSUE = re.compile(GITHUB + r"/(?:issues|pull)/(?P<thread>\d+)\S*")


# ---------------------------------------------------------------- the form of a source


class Unquoted(str):
    """A number or date that a YAML file has with these characters: `75.10`, `3e-5`."""


class OneLine(dict):
    """A mapping that a YAML file has on one line."""


class SourceDumper(yaml.SafeDumper):
    """A writer of YAML in the form of the files in evidence/."""


def represent_unquoted(dumper: SourceDumper, text: Unquoted) -> yaml.Node:
    """Write a number or date without quotes and without a tag."""
    tag = dumper.resolve(yaml.ScalarNode, text, (True, False))
    return dumper.represent_scalar(tag, text)


def represent_one_line(dumper: SourceDumper, mapping: OneLine) -> yaml.Node:
    """Write a mapping, and all that is in it, in braces."""
    return dumper.represent_mapping("tag:yaml.org,2002:map", mapping.items(), flow_style=True)


SourceDumper.add_representer(Unquoted, represent_unquoted)
SourceDumper.add_representer(OneLine, represent_one_line)


# ---------------------------------------------------------------- where others can look runs up


def place_of_link(link: str) -> dict[str, str | int]:
    """Read the place of a source from a link to GitHub.

    Args:
        link: to a file or folder at a commit, or to an issue or pull request.

    Returns:
        The keys of a source: `repository`, and `commit` and `path` or `thread`.

    Raises:
        BadInput: the link leads somewhere else, or to a branch, whose files can change.
    """
    files = LINK_TO_FILES.fullmatch(link)
    if files is not None:
        repository, commit, path = files.group("repository", "commit", "path")
        return {"repository": repository, "commit": commit, "path": unquote(path)}
    issue = LINK_TO_ISSUE.fullmatch(link)
    if issue is not None:
        return {"repository": issue["repository"], "thread": int(issue["thread"])}
    if LINK_TO_COMMIT.fullmatch(link):
        raise BadInput(
            f"--url: {link}: names a commit, but no file or folder. Open the folder of the score"
            " files at this commit, and copy its link."
        )
    if LINK_TO_BRANCH.fullmatch(link):
        raise BadInput(
            f"--url: {link}: names no commit, so its files can change. Press y on the page at"
            " GitHub, and copy the link again."
        )
    raise BadInput(
        f"--url: {link}: is no link to GitHub. Give the link to the folder of the score files at a"
        " commit (https://github.com/OWNER/NAME/tree/COMMIT/PATH), or to an issue"
        " (https://github.com/OWNER/NAME/issues/NUMBER)."
    )


# ---------------------------------------------------------------- the runs of a scale


@dataclass(frozen=True)
class ReportedRun:
    """A scored run, with the names that evidence has for it."""

    spec: Spec
    scale: str
    content: dict  # of its score JSON
    encoder: str  # encoder of evidence/methods.yaml
    size: str  # size of the training set, as columns name it
    differences: tuple[str, ...]  # from the method at scale paper

    @property
    def training(self) -> dict:
        """The part of the score JSON about the training of the run."""
        return self.content["training"]


@dataclass(frozen=True)
class ReportedRuns:
    """The runs on pages that a source can have, and why it cannot have the others."""

    runs: list[ReportedRun]
    left_out: Counter[str]  # number of runs by reason


def collect_reported_runs(pages: Iterable[Page]) -> ReportedRuns:
    """Collect the runs on pages that have scores on the STS test sets."""
    scale_of_run: dict[str, str] = {}
    specs: dict[str, Spec] = {}
    for page in pages:
        for (run_id, evaluator), spec in page.scores().items():
            if evaluator == STS_EVALUATOR:
                specs[run_id] = spec
                scale_of_run[run_id] = page.scale
    runs: dict[tuple, ReportedRun] = {}  # by cell and scores
    left_out: Counter[str] = Counter()
    for run_id, spec in specs.items():
        scale = scale_of_run[run_id]
        content, is_outdated = stored_score(spec, STS_EVALUATOR, scale)
        if content is None:
            left_out["not scored yet"] += 1
            continue
        reason = why_not_reported(spec, Scored(content, is_outdated), scale)
        if reason is not None:
            left_out[reason] += 1
            continue
        run = reported_run(spec, content, scale)
        # Seeds give one model if training changes nothing, or if there is none. A source with equal
        # runs is refused, because they look like one run that is given twice.
        identity = (spec.cell_id, *scores_in_percent(run).items())
        if identity in runs:
            left_out["with exactly the scores of another seed"] += 1
            continue
        runs[identity] = run
    return ReportedRuns([*runs.values()], left_out)


def why_not_reported(spec: Spec, score: Scored, scale: str) -> str | None:
    """Say why a source cannot have a scored run; None if it can."""
    if score.is_outdated:
        return "scored with older code or other settings"
    if not is_standard_data(STS_EVALUATOR, score.data, scale):
        return "scored on other data than the standard test sets"
    if spec.method not in evidence.evidence_names().methods:
        return f"of {spec.method}, a method that {NAMES_FILE} does not name"
    if encoder_in_evidence(spec, scale) is None:
        name = targets.base_encoder(spec, scale)
        return f"on {name}, an encoder that {NAMES_FILE} does not name"
    return None


def encoder_in_evidence(spec: Spec, scale: str) -> str | None:
    """Find the name that evidence has for the encoder of a run; None if it has none.

    The scale may use an encoder in another one's place, so the role there says nothing.
    """
    used = targets.base_encoder(spec, scale)
    for role, encoder in catalog.scale(PAPER_SCALE).encoders.items():
        if encoder.name == used and role in evidence.evidence_names().encoders:
            return role
    return None


def reported_run(spec: Spec, content: dict, scale: str) -> ReportedRun:
    """Describe a run with the names of evidence. `why_not_reported` must have returned None."""
    encoder = encoder_in_evidence(spec, scale)
    assert encoder is not None
    size = label_of_size(spec, scale)
    differences = differences_from(declared_run(spec, encoder, size), spec)
    differences += [f"changed code of {unit}" for unit in changed_code(spec, content)]
    return ReportedRun(spec, scale, content, encoder, size, tuple(differences))


def changed_code(spec: Spec, content: dict) -> list[str]:
    """Name the methods, components and evaluators whose versions do not stand for their code."""
    units = [*spec.code]
    if content["evaluations"][0].get("code") is not None:
        units.append(f"evaluators/{STS_EVALUATOR}")
    unversioned = unversioned_code_of(content)
    units += [*unversioned["training.provenance"], *unversioned["provenance"]]
    return list(dict.fromkeys(units))


def label_of_size(spec: Spec, scale: str) -> str:
    """Name the size of a run's training set as columns do: `1%`."""
    if spec.corpus is None:
        return evidence.FULL
    for label, size in catalog.scale(scale).sizes.items():
        if size == spec.corpus.size:
            return label
    return f"{spec.corpus.size:,} sentences"


# ---------------------------------------------------------------- differences from the method


def declared_run(spec: Spec, encoder: str, size: str) -> Spec:
    """Plan the run that a method makes as it is declared, at scale paper and with a run's seed."""
    paper = catalog.scale(PAPER_SCALE)
    largest = max(paper.sizes.values())
    recipe = Recipe(method=spec.method)
    where = f"{spec.method} at scale {PAPER_SCALE}"
    start = paper.encoders[encoder]
    declared = make_spec(recipe, start, largest, spec.seed, conditions(paper), where)
    if declared.corpus is None:
        return declared
    # set here, because `make_spec` refuses a size below the declared batch
    corpus = declared.corpus.model_copy(update={"size": paper.sizes.get(size, largest)})
    return declared.model_copy(update={"corpus": corpus})


def differences_from(declared: Spec, spec: Spec) -> list[str]:
    """Say in which settings a run differs from the declared one: `steps 2000, not 15625`."""
    here = tuning.comparable(spec)
    there = tuning.comparable(declared)
    texts = []
    for key in tuning.spec_differences(spec, declared):
        if key.endswith(".version") and key not in there:
            continue  # the settings of the component say that it was added
        texts.append(spec_difference_text(key, here, there))
    return texts


def spec_difference_text(key: str, here: dict, there: dict) -> str:
    """Say how one part of a run differs from the declared run."""
    match key:
        case "encoder":
            return "another model to start from"
        case "corpus":
            return f"corpus {here[key]['name']}, {here[key]['size']:,} sentences"
        case "dev_sha256":
            return "another dev set"
        case "seeds":
            return f"separate seeds of {', '.join(sorted(here[key]))}"
    name = setting_name(key)
    if key not in here:
        return f"without {name}"
    text = f"{name} {setting_text(here[key])}"
    if key in there:
        text += f", not {setting_text(there[key])}"
    return text


# ---------------------------------------------------------------- a source


def source_content(author: dict, place: dict, reported: ReportedRuns) -> dict:
    """Lay out a source of evidence.

    Args:
        author: `who`, and `licence` if there is one.
        place: see `place_of_link`.

    Raises:
        BadInput: there are no runs.
    """
    if not reported.runs:
        raise BadInput(f"report: there is no run to report ({reasons_text(reported)}).")
    by_cell: dict[str, list[ReportedRun]] = defaultdict(list)
    for run in reported.runs:
        by_cell[run.spec.cell_id].append(run)
    experiments = [experiment_content(runs) for runs in by_cell.values()]

    def by_method_then_encoder(experiment: dict) -> tuple[str, str, str]:
        return experiment["method"], experiment["encoder"], experiment.get("setting", "")

    experiments.sort(key=by_method_then_encoder)
    return author | place | {"date": dates_of(reported.runs), "experiments": experiments}


def reasons_text(reported: ReportedRuns) -> str:
    """Say how many runs are left out, by reason: `12 runs not scored yet; 1 run of ct, …`."""
    if not reported.left_out:
        return "the pages show no scores on the STS test sets"
    texts = [f"{counted(n, 'run')} {reason}" for reason, n in reported.left_out.most_common()]
    return "; ".join(texts)


def dates_of(runs: Iterable[ReportedRun]) -> str:
    """Write the day on which runs were scored, or the first and the last of these days."""
    days = {Scored(run.content, False).started[:10] for run in runs}
    known_days = sorted(filter(None, days))
    if not known_days:
        return evidence.NOT_NOTED
    first, last = known_days[0], known_days[-1]
    if first == last:
        return Unquoted(first)
    return f"{first} to {last}"


def experiment_content(runs: list[ReportedRun]) -> dict:
    """Lay out the runs of one cell, which differ only in their seeds, as an experiment."""
    first = runs[0]
    spec = first.spec
    is_declared = not any(run.differences for run in runs)
    content: dict = {"method": spec.method}
    if not is_declared:
        content["setting"] = setting_of_runs(runs)
    content["encoder"] = first.encoder
    if spec.params.get("pooler") != evidence.default_pooler(spec.method):
        content["pooler"] = spec.params["pooler"]
    kind = declaration(spec.method).kind
    if kind == "untrained":
        content["kind"] = "untrained"
    elif kind == "released":
        content["kind"] = "checkpoint"
    if first.size != evidence.FULL:
        content["size"] = first.size
    if spec.corpus is not None:
        content["corpus"] = spec.corpus.name
    content["comparable"] = is_declared
    runs = sorted(runs, key=lambda run: run.spec.seed)
    listed = [run_content(run) for run in runs]
    if any(has_small_score(run["scores"]) for run in listed):
        content["sure"] = False  # says that such a score is in percent all the same
    content["setup"] = setup_content(runs)
    content["runs"] = listed
    return content


def setting_of_runs(runs: list[ReportedRun]) -> str:
    """Say how runs differ from the method at scale paper: `scale small: steps 2000, not 15625`."""
    differences: dict[str, None] = {}
    for run in runs:
        differences |= dict.fromkeys(run.differences)
    text = "; ".join(differences)
    scale = runs[0].scale
    if scale == PAPER_SCALE:
        return text
    return f"scale {scale}: {text}"


def setup_content(runs: list[ReportedRun]) -> dict:
    """Write how the runs of an experiment were made, as the keys of `evidence.Setup`.

    Runs may come from several machines and commits. Each of these is named once.
    """
    spec = runs[0].spec
    setup: dict = {"code": joined_texts(csebench_text(run.training["provenance"]) for run in runs)}
    if is_trained(spec):
        for key in ("batch_size", "learning_rate", "steps", "evaluate_every"):
            setup[key] = unquoted_setting(spec.params[key])
        setup["selection"] = selection_text(spec)
    setup["precision"] = spec.precision
    setup["versions"] = joined_texts(versions_text(run.training["provenance"]) for run in runs)
    setup["gpu"] = joined_texts(hardware_text(run.training["provenance"]) for run in runs)
    return setup


def selection_text(spec: Spec) -> str:
    """Say which step's model a run keeps."""
    if spec.params.get("selection") == "last":
        return "last step"
    return "best step on STS-B dev"


def joined_texts(texts: Iterable[str]) -> str:
    """Join texts, each once."""
    return "; ".join(dict.fromkeys(texts))


def csebench_text(provenance: dict) -> str:
    """Name the version and commit of csebench that made a run."""
    text = f"csebench {provenance['packages'].get('csebench') or ''}".rstrip()
    if provenance["commit"]:
        text += f" at {provenance['commit'][:10]}"
    if provenance["dirty_diff_sha256"]:
        text += " with changes"
    return text


def versions_text(provenance: dict) -> str:
    """Name the versions of torch and transformers: `torch 2.13.0, transformers 5.23.0`."""
    packages = provenance["packages"]
    names = [name for name in ("torch", "transformers") if packages.get(name)]
    return ", ".join(f"{name} {packages[name]}" for name in names)


def hardware_text(provenance: dict) -> str:
    """Name the GPU that trained a run, or the processor if there was none."""
    return provenance["gpu"] or f"none ({provenance['processor']})"


def run_content(run: ReportedRun) -> OneLine:
    """Lay out a run: its seed, its step and its scores in percent."""
    content = OneLine()
    if declaration(run.spec.method).kind not in AS_IT_IS:
        content["seed"] = run.spec.seed
    best_step = run.training.get("best_step")
    if is_trained(run.spec) and best_step is not None:
        content["best_step"] = best_step
    content["scores"] = scores_in_percent(run)
    return content


def scores_in_percent(run: ReportedRun) -> dict[str, Unquoted]:
    """Write the scores of a run on the STS test sets, and on STS-B dev if it is known."""
    scores = {}
    for task in (*evaluator_declaration(STS_EVALUATOR).tasks, evidence.AVERAGE):
        scores[task] = percent(value(run.content, task))
    best_dev = run.training.get("best_dev")
    if best_dev is not None:
        scores[STSB_DEV_SCORE] = percent(best_dev)
    return scores


def has_small_score(scores: dict[str, Unquoted]) -> bool:
    """Whether a score in percent looks like a fraction."""
    return any(abs(float(score)) <= 1 for score in scores.values())


# ---------------------------------------------------------------- the file


def percent(fraction: float | None) -> Unquoted:
    """Write a score in percent, with two decimals."""
    assert fraction is not None
    return Unquoted(f"{100 * fraction:.2f}")


def unquoted_setting(number) -> Unquoted:
    """Write a setting as people do: `3e-5`."""
    return Unquoted(setting_text(number))


def check_source_output(path: Path) -> None:
    """Refuse a place where a source cannot be, or where another one is.

    Raises:
        BadInput: the file is not YAML, or `csebench report` did not write it.
    """
    if path.suffix != ".yaml":
        raise BadInput(f"--out: {path}: must end with .yaml, as evidence/NAME.yaml does.")
    if is_taken(path) and WRITTEN_BY_REPORT.encode() not in read_bytes(path):
        raise not_ours(path, "a source that `csebench report` wrote")


def write_source(path: Path, content: dict) -> None:
    """Write a source of evidence, if it passes the checks of every source.

    Raises:
        BadInput: a value cannot be true, or another source has a run of it. Nothing is written.
    """
    text = FIRST_LINES + yaml.dump(
        content,
        Dumper=SourceDumper,
        default_flow_style=None,
        width=math.inf,
        sort_keys=False,
        allow_unicode=True,
    )
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
        try:
            check_new_source(temporary, path.stem)
        except BadInput as error:
            message = str(error).replace(name_of(temporary), str(path))
            raise BadInput(f"{message}\n{path}: not written.") from None


def check_new_source(path: Path, name: str) -> None:
    """Check a source as reading evidence does, also against all sources that are there.

    Args:
        name: of the source. Runs of an older file of this name are no repetition.
    """
    source, lines = evidence.read_source(path)
    source_of_run: dict[tuple, str] = {}
    for other_name, other in evidence.evidence_sources().items():
        if other_name == name:
            continue
        for _, identity in evidence.counted_runs(other):
            source_of_run.setdefault(identity, other_name)
    evidence.refuse_evidence(evidence.runs_of_others(name, source, source_of_run), lines)
