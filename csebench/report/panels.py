"""Figures of one model from its scores and per-item values: SVG and PNG, and what is plotted as CSV. Same scores, same
bytes. The papers' figures, of many models: csebench/report/figures.py."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from csebench.base.errors import BadInput
from csebench.base.files import read_text, write_bytes
from csebench.plan.registry import protocol
from csebench.score import store

# Okabe and Ito's colours, which the colour-blind tell apart; more than eight groups also differ in their marker.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#B8A900")
MARKERS = ("o", "s", "^", "D", "v")
STYLE = {
    "svg.hashsalt": "csebench",
    "font.size": 9,
    "axes.titlesize": 10,
    "figure.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
METADATA = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
MI = "mutual information of attention (nats)"


class Source(NamedTuple):
    text: str  # the evaluator, as people write it
    model: str
    content: dict  # of the JSON
    data_root: Path | None


class Panel(NamedTuple):
    """A drawing of one model: `draw(figure, items, source)` fills a figure, or a part of one, and returns the table of
    what it plots."""

    draw: Callable
    evaluator: str
    item: str  # that it needs
    ending: str  # of its files' names
    width: float  # inches
    height: float


def plot(scores: Path, out: Path, data_root: Path | None = None) -> list[Path]:
    """Every figure that a score JSON has the data for, into the folder `out`.

    Args:
        scores: what `csebench evaluate` or `csebench publish` wrote.
        data_root: that was scored, for cosine against gold; without it that figure is left out.

    Returns:
        the files written.

    Raises:
        BadInput: not such a JSON, its per-item values are gone, or none of its evaluators has a figure.
    """
    content, items = read(scores)
    model, found = content.get("run") or Path(content["model"]).name, []
    for text, own in items.items():
        name, key, source = text.partition(":")[0], protocol(text).key, Source(text, model, content, data_root)
        if name == "neighbours":
            found.append((out / key, *neighbours(own, source)))
        for panel in PANELS.values():
            if panel.evaluator == name and panel.item in own and (data_root or panel.draw is not cosine_gold):
                found.append((out / f"{key}{panel.ending}", *alone(panel, own, source)))
    if not found:
        raise BadInput(f"{scores}: has nothing to plot: no scores of {', '.join(PLOTTED)} (sts: with --data).")
    return [path for figure in found for path in write(*figure)]


def alone(panel: Panel, items, source):
    """A panel as a figure of its own, and its table."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(panel.width, panel.height), layout="constrained")
        return figure, panel.draw(figure, items, source)


def read(scores: Path) -> tuple[dict, dict[str, dict[str, np.ndarray]]]:
    """The JSON, and its items by evaluator and name."""
    try:
        content = json.loads(read_text(scores))
        kept, _, _ = content["items"], content["model"], content["evaluations"]
    except (json.JSONDecodeError, LookupError, TypeError):
        raise BadInput(f"{scores}: not a score JSON of `csebench evaluate`.") from None
    found = store.items(content, scores)
    if found is None:
        raise BadInput(f"{scores}: its per-item values are gone: no {scores.with_suffix('.items.npz')}, no {kept}.")
    return content, {text: own for text, own in found.items() if text.partition(":")[0] in PLOTTED}


def write(stem: Path, drawn, table: list[list]) -> list[Path]:
    """A figure, or the text of a Markdown page, with its table as CSV; a file is there whole or not at all."""
    import matplotlib

    rows = io.StringIO(newline="")
    csv.writer(rows, lineterminator="\n").writerows([[number(v) for v in row] for row in table])
    found = {".csv": rows.getvalue().encode()}
    if isinstance(drawn, str):
        found[".md"] = drawn.encode()
    else:
        for kind, metadata in METADATA.items():
            made = io.BytesIO()
            with matplotlib.rc_context(STYLE):
                drawn.savefig(made, format=kind, dpi=150, metadata=metadata)
            found[f".{kind}"] = made.getvalue()
    paths = [stem.with_name(stem.name + suffix) for suffix in found]
    for path, content in zip(paths, found.values(), strict=True):
        write_bytes(path, content)
    return paths


