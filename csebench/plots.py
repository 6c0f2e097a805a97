"""Figures from scores and their per-item values: SVG and PNG, what is plotted beside them as CSV. Same scores, same
bytes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from csebench.errors import BadInput, read_text
from csebench.registry import protocol

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
    found = []
    for text, own in items.items():
        source = Source(text, content.get("run") or Path(content["model"]).name, content, data_root)
        for name, *drawn in DRAWERS[text.partition(":")[0]](own, source):
            found.append((out / f"{protocol(text).key}{name}", *drawn))
    if not found:
        raise BadInput(f"{scores}: has nothing to plot: no scores of {', '.join(DRAWERS)} (sts: with --data).")
    return [path for figure in found for path in write(*figure)]


def read(scores: Path) -> tuple[dict, dict[str, dict[str, np.ndarray]]]:
    """The JSON, and its items by evaluator and name."""
    try:
        content = json.loads(read_text(scores))
        kept, _, _ = content["items"], content["model"], content["evaluations"]
    except (json.JSONDecodeError, LookupError, TypeError):
        raise BadInput(f"{scores}: not a score JSON of `csebench evaluate`.") from None
    path = next((p for p in (scores.with_suffix(".items.npz"), Path(kept)) if p.exists()), None)
    if path is None:
        raise BadInput(f"{scores}: its per-item values are gone: no {scores.with_suffix('.items.npz')}, no {kept}.")
    items = {}
    with np.load(path) as archive:
        for name in archive.files:
            text, _, item = name.partition("/")
            if text.partition(":")[0] in DRAWERS:
                items.setdefault(text, {})[item] = archive[name]
    return content, items


def write(stem: Path, drawn, table: list[list]) -> list[Path]:
    """A figure, or the text of a Markdown page, with its table as CSV."""
    import matplotlib

    stem.parent.mkdir(parents=True, exist_ok=True)
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
        path.write_bytes(content)
    return paths


def number(value):
    return f"{value:.6g}" if isinstance(value, float | np.floating) else value


# ---------------------------------------------------------------- figures: name, what is drawn, what is plotted


def panels(columns, rows=1, width=4.6, height=4.2, **shared):
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def points(axes, x, y, place=0, **more):
    """A cloud, in the colour and marker of its place; as pixels also in the SVG, or it would have megabytes."""
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place // len(COLOURS) % len(MARKERS)]
    more = {"c": colour, "marker": marker, "s": 9, "alpha": 0.5, "linewidths": 0, "rasterized": True} | more
    return axes.scatter(x, y, **more)


def cosine_gold(items, source):
    """miCSE Figure 7: STS-B's test pairs."""
    from csebench.data import read_sts
    from csebench.evaluate import data_sha256
    from csebench.metrics import spearman

    if source.data_root is None:
        return
    wanted = next(e["data_sha256"] for e in source.content["evaluations"] if e["evaluator"] == "sts")
    if data_sha256(protocol("sts"), source.data_root) != wanted:
        raise BadInput(f"{source.data_root}: not the data that was scored.")
    cosine, gold = items["STS-B/test"], read_sts(source.data_root, "STS-B")[0].gold
    figure, ((axes,),) = panels(1, width=5.2)
    points(axes, gold, cosine, c=gold, cmap="cividis", alpha=0.7)
    axes.set(xlabel="gold score of the pair (0 to 5)", ylabel="cosine of the pair (−1 to 1)")
    axes.set_title(f"{source.model}\nSTS-B test, Spearman {100 * spearman(cosine, gold):.2f}")
    yield ".cosine-gold", figure, [["gold", "cosine"], *zip(gold, cosine, strict=True)]


