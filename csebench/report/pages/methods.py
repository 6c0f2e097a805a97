"""The searches for settings that the page of all methods shows below its table."""

from statistics import median

from csebench.plan import tuning
from csebench.plan.catalog.files import scale
from csebench.plan.tuning import Search
from csebench.report.pages.page import Fold, Part, TextTable
from csebench.report.words.method_settings import search_title

SEARCH_HEAD = ["method", "trials", "without tuning", "chosen settings", "tuned", "gain"]


def tuning_parts(scale_name: str) -> list[Part]:
    """Fold a table of all searches with their gains. There is no part without a search."""
    searches = [tuning.read_search(path) for path in tuning.search_files(scale_name)]
    if not searches:
        return []
    sentences = f"{gains_text(searches)} {how_searched(scale_name)}"
    table = TextTable(SEARCH_HEAD, [search_row(search) for search in searches])
    most_trials = max(search.planned for search in searches)
    command = tuning.command([search.name for search in searches], scale_name, most_trials)
    link = "[Every setting of every method, with the paper's value](settings.md)."
    parts: list[Part] = [sentences, table, link, f"Search again: `{command}`."]
    return [Fold("What tuning chose for each method, and gained", parts)]


def gains_text(searches: list[Search]) -> str:
    """Sum up the gains: the median, the largest, and how many searches gained nothing."""
    gains: dict[str, float] = {}  # by what was tuned
    for search in searches:
        gain = search_gain(search)
        if gain is not None:
            gains[search_title(search.name)] = gain
    if not gains:
        return "No search has a score with the settings of the scale."
    largest = max(gains, key=lambda title: gains[title])
    unchanged = sum(gain == 0 for gain in gains.values())
    return (
        f"Tuning gained {median(gains.values()):+z.2f} points on STS-B dev in the median of"
        f" {len(gains)} methods, at most {gains[largest]:+z.2f} ({largest}); for {unchanged} the"
        " settings of the scale were the best."
    )


def how_searched(scale_name: str) -> str:
    size = scale(scale_name).sizes[tuning.SIZE]
    return (
        "A search tries all declared values, or as many as the others; the first"
        f" trial has the settings without it. Trials train on {size:,}"
        " sentences, with subsets and seeds that no table uses. With several seeds, a setting"
        " changes only for more than their deviation. A score is Spearman × 100 on STS-B dev,"
        " the set that chose the settings, so part of a gain is chance."
    )


def search_row(search: Search) -> list[str]:
    """Write a search as a row under SEARCH_HEAD."""
    trials = str(len(search.trials))
    if len(search.trials) < search.planned:
        trials += f" of {search.planned}"
    without_tuning = score_points(search.trials[0].dev)
    best = tuning.best_trial(search.trials)
    chosen_settings = "–"
    tuned = "–"
    if best is not None:
        chosen_settings = tuning.settings_text(best.settings)
        tuned = score_points(best.dev)
    gain = search_gain(search)
    gain_text = "–" if gain is None else f"{gain:+z.2f}"
    return [search_title(search.name), trials, without_tuning, chosen_settings, tuned, gain_text]


def search_gain(search: Search) -> float | None:
    """Compute the gain, in points, of the best trial over the settings of the scale."""
    without_tuning = search.trials[0].dev
    best = tuning.best_trial(search.trials)
    if without_tuning is None or best is None or best.dev is None:
        return None
    return 100 * (best.dev - without_tuning)


def score_points(score: float | None) -> str:
    return "–" if score is None else f"{100 * score:.2f}"