def number(x):
    return f"{x:.6g}" if isinstance(x, float | np.floating) else x


# ---------------------------------------------------------------- panels


def points(axes, x, y, place=0, **more):
    """A cloud, in the colour and marker of its place; as pixels also in the SVG, or it would have megabytes."""
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place // len(COLOURS) % len(MARKERS)]
    more = {"c": colour, "marker": marker, "s": 9, "alpha": 0.5, "linewidths": 0, "rasterized": True} | more
    return axes.scatter(x, y, **more)


def cosine_gold(figure, items, source):
    """miCSE Figure 7: STS-B's test pairs."""
    from csebench.data.sts import read_sts
    from csebench.model.metrics import spearman
    from csebench.score.evaluate import data_sha256

    wanted = next(e["data_sha256"] for e in source.content["evaluations"] if e["evaluator"] == "sts")
    if data_sha256(protocol("sts"), source.data_root) != wanted:
        raise BadInput(f"{source.data_root}: not the data that was scored.")
    cosine, gold = items["STS-B/test"], read_sts(source.data_root, "STS-B")[0].gold
    axes = figure.subplots()
    points(axes, gold, cosine, c=gold, cmap="cividis", alpha=0.7)
    axes.set(xlabel="gold score of the pair (0 to 5)", ylabel="cosine of the pair (−1 to 1)")
    axes.set_title(f"{source.model}\nSTS-B test, Spearman {100 * spearman(cosine, gold):.2f}")
    return [["gold", "cosine"], *zip(gold, cosine, strict=True)]


def clusters(figure, items, source):
    """InforMin-CL Figure 2, MSSE Figure 4: the same points by cluster and by label."""
    shown, at, dataset = items["shown"], items["coordinates"], source.text.split(":")[1]
    cluster, label = items["cluster"][shown], items["label"][shown]
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, groups, by in zip(axes, (cluster, label), ("cluster of k-means", "label"), strict=True):
        for place, group in enumerate(np.unique(groups)):
            of = groups == group
            points(ax, *at[of].T, place, label=str(group))
            if groups is cluster:
                box = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.6}
                ax.text(*np.median(at[of], axis=0), str(group), fontsize=7, ha="center", va="center", bbox=box)
        ax.set(xlabel="t-SNE dimension 1 (no unit)", title=f"by {by}")
    axes[0].set_ylabel("t-SNE dimension 2 (no unit)")
    axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, markerscale=2, fontsize=8)
    count = f"{len(shown):,} of {len(items['cluster']):,} sentences"
    purity = 100 * store.value(source.content, dataset, "purity")
    figure.suptitle(f"{source.model}\n{dataset}: {count}, purity {purity:.2f} %")
    rows = zip(shown, *at.T, cluster, label, items["text"][shown], strict=True)
    return [["sentence", "x", "y", "cluster", "label", "text"], *rows]


def attention_similarity(figure, items, source):
    """miCSE Figure 5."""
    groups = {g: items[f"similarity/{g}"] for g in ("negative", "positive")}
    heading = "pairs of dropout views: same sentence, two sentences"
    return clouds(figure, groups, "similarity", source, heading, "cosine of the pair (−1 to 1)", MI)


def attention_syntax(figure, items, source):
    """miCSE Figure 6."""
    groups = {g: items[f"syntax/{g}"] for g in ("non-identical", "identical")}
    centres = [points.mean(0) for points in groups.values()]
    groups = {g: own - other for (g, own), other in zip(groups.items(), reversed(centres), strict=True)}
    labels = ("cosine of the pair, less that of the other centroid", f"{MI},\nless that of the other centroid")
    return clouds(figure, groups, "syntax", source, "negative pairs by dependency tree", *labels)


