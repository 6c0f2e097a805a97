"""The folder of HTML: whole, the same bytes from the same scores, escaped."""

import re
import shutil
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from made_up import clear, made_up
from score_files import PROVENANCE, edit_score_file, write_scores

from csebench.base.files import with_digest, write_json
from csebench.plan import grids, targets
from csebench.report import csv_tables, html, html_cells, printed_spread, view
from csebench.report.audit import Finding, Place
from csebench.report.others import Spread
from csebench.report.cells import grid_view

NASTY = 'SimCSE <i>&"x"</i>'
ROWS = [
    {"label": NASTY, "run": {"method": "simcse"}, "values": ["70.00±1.00", "76.15"]},
    {"label": "Mirror", "run": {"method": "mirror_bert"}, "from": "<them>", "values": ["60.00", "61.00"]},
    {"label": "CT", "run": {"method": "ct"}, "note": "Of `them`.", "values": ["68.46", None]},
    {"label": "chance", "run": {"method": "random"}, "values": [None, None]},
    {"label": "Elsewhere", "missing": "no <code>", "values": ["1.00", None]},
]
AVERAGE = {"label": "Avg.", "task": "Avg."}
TABLE = {
    "title": "Scores < 100",
    "columns": [{"label": "A & B", "task": "STS12", "size": "10%"}, AVERAGE],
    "notes": ["A `note`."],
    "rows": [{"source": "measured", **row} for row in ROWS],
}
SETTINGS = {"kind": "settings", "title": "Settings", "columns": [{"label": "SimCSE", "run": {"method": "simcse"}}]}
SETTINGS |= {"rows": [{"label": "batch", "param": "batch_size", "values": ["65"]}]}
DRAWN = {"label": "SimCSE", "run": {"method": "simcse"}, "source": "measured", "values": [None]}
CLAIM = {"section": "5", "table": "2", "columns": ["Avg."]}
PAPER = {
    "name": "made_up",
    "title": "A <paper>",
    "url": "https://example.org/paper",
    "tables": {"2": TABLE, "10": SETTINGS},
    "figures": {"3": {"kind": "bars", "axis": "Spearman", "title": "F", "columns": [AVERAGE], "rows": [DRAWN]}},
    "claims": [
        CLAIM | {"quote": "better <by far>", "row": NASTY, "versus": ["Mirror"]},
        CLAIM | {"quote": "no", "row": "Mirror", "versus": [NASTY]},
    ],
}
EVIDENCE = """\
who: A <reader>
repository: somebody/simcse
commit: 0123456789abcdef
path: README.md
date: 2023-01-01
experiments:
  - method: simcse
    encoder: bert-base
    comparable: true
    runs:
      - {seed: 1, scores: {Avg.: 74.00, stsb_dev: 80.00}}
      - {seed: 2, scores: {Avg.: 75.00, stsb_dev: 81.00}}
      - {seed: 3, scores: {Avg.: 77.00, stsb_dev: 82.00}}
"""
METHODS = (
    "{encoders: {bert-base: BERT-base}, methods: {simcse: {title: SimCSE, printed: {bert-base: {value: 76.25}}}}}"
)
# Of both columns by row, a list has one number a seed; Mirror's are of an older version, one seed of it is missing.
MEASURED = {
    NASTY: ([0.70, 0.71, 0.705], [0.755, 0.76, 0.765]),
    "Mirror": ([0.80, 0.81], [0.81, 0.82]),
    "chance": ([0.01, 0.02, 0.03], [0.01, 0.02, 0.03]),
}
PAGES = ("index", "evidence", "made_up", "methods", "variants", "claims", "audit")


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory):
    """The current folder: one made-up paper at scales `paper`, which has scores, and `mini`, which has none."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "evidence").mkdir()
    for name, text in (("somebody", EVIDENCE), ("methods", METHODS), ("checkpoints", "checkpoints: []")):
        (folder / "evidence" / f"{name}.yaml").write_text(text)
    findings = [
        Finding("wrong sum", "notable", (Place("made_up", "table2"),), "is <b>not</b> one"),
        Finding("found by reading", "minor", (Place("made_up", "Sec. 1"), Place("Elsewhere", "App. A")), "x"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html.audit, "findings", lambda: findings)
        spread = Spread(std=0.4, n=50, method="simcse", source="made-up")
        patch.setattr(printed_spread, "seed_spread", lambda *_: spread)
        made_up(folder, patch, PAPER, name="paper", purpose="a <made-up> scale.")
        scale = yaml.safe_load((folder / "config" / "paper.yaml").read_text())
        (folder / "config" / "mini.yaml").write_text(yaml.safe_dump(scale | {"scale": "mini"}))
        clear()
        write_results()
        clear()
        yield folder
    clear()


def write_results():
    """Scores, a figure's files and the tests between rows, as the harness would write them."""
    for cells in grids.plan_grid("made_up", "table2", "paper"):
        label = cells[0].row.label
        for cell, values in zip(cells, MEASURED.get(label, ()), strict=False):
            for spec, value in zip(cell.specs, values, strict=False):
                made = spec.model_copy(update={"method_version": 0}) if label == "Mirror" else spec
                write_scores(made, "sts", "paper", [(cell.task, cell.metric, value)])
                made_by = PROVENANCE | {"processor": "a <processor>"}
                path = targets.score_path(made.run_id, "sts", "paper")
                edit_score_file(path, lambda content, made_by=made_by: content.update(provenance=made_by))
    for ending in html.PICTURES:
        path = targets.grid_path("made_up", "figure3", "paper", ending)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    pair = {"a": 0, "b": 1, "mean": -5.75, "p": 0.01, "holm": 0.02, "seeds": 2, "item_variance": 0.04}
    own = {"order": [0, 1], "pairs": [pair], "letters": {"0": "a", "1": "b"}}
    path = targets.grid_path("made_up", "table2", "paper", "items.json")
    write_json(path, with_digest({"comparisons": {"Avg.": own}}))