def clusters(items, source):
    """InforMin-CL Figure 2, MSSE Figure 4: the same points by cluster and by label."""
    shown, at, dataset = items["shown"], items["coordinates"], source.text.split(":")[1]
    cluster, label = items["cluster"][shown], items["label"][shown]
    figure, (axes,) = panels(2, sharex=True, sharey=True, width=5.4, height=4.8)
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
    purity = next(s["value"] for s in source.content["scores"] if (s["task"], s["metric"]) == (dataset, "purity"))
    count = f"{len(shown):,} of {len(items['cluster']):,} sentences"
    figure.suptitle(f"{source.model}\n{dataset}: {count}, purity {100 * purity:.2f} %")
    rows = zip(shown, *at.T, cluster, label, items["text"][shown], strict=True)
    yield "", figure, [["sentence", "x", "y", "cluster", "label", "text"], *rows]


def attention(items, source):
    """miCSE Figures 5, 6 and 8."""
    groups = {g: items[f"similarity/{g}"] for g in ("negative", "positive")}
    heading = f"{source.model}\npairs of dropout views: same sentence, two sentences"
    yield ".similarity", clouds(groups, heading, "cosine of the pair (−1 to 1)", MI), cloud_table(groups)
    if "syntax/identical" in items:
        groups = {g: items[f"syntax/{g}"] for g in ("non-identical", "identical")}
        centres = [points.mean(0) for points in groups.values()]
        groups = {g: own - other for (g, own), other in zip(groups.items(), reversed(centres), strict=True)}
        heading = f"{source.model}\nnegative pairs by dependency tree"
        labels = ("cosine of the pair, less that of the other centroid", f"{MI},\nless that of the other centroid")
        yield ".syntax", clouds(groups, heading, *labels), cloud_table(groups)
    yield histograms(items, source)


def clouds(groups, title, x, y):
    figure, ((axes,),) = panels(1, width=5.2, height=4.6)
    centres = []
    for place, (group, own) in enumerate(groups.items()):
        points(axes, *own.T, place, label=f"{group} ({len(own):,} pairs)", alpha=0.35)
        centres.append(own.mean(0))
        axes.plot(*centres[-1], "o", c=COLOURS[place], ms=10, mec="black", mew=1.5, zorder=3)
    axes.annotate("", *centres, arrowprops={"arrowstyle": "<->", "linewidth": 1.5, "shrinkA": 6, "shrinkB": 6})
    axes.set(xlabel=x, ylabel=y, title=title)
    axes.legend(frameon=False, loc="best", markerscale=2)
    return figure


def cloud_table(groups):
    rows = [[group, *point] for group, own in groups.items() for point in own]
    return [["pair", "cosine", "mutual_information_nats"], *rows]


def histograms(items, source):
    from matplotlib.colors import LogNorm

    joint, edges, names = (items[f"histogram/{name}"] for name in ("joint", "edges", "slices"))
    columns = min(4, len(joint))
    figure, axes = panels(columns, -(-len(joint) // columns), 2.5, 2.5)
    norm = LogNorm(joint[joint > 0].min(), joint.max())
    for ax, name, own, share in zip(axes.flat, names, edges, joint, strict=True):
        mesh = ax.pcolormesh(own, own, np.ma.masked_equal(share.T, 0), norm=norm, cmap="cividis", rasterized=True)
        ax.set_title(name, fontsize=8)
        ax.set_aspect("equal")
    figure.colorbar(mesh, ax=axes, label="share of the slice's entries", shrink=0.8)
    figure.supxlabel("ln of the attention weight (no unit), view 1", fontsize=9)
    figure.supylabel("ln of the attention weight (no unit), view 2", fontsize=9)
    figure.suptitle(f"{source.model}\njoint attention of two dropout views")
    rows = [[names[s], *edges[s, i : i + 2], *edges[s, j : j + 2], joint[s, i, j]] for s, i, j in np.argwhere(joint)]
    return ".histograms", figure, [["slice", "view1_from", "view1_to", "view2_from", "view2_to", "share"], *rows]


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
    yield "", "\n".join(page), [["query", "place", "caption", "cosine", "rankcse_paper", "msse_paper"], *rows]


DRAWERS = {"attention": attention, "clusters": clusters, "neighbours": neighbours, "sts": cosine_gold}
