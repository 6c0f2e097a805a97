"""Send the model of a run to a repository of the hub, with its model card and its scores.

A plan says what would be sent. It is made from files of this machine only, so that a user can read
it first. Sending it is one commit.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi, get_token
from huggingface_hub.constants import EVAL_RESULTS_FOLDER
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import disable_progress_bars, validate_repo_id
from huggingface_hub.utils.sha import git_hash

from csebench.base.errors import BadInput, RunFailed, first_line
from csebench.base.files import sha256
from csebench.base.models import CARD, REPORT, hashed_files, model_sha256
from csebench.base.runs import PRUNED, has_model, is_done
from csebench.base.terminal import on_terminal
from csebench.plan import targets
from csebench.plan.catalog.files import RUNS
from csebench.plan.schema.spec import Spec
from csebench.score.store import score_files, stored_score
from csebench.sharing.model_index import card_with_scores, read_card
from csebench.sharing.score_files import SharedScores, read_shared_scores

MADE_BY_HUB = ".gitattributes"  # in every new repository
SCORES_FOLDER = "scores"
# What describes the model, together with its card. A later push of the same model may replace it.
DESCRIPTION_FOLDERS = (f"{SCORES_FOLDER}/", f"{EVAL_RESULTS_FOLDER}/")


@dataclass(frozen=True)
class PushPlan:
    """What is sent to a repository of the hub."""

    run_id: str
    repository: str  # OWNER/NAME
    is_private: bool  # if the repository is new
    files: dict[str, Path]  # by their names in the repository, without the card
    card: str

    def sizes(self) -> dict[str, int]:
        """Return the bytes of every file by its name in the repository."""
        sizes = {name: path.stat().st_size for name, path in self.files.items()}
        sizes[CARD] = len(self.card.encode())
        return dict(sorted(sizes.items()))


def plan_push(run_id: str, scale: str, repository: str, is_private: bool) -> PushPlan:
    """Collect the files of a finished run: the model, its report, its card, and its scores.

    Results that `csebench export eval-results` wrote into the folder of the model are sent, too.

    Raises:
        BadInput: the name of the repository is not valid, no page of the scale needs the run, the
            run is not finished, its model was changed or deleted, or its scores are missing, of
            other weights or outdated.
    """
    check_repository_name(repository)
    spec = targets.run(run_id, scale)
    model = finished_model(run_id, scale)
    score_paths = [path for path in score_files(scale) if path.name.startswith(f"{run_id}.")]
    if not score_paths:
        raise BadInput(
            f"{run_id}: has no scores at scale {scale}; `csebench work {run_id} --scale {scale}"
            " --evaluators=sts` makes them, and `csebench publish` puts them into results/."
        )
    all_scores = current_scores(spec, scale, model, score_paths)

    files = {str(name): path for name, path in hashed_files(model).items()}
    files[REPORT] = model / REPORT
    for path in sorted((model / EVAL_RESULTS_FOLDER).glob("*.yaml")):
        files[f"{EVAL_RESULTS_FOLDER}/{path.name}"] = path
    for path in score_paths:
        files[f"{SCORES_FOLDER}/{path.name}"] = path
    card = card_with_scores(read_card(model / CARD, all_scores[0].model), all_scores)
    return PushPlan(run_id, repository, is_private, files, card)


def check_repository_name(repository: str) -> None:
    """Refuse a name that is not OWNER/NAME, as the hub spells names."""
    try:
        validate_repo_id(repository)
    except HFValidationError as error:
        raise BadInput(f"--to {repository}: {first_line(error)}") from None
    if "/" not in repository:
        raise BadInput(f"--to {repository}: must be OWNER/NAME.")


def finished_model(run_id: str, scale: str) -> Path:
    """Return the folder of the model of a finished run.

    Raises:
        BadInput: the run is not finished, or its model was deleted or changed.
    """
    folder = RUNS / run_id
    if (folder / PRUNED).exists():
        raise BadInput(
            f"{folder}: its model was deleted after it was scored (`keep: scores` in the scale)."
            f" Delete {folder}, and train the run again."
        )
    if not (has_model(folder) and is_done(folder)):
        raise BadInput(
            f"{run_id}: is not finished; `csebench work {run_id} --scale {scale}"
            " --evaluators=sts` trains and scores it."
        )
    return folder / "model"


def current_scores(spec: Spec, scale: str, model: Path, paths: list[Path]) -> list[SharedScores]:
    """Read the scores of a run.

    Raises:
        BadInput: scores are of other weights than the model, or outdated.
    """
    revision = model_sha256(model)
    all_scores: list[SharedScores] = []
    for path in paths:
        for scores in read_shared_scores(path):
            refuse_other_weights(scores, model, revision, scale)
            refuse_outdated(spec, scores, scale)
            all_scores.append(scores)
    return all_scores


def refuse_outdated(spec: Spec, scores: SharedScores, scale: str) -> None:
    """Refuse scores of an older version of the evaluator, or of other settings."""
    _, is_outdated = stored_score(spec, scores.evaluator.text, scale)
    if is_outdated:
        raise BadInput(
            f"{scores.path}: an older version of {scores.evaluator.text} made it, or other settings"
            f" than scale {scale} has. {score_again(scores, scale)}"
        )


def refuse_other_weights(scores: SharedScores, model: Path, revision: str, scale: str) -> None:
    """Refuse scores of a model whose files have another hash, such as one of another machine."""
    if scores.model.revision != revision:
        raise BadInput(
            f"{scores.path}: is of other weights ({scores.model.revision[:12]}…) than {model}"
            f" ({revision[:12]}…). {score_again(scores, scale)}"
        )


def score_again(scores: SharedScores, scale: str) -> str:
    """Word the command that makes a published score again."""
    command = f"csebench publish {scores.model.run} {scores.evaluator.text} --scale {scale}"
    return f"`{command}` makes it again."


# ---------------------------------------------------------------- sending


def push(plan: PushPlan) -> str:
    """Send what was planned as one commit. Make the repository if there is none.

    Returns:
        The address of the commit.

    Raises:
        BadInput: there is no token, or it may not write to the repository, or the repository holds
            something else.
        RunFailed: the hub cannot be reached, or fails.
    """
    if get_token() is None:
        raise BadInput(
            f"{plan.repository}: no token of the hub. Make one that may write at"
            " https://huggingface.co/settings/tokens, and give it to `hf auth login`, or set"
            " HF_TOKEN."
        )
    if on_terminal():
        progress_bars = nullcontext()
    else:
        progress_bars = disable_progress_bars()
    try:
        with progress_bars:
            return _send(plan)
    except BadInput:
        raise
    # Exception: the HTTP library below differs by version
    except Exception as error:
        raise explained_refusal(error, plan.repository) from None


def _send(plan: PushPlan) -> str:
    """Send what was planned, as `push` does, but let errors of the hub's library pass as they are.

    Returns:
        The address of the commit.
    """
    api = HfApi()
    head = None
    try:
        head = api.model_info(plan.repository).sha
    except RepositoryNotFoundError:
        api.create_repo(plan.repository, private=plan.is_private)
    else:
        refuse_other_content(api, plan)

    additions = [CommitOperationAdd(CARD, plan.card.encode())]
    for name, path in plan.files.items():
        additions.append(CommitOperationAdd(name, str(path)))
    commit = api.create_commit(
        plan.repository,
        additions,
        commit_message=f"Run {plan.run_id} of csebench, with its scores",
        parent_commit=head,  # refuses a repository that somebody changes at the same time
    )
    return commit.commit_url


def refuse_other_content(api: HfApi, plan: PushPlan) -> None:
    """Refuse a repository that has other files, or another model.

    What describes the model may differ, because a later push renews it.
    """
    for entry in api.list_repo_tree(plan.repository, recursive=True):
        if not isinstance(entry, RepoFile) or entry.path == MADE_BY_HUB:
            continue
        if entry.path == CARD or entry.path.startswith(DESCRIPTION_FOLDERS):
            continue
        path = plan.files.get(entry.path)
        if path is None or not is_same_file(entry, path):
            raise BadInput(
                f"{plan.repository}: holds something else ({entry.path} is not a file of this"
                " model). Choose another repository, or delete it on the hub."
            )


def is_same_file(entry: RepoFile, path: Path) -> bool:
    """Whether a file of a repository has the content of a file here, by the hash that it states."""
    if entry.lfs is not None:
        return entry.lfs.sha256 == sha256(path)
    return entry.blob_id == git_hash(path.read_bytes())


def explained_refusal(error: Exception, repository: str) -> BadInput | RunFailed:
    """Word an error of the hub's library, or of the HTTP library below it, in one line."""
    response = getattr(error, "response", None)
    if response is not None and response.status_code in (401, 403):
        return BadInput(
            f"{repository}: the hub refuses it: your token may not write there"
            f" ({first_line(error)})."
        )
    return RunFailed(f"{repository}: not sent: {first_line(error)}. The same command tries again.")