@pytest.fixture(scope="module")
def index(project):
    return html.write_site("paper")


def files(index: Path) -> dict[str, bytes]:
    return {str(p.relative_to(index.parent)): p.read_bytes() for p in sorted(index.parent.rglob("*")) if p.is_file()}


class Links(HTMLParser):
    """What a page links to, what it loads, and the names in it; refuses a tag that another closes."""

    VOID = ("meta", "link", "img", "source", "input", "br")

    def __init__(self, text: str):
        super().__init__()
        self.links, self.loads, self.ids, self.open = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        own = dict(attributes)
        self.ids += [own["id"]] if "id" in own else []
        self.links += [own["href"]] if tag == "a" else []
        self.loads += [own["href"]] if tag == "link" else [own[name] for name in ("src", "srcset") if name in own]
        self.open += [] if tag in self.VOID else [tag]
        assert tag != "img" or own["alt"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())


@pytest.mark.parametrize("scale", ["paper", "mini"])
def test_every_link_resolves_and_nothing_is_loaded_from_elsewhere(scale):
    """With and without scores."""
    site = files(html.write_site(scale))
    pages = {name: Links(content.decode()) for name, content in site.items() if name.endswith(".html")}
    assert {f"{name}.html" for name in PAGES} == set(pages)
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            if not link.startswith("https://"):
                file, _, place = re.sub(r"\?[^#]*", "", link).partition("#")  # without the state of a filter
                assert (file or name) in site, link
                assert not place or place in pages[file or name].ids, (name, link)
        assert all(load == "data:," or load in site for load in page.loads), name
    assert "url(" not in site["style.css"].decode()
    assert not re.search(r"fetch\(|XMLHttp|import|https?:", site["script.js"].decode())


def test_same_scores_same_bytes(index):
    first = files(index)
    (index.parent / "left-over.html").write_text("of another version")
    clear()
    assert files(html.write_site("paper")) == first


def test_a_failure_leaves_the_old_folder(index, monkeypatch):
    def interrupt(content):
        raise KeyboardInterrupt

    first = files(index)
    monkeypatch.setattr(html, "index_values", interrupt)
    with pytest.raises(KeyboardInterrupt):
        html.write_site("paper")
    assert files(index) == first
    assert [path.suffix for path in index.parent.parent.glob(".html*")] == [".lock"]


def test_a_link_stays_and_its_folder_is_replaced(project):
    link, folder = Path("results/mini/html"), project / "site"
    shutil.rmtree(link, ignore_errors=True)
    folder.mkdir()
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(folder)
    for _ in range(2):
        html.write_site("mini")
    assert link.is_symlink() and (folder / "index.html").exists()
    link.unlink()


def test_everything_is_escaped(index):
    text = "".join(content.decode() for name, content in files(index).items() if name.endswith(".html"))
    for raw in ("<i>", "<b>not", "<paper>", "<made-up>", "<processor>", "<them>", "no <code>", "<by far>", "<reader>"):
        assert raw not in text, raw
    for escaped in ("SimCSE &lt;i&gt;&amp;&#34;x&#34;&lt;/i&gt;", "A &amp; B", "is &lt;b&gt;not", "<code>them</code>"):
        assert escaped in text, escaped
    assert "<a" not in html.inline("[text](javascript:alert)")


def test_a_row_can_be_copied_as_csv_and_latex(index):
    text = index.with_name("made_up.html").read_text()
    detail = unescape(text.partition('<div class="detail" id="table2-r1">')[2].partition("</div>")[0])
    head, *lines = re.search(r"CSV</summary><pre>(.*?)</pre>", detail, re.DOTALL)[1].strip().split("\n")
    assert head == ",".join(csv_tables.CELLS)
    assert [line.split(",")[3:7] for line in lines] == [
        ["Mirror", "A & B", "60.0", ""],
        ["Mirror", "Avg.", "61.0", ""],
    ]
    assert re.search(r"Mirror +& 80.50 \$\\pm\$ 0.71 +& 81.50 \$\\pm\$ 0.71", detail)
    assert "A \\& B" in detail and "\\bottomrule" in detail


@pytest.mark.parametrize("letters, significant", [({"0": "a", "1": "b"}, True), ({"0": "ab", "1": "b"}, False)])
def test_the_best_is_significant_where_the_tests_tell_it_from_all_others(letters, significant):
    compared = replace(grid_view("made_up", "table2", "paper"), comparisons={"Avg.": {"letters": letters}})
    cell = compared.rows[1][1]
    assert html_cells.significantly_best(compared, 1, replace(cell, best=True)) is significant
    assert not html_cells.significantly_best(compared, 1, cell), "of an older version"
    assert not html_cells.significantly_best(compared, 0, compared.rows[0][1]), "not the best"


def test_a_run_that_lacks_the_value_is_not_outdated(monkeypatch):
    """It is counted as missing, and `0 of 3 runs scored, 3 of them †` contradicts itself."""
    content = {"scores": [{"task": "Avg.", "subset": "another", "metric": "spearman", "value": 0.5}]}
    monkeypatch.setattr(view, "shown_score", lambda *_: (content, True))
    clear()
    assert grid_view("made_up", "figure3", "mini").outdated == 0
    clear()