def clouds(figure, groups, task, source, heading, x, y):
    axes, centres = figure.subplots(), []
    for place, (group, own) in enumerate(groups.items()):
        points(axes, *own.T, place, label=f"{group} ({len(own):,} pairs)", alpha=0.35)
        centres.append(own.mean(0))
        axes.plot(*centres[-1], "o", c=COLOURS[place], ms=10, mec="black", mew=1.5, zorder=3)
    axes.annotate("", *centres, arrowprops={"arrowstyle": "<->", "linewidth": 1.5, "shrinkA": 6, "shrinkB": 6})
    distance = store.value(source.content, task, "distance")
    axes.set(xlabel=x, ylabel=y, title=f"{source.model}: centroids {distance:.3f} apart\n{heading}")
    axes.legend(frameon=False, loc="best", markerscale=2)
    rows = [[group, *point] for group, own in groups.items() for point in own]
    return [["pair", "cosine", "mutual_information_nats"], *rows]


def attention_histograms(figure, items, source):
    """miCSE Figure 8."""
    from matplotlib.colors import LogNorm

    joint, edges, names = (items[f"histogram/{name}"] for name in ("joint", "edges", "slices"))
    columns = min(4, len(joint))
    axes = figure.subplots(-(-len(joint) // columns), columns, squeeze=False)
    norm = LogNorm(joint[joint > 0].min(), joint.max())
    for ax, name, own, share in zip(axes.flat, names, edges, joint, strict=True):
        mesh = ax.pcolormesh(own, own, np.ma.masked_equal(share.T, 0), norm=norm, cmap="cividis", rasterized=True)
        ax.set_title(name, fontsize=8)
        ax.set_aspect("equal")
    figure.colorbar(mesh, ax=axes, label="share of the slice's entries", shrink=0.8)
    figure.supxlabel("ln of the attention weight (no unit), view 1", fontsize=9)
    figure.supylabel("ln of the attention weight (no unit), view 2", fontsize=9)
    shared = store.value(source.content, "histogram", "mutual information")
    figure.suptitle(f"{source.model}\njoint attention of two dropout views, mutual information {shared:.3f} nats")
    rows = [[names[s], *edges[s, i : i + 2], *edges[s, j : j + 2], joint[s, i, j]] for s, i, j in np.argwhere(joint)]
    return [["slice", "view1_from", "view1_to", "view2_from", "view2_to", "share"], *rows]


def neighbours(items, source):
    """MSSE Table 8, with what the paper prints beside it."""
    page, rows = [f"# Nearest captions of Flickr30k: {source.model}", ""], []
    for query, found, cosines, (rankcse, msse) in zip(
        *(items[name] for name in ("queries", "neighbours", "cosines", "published")), strict=True
    ):
        page += [
            f"Query: {query}",
            "",
            f"| | {source.model} | cosine | RankCSE (paper) | MSSE (paper) |",
            "|-" * 5 + "|",
        ]
        for place, own in enumerate(zip(found, cosines, rankcse, msse, strict=True), 1):
            rows.append([query, place, *own])
            cells = (f"#{place}", own[0], f"{own[1]:.3f}", *own[2:])
            page.append("| " + " | ".join(v.replace("|", "\\|") for v in cells) + " |")
        page.append("")
    return "\n".join(page), [["query", "place", "caption", "cosine", "rankcse_paper", "msse_paper"], *rows]


PANELS = {  # by the kind of a paper's figure (csebench/plan/papers.py)
    "attention_histograms": Panel(attention_histograms, "attention", "histogram/joint", ".histograms", 9.6, 7),
    "attention_similarity": Panel(attention_similarity, "attention", "similarity/positive", ".similarity", 5.2, 4.6),
    "attention_syntax": Panel(attention_syntax, "attention", "syntax/identical", ".syntax", 5.2, 4.6),
    "clusters": Panel(clusters, "clusters", "coordinates", "", 10.8, 4.8),
    "cosine_gold": Panel(cosine_gold, "sts", "STS-B/test", ".cosine-gold", 5.2, 4.2),
}
PLOTTED = sorted({panel.evaluator for panel in PANELS.values()} | {"neighbours"})
