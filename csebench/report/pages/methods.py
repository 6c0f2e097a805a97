"""What the page of all methods has besides its table: the searches."""

from statistics import median

from csebench.plan import tuning
from csebench.plan.catalog.files import scale
from csebench.plan.catalog.registry import COMPONENTS, declaration
from csebench.report.pages.page import Fold, Part, TextTable


def tuning_parts(scale_name: str) -> list[Part]:
    """Folded: every search with its gain; nothing where no search was made."""
    searches = [tuning.read_search(path) for path in tuning.search_files(scale_name)]
    if not searches:
        return []
    here, most = scale(scale_name), max(search.planned for search in searches)
    # points of the best trial over the settings of the scale, by the titles of what was tuned
    gains, rows = {}, []
    for search in searches:
        method, *added = search.name.split("+")
        titles = [
            declaration(method).title,
            *(declaration(component, COMPONENTS).title for component in added),
        ]
        title, tried, gain_text = " + ".join(titles), len(search.trials), "–"
        first, best = search.trials[0].dev, tuning.best_trial(search.trials)
        if first is not None and best is not None and best.dev is not None:
            gains[title] = 100 * (best.dev - first)
            gain_text = f"{gains[title]:+z.2f}"
        count = f"{tried} of {search.planned}" if tried < search.planned else str(tried)
        chosen = "–" if best is None else tuning.settings_text(best.settings)
        rows.append(
            [
                title,
                count,
                search_points(first),
                chosen,
                search_points(best and best.dev),
                gain_text,
            ]
        )
    gained = "No search has a score with the settings of the scale."
    if gains:
        largest, unchanged = (
            max(gains, key=lambda name: gains[name]),
            sum(gain == 0 for gain in gains.values()),
        )
        middle, number = median(gains.values()), len(gains)
        gained = (
            f"Tuning gained {middle:+z.2f} points on STS-B dev in the median of {number} methods,"
            " at most"
        )
        gained += (
            f" {gains[largest]:+z.2f} ({largest}); for {unchanged} the settings of the scale were"
            " the best."
        )
    again = tuning.command([search.name for search in searches], scale_name, most)
    parts: list[Part] = [
        (
            f"{gained} A search tries all declared values, or as many as the others; the first"
            f" trial has the settings without it. Trials train on {here.sizes[tuning.SIZE]:,}"
            " sentences, with subsets and seeds that no table uses. With several seeds, a setting"
            " changes only for more than their deviation. A score is Spearman × 100 on STS-B dev,"
            " the set that chose the settings, so part of a gain is chance."
        ),
        TextTable(["method", "trials", "without tuning", "chosen settings", "tuned", "gain"], rows),
        f"Search again: `{again}`.",
    ]
    return [Fold("What tuning chose for each method, and gained", parts)]


def search_points(score: float | None) -> str:
    return "–" if score is None else f"{100 * score:.2f}"
