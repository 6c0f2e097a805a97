"""The folder of HTML: whole, the same bytes from the same scores, escaped; and what its script does, in Chromium."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from score_files import PROVENANCE, scored_by, write_score_file

from csebench.base import caches
from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT
from csebench.plan import catalog, grids, targets
from csebench.report import csv_tables, evidence, evidence_page, html, html_cells, markdown, printed_spread, view
from csebench.report.audit import Finding, Place
from csebench.report.evidence import Spread
from csebench.report.view import grid_view

NASTY = 'SimCSE <i>&"x"</i>'
MADE_BY = PROVENANCE | {"dirty_diff_sha256": "ab" * 32, "processor": "a <processor>"}
COLUMNS = [{"label": "A & B", "task": "STS12", "size": "10%"}, {"label": "Avg.", "task": "Avg."}]
MADE_UP = {
    "name": "made_up",
    "title": "A <paper>",
    "reference": "Somebody & others",
    "url": "https://example.org/paper",
    "tables": {
        "2": {
            "title": "Scores < 100",
            "caption": "Its caption.",
            "columns": COLUMNS,
            "seeds": 3,
            "notes": ["A `note`."],
            "rows": [
                {"label": NASTY, "run": {"method": "simcse"}, "source": "measured", "values": ["70.00±1.00", "76.15"]},
                {"label": "Mirror", "run": {"method": "mirror_bert"}, "source": "copied", "from": "<them>"}
                | {"note": "Of `them`.", "values": ["60.00", "61.00"]},
                {"label": "CT", "run": {"method": "ct"}, "source": "measured", "values": ["68.46", None]},
                {"label": "chance", "run": {"method": "random"}, "source": "measured", "values": [None, None]},
                {"label": "Elsewhere", "missing": "no <code>", "source": "measured", "values": ["1.00", None]},
            ],
        },
        "10": {
            "kind": "settings",
            "title": "Settings",
            "columns": [{"label": "SimCSE", "run": {"method": "simcse"}}],
            "rows": [{"label": "batch", "param": "batch_size", "values": ["65"]}],
        },
    },
    "figures": {
        "3": {
            "kind": "bars",
            "axis": "Spearman",
            "title": "A figure",
            "columns": [COLUMNS[1]],
            "rows": [{"label": "SimCSE", "run": {"method": "simcse"}, "source": "measured", "values": [None]}],
        }
    },
    "claims": [
        {
            "quote": "better <by far>",
            "section": "5",
            "table": "2",
            "row": NASTY,
            "versus": ["Mirror"],
            "columns": ["Avg."],
        },
        {"quote": "no", "section": "abstract", "table": "2", "row": "Mirror", "versus": [NASTY], "columns": ["Avg."]},
    ],
}
SCALE = {
    "purpose": "a <made-up> scale.",
    "data_root": "data/smoke",
    "corpus": "smoke",
    "dev": "stsb-dev-smoke",
    "sizes": {"1%": 96, "10%": 200, "100%": 400},
    "seeds": [1, 2, 3],
    "encoders": {"bert-base": {"name": "encoders/bert-mini-wiki", "revision": "0" * 16}},
    "override": {"steps": 6},
}
# Of both columns by row, a list has one number a seed; Mirror's are of an older version, one seed of it is missing.
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
MEASURED = {
    NASTY: ([0.70, 0.71, 0.705], [0.755, 0.76, 0.765]),
    "Mirror": ([0.80, 0.81, None], [0.81, 0.82, None]),
    "chance": ([0.01, 0.02, 0.03], [0.01, 0.02, 0.03]),
}


def clear():
    caches.clear()


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory):
    """The current folder: one made-up paper at scales `paper`, which has scores, and `mini`, which has none."""
    folder = tmp_path_factory.mktemp("project")
    for name, content in (
        ("papers/made_up", MADE_UP),
        ("config/paper", {"scale": "paper", **SCALE}),
        ("config/mini", {"scale": "mini", **SCALE}),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    (folder / "evidence").mkdir()
    for name, text in (("somebody", EVIDENCE), ("methods", METHODS), ("checkpoints", "checkpoints: []")):
        (folder / "evidence" / f"{name}.yaml").write_text(text)
    (folder / "data").mkdir()
    shutil.copy(ROOT / "data" / "registry.yaml", folder / "data")
    findings = [
        Finding("wrong sum", "notable", (Place("made_up", "table2"),), "is <b>not</b> one"),
        Finding("found by reading", "minor", (Place("made_up", "Sec. 1"), Place("Elsewhere", "App. A")), "x"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html.audit, "findings", lambda: findings)
        patch.setattr(catalog, "ROOT", folder)
        spread = Spread(std=0.4, n=50, method="simcse", source="made-up")
        patch.setattr(printed_spread, "seed_spread", lambda *_: spread)
        patch.chdir(folder)
        clear()
        write_scores()
        clear()
        yield folder
    clear()


@pytest.fixture(scope="module")
def index(project):
    return html.write_site("paper")


@pytest.fixture(scope="module")
def page(index):
    return index.with_name("made_up.html")


def write_scores():
    """Scores, a figure's files and the tests between rows, as the harness would write them."""
    cells = grids.plan_grid("made_up", "table2", "paper")
    for row in (0, 1, 3):
        values = zip(*MEASURED[cells[row][0].row.label], strict=True)
        for number, (sts12, average) in enumerate(values):
            for cell in cells[row]:
                write_score(cell.specs[number], sts12, average, old=row == 1)
    for ending in html.PICTURES:
        path = targets.grid_path("made_up", "figure3", "paper", ending)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    pair = {"a": 0, "b": 1, "mean": -5.75, "p": 0.01, "holm": 0.02, "seeds": 2, "item_variance": 0.04}
    own = {"order": [0, 1], "pairs": [pair], "letters": {"0": "a", "1": "b"}}
    path = targets.grid_path("made_up", "table2", "paper", "items.json")
    write_json(path, with_digest({"comparisons": {"Avg.": own}}))


def write_score(spec, sts12, average, old):
    """Scores of a run; `old`: as a version of the method wrote them that is not the code's."""
    if sts12 is None:
        return
    made = spec.model_copy(update={"method_version": 0}) if old else spec
    path = targets.score_path(made.run_id, "sts", "paper")
    path.parent.mkdir(parents=True, exist_ok=True)
    training = {"provenance": MADE_BY, "best_step": 5, "steps": 6, "best_dev": 0.5}
    row = {"evaluator": "sts", "protocol": "p", "metric": "spearman"}
    scores = [row | {"task": "STS12", "subset": "all", "value": sts12}]
    scores.append(row | {"task": "Avg.", "subset": "printed", "value": average})
    content = {"run": made.run_id, "spec": made.model_dump(), "training": training, "provenance": MADE_BY}
    content |= {
        "scores": scores,
        "evaluations": [scored_by("sts")],
        "items": "gone.npz",
    }
    write_score_file(path, content)


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


def test_every_link_resolves(index):
    check_links(files(index), "index", "evidence", "made_up", "methods", "variants", "claims", "audit")


def check_links(site: dict[str, bytes], *names: str):
    """The site has these pages, and every link of theirs leads somewhere."""
    pages = {name: Links(content.decode()) for name, content in site.items() if name.endswith(".html")}
    assert {f"{name}.html" for name in names} == set(pages)
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            if not link.startswith("https://"):
                file, _, place = re.sub(r"\?[^#]*", "", link).partition("#")  # without the state of a filter
                assert (file or name) in site, link
                assert not place or place in pages[file or name].ids, (name, link)
        assert all(load == "data:," or load in site for load in page.loads), name


def test_nothing_is_loaded_from_elsewhere(index):
    site = files(index)
    assert "url(" not in site["style.css"].decode()
    assert not re.search(r"fetch\(|XMLHttp|import|https?:", site["script.js"].decode())


def test_same_scores_same_bytes(index):
    first = files(index)
    (index.parent / "left-over.html").write_text("of another version")
    clear()
    assert files(html.write_site("paper")) == first
    assert not list(index.parent.parent.glob(".html*"))


def test_a_failure_leaves_the_old_folder(index, monkeypatch):
    first = files(index)

    def interrupt(content):
        raise KeyboardInterrupt

    monkeypatch.setattr(html, "index_values", interrupt)
    with pytest.raises(KeyboardInterrupt):
        html.write_site("paper")
    assert files(index) == first
    assert not list(index.parent.parent.glob(".html*"))


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
    for raw in ("<i>", "<b>not", "<paper>", "<made-up>", "<processor>", "<them>", "no <code>", "<by far>"):
        assert raw not in text, raw
    for escaped in (
        "SimCSE &lt;i&gt;&amp;&#34;x&#34;&lt;/i&gt;",
        "A &amp; B",
        "is &lt;b&gt;not",
        "Of <code>them</code>",
    ):
        assert escaped in text, escaped


def words(text: str) -> str:
    text = re.sub(r'<span class="whole">(.*?)</span>', r"\1", text)  # digits before the decimal point
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


def section(text: str, name: str) -> str:
    return re.search(rf'<section id="{name}">.*?</section>', text, re.DOTALL)[0]


def test_a_table_shows_what_the_view_has(page):
    text = page.read_text()
    table = words(section(text, "table2").partition("</table>")[0])
    for part in (
        "70.50 ± 0.50 70.00 ± 1.00 ✓ ±2.08",
        "76.00 ± 0.50 a 76.15 ✓ ±1.76",
        "81.50 ± 0.71 † b 61.00 1 missing",
        "missing 68.46",
        "chance control 2.00 ± 1.00",
        "Elsewhere ours printed – 1.00 –",
    ):
        assert part in table, part
    assert '<tr class="control">' in text
    details = words(section(text, "table2"))
    for part in (
        "Raised letters: rows that share a letter do not differ significantly at 0.05"
        " (paired over seeds and test items",
        "copied from &lt;them&gt;, 3 runs. Of them",
        "✓ reproduced , ±",
        "runs are missing or stale",
        "Nothing is run here: no &lt;code&gt;.",
        "snakemake -j4 results/paper/made_up/table2.md",
    ):
        assert part in details, part
    assert "batch 64 (65 ≠ )" in words(section(text, "table10"))
    assert 'src="figures/made_up-figure3.svg"' in text
    figure = section(text, "figure3").partition("</table>")[0]
    assert 'class="others"' in figure and "&nbsp;" not in figure, "a line of its own, as none of the row is printed"


def test_all_methods_are_in_the_order_of_the_markdown_page(index):
    methods = grid_view(catalog.SIDE_BY_SIDE, catalog.SIDE_BY_SIDE, "paper")
    text = index.with_name("methods.html").read_text()
    labels = re.findall(r'<th scope="row"><a class="unfolds" href="[^"]*">(.*?)</a>', text)
    assert labels == [methods.grid.rows[row].label for row in markdown.row_order(methods)]
    assert labels[-1].startswith("Control")


def test_every_page_has_a_skip_link_and_every_table_a_caption(index):
    for path in index.parent.glob("*.html"):
        text = path.read_text()
        assert text.index('<a class="skip" href="#main">') < text.index("<nav")
        tables = re.findall(r"<table[^>]*>\s*(<caption>[^<]+</caption>)?", text)
        assert all(tables), path.name


def test_details_are_text_until_they_are_unfolded(page):
    text = page.read_text()
    shown = re.sub(r"<noscript.*?</noscript>", "", text, flags=re.DOTALL)
    assert 'class="detail"' in text and 'class="run"' in text
    assert 'class="detail"' not in shown and 'class="run"' not in shown
    assert text.count("<noscript") == text.count("</noscript>")


def test_a_cell_has_a_spoken_name(page):
    name = "Mirror, Avg.: ours 81.50 ± 0.71, outdated; printed 61.00"
    assert f'href="#table2-r1-c1" aria-label="{name}"' in page.read_text()


def test_a_row_can_be_copied_as_csv_and_latex(page):
    detail = unescape(page.read_text().partition('<div class="detail" id="table2-r1">')[2].partition("</div>")[0])
    head, *lines = re.search(r"CSV</summary><pre>(.*?)</pre>", detail, re.DOTALL)[1].strip().split("\n")
    assert head == ",".join(csv_tables.CELLS)
    assert [line.split(",")[:7] for line in lines] == [
        ["made_up", "table2", "2", "Mirror", "A & B", "60.0", ""],
        ["made_up", "table2", "2", "Mirror", "Avg.", "61.0", ""],
    ]
    assert re.search(r"Mirror +& 80.50 \$\\pm\$ 0.71 +& 81.50 \$\\pm\$ 0.71", detail)
    assert "A \\& B" in detail and "\\bottomrule" in detail


@pytest.mark.parametrize("letters, significant", [({"0": "a", "1": "b"}, True), ({"0": "ab", "1": "b"}, False)])
def test_the_best_is_significant_where_the_tests_tell_it_from_all_others(page, letters, significant):
    compared = replace(grid_view("made_up", "table2", "paper"), comparisons={"Avg.": {"letters": letters}})
    cell = compared.rows[1][1]
    assert html_cells.significantly_best(compared, 1, replace(cell, best=True)) is significant
    assert not html_cells.significantly_best(compared, 1, cell), "of an older version"
    assert not html_cells.significantly_best(compared, 0, compared.rows[0][1]), "not the best"


def test_numbers_are_split_at_the_decimal_point():
    assert html_cells.number_parts("-0.5±0.31") == ("-0", ".5", "± 0.31")
    assert html_cells.number_parts("81") == ("81", "", "")


def test_runs_say_how_they_were_made(page):
    text = page.read_text()
    spec = grids.plan_grid("made_up", "table2", "paper")[0][0].specs[0]
    run = re.search(rf'<details class="run" id="run-{spec.run_id}">.*?</details>', text, re.DOTALL)[0]
    for part in (
        f"csebench work {spec.run_id} --scale paper\ncsebench publish {spec.run_id} sts --scale paper\n",
        f"csebench evaluate --model runs/{spec.run_id}/model --evaluators sts --precision",
        "0123456789abcdef, with changes (sha256 abababababab)",
        "best at step 5 of 6, STS-B dev 50.00",
        "<dd>9.9</dd>",
        "a &lt;processor&gt;, 2 cores",
        "2026-01-01T00:00:00Z, 61 s",
        f"results/paper/scores/{spec.run_id}.sts.json",
    ):
        assert part in run, part
    old = grids.plan_grid("made_up", "table2", "paper")[1][0].specs[0]
    assert f'id="run-{old.run_id}"' in text
    assert f"† shown: <code>{old.model_copy(update={'method_version': 0}).run_id}</code>" in text


def test_overview_claims_and_audit(index):
    overview = words(index.read_text())
    runs = {run for page in targets.pages("paper") for run, _ in page.scores()}
    assert f"9 of {len(runs)} runs scored" in overview
    assert "2 claims judged" in overview
    assert "2 inconsistencies in print" in overview
    assert "2 ✓ reproduced 2 not comparable" in overview
    assert 'made_up.html#table10" title="Table 10: Settings (settings)"' in index.read_text()
    claims_page = index.with_name("claims.html").read_text()
    assert 'data-paper="made_up" data-print="holds"' in claims_page
    assert '<a href="made_up.html#table2">made_up, Table 2</a>' in claims_page
    audit = index.with_name("audit.html").read_text()
    assert '<a href="made_up.html#table2">Table 2</a>' in audit
    assert '<a href="made_up.html">made_up Sec. 1</a>' in audit and "Elsewhere App. A" in audit
    assert re.findall(r"<option>(serious|notable|minor)<", audit) == ["notable", "minor"]
    assert '<option value="made_up">' in audit and '<tbody data-paper="made_up" data-severity=' in audit
    assert html.audit.where_label(Place("made_up", "sec. 1 on table2")) == "sec. 1 on Table 2"


def test_the_overview_leads_with_others_runs(index):
    text = index.read_text()
    assert text.index("figures/evidence.svg") < text.index('id="coverage"')
    assert "1 of 3 runs reach the printed 76.25 ; mean ± sd 75.33 ± 1.53" in words(text)
    assert index.with_name("figures").joinpath("evidence.svg").read_bytes().startswith(b"<?xml")


def test_the_page_of_others_runs_has_its_sections(index):
    text = index.with_name("evidence.html").read_text()
    headings = re.findall("<h2>(.*?)</h2>", unescape(text))
    assert headings == [section.heading for section in evidence_page.sections() if section.heading]
    assert '<a href="https://github.com/somebody/simcse/tree/0123456789abcdef">somebody/simcse</a>' in text
    assert "A &lt;reader&gt;" in text
    assert "<em>Verdict</em>" in text and "*" not in words(text)
    for name in ("evidence", "evidence-selection"):
        assert f'<img src="figures/{name}.svg"' in text
        assert index.with_name("figures").joinpath(f"{name}.csv").exists()


def test_without_evidence_the_overview_starts_with_ours(index, monkeypatch):
    monkeypatch.setattr(evidence, "sweeps", lambda: [])
    templates = html.page_templates(html.collect_content("mini"))
    assert "evidence" not in templates
    text = html.template_environment("mini").get_template("index.html").render(here="index", **templates["index"][1])
    assert "evidence" not in text


def test_no_scores_at_all(project):
    index = html.write_site("mini")
    assert index == Path("results/mini/html/index.html")
    assert grid_view("made_up", "table2", "mini").state == "missing"
    text = index.with_name("made_up.html").read_text()
    assert "Nothing to draw: no scores yet." in text
    assert "Not comparable with the published numbers" in text
    assert "<img" not in text
    assert "No finding yet: none of the" in index.read_text()


def test_a_study_has_its_answers_and_its_pages(project):
    site = files(html.write_site("mini"))
    overview = site["index.html"].decode()
    assert "Does training beat the untrained encoder?" in words(overview)
    assert 'From <a href="methods.html">all methods</a>' in overview
    check_links(site, "index", "evidence", "made_up", "methods", "variants", "claims", "audit")


def test_links_of_the_markdown_pages_lead_to_the_same_place():
    assert html.site_link("methods.md") == "methods.html"
    assert html.site_link("micse/figure4.svg") == "micse.html#figure4"
    assert html.site_link("https://example.org/a.md") == "https://example.org/a.md"
    assert "<a" not in html.inline("[text](javascript:alert)")


def test_a_run_that_lacks_the_value_is_not_outdated(monkeypatch):
    """It is counted as missing, and `0 of 3 runs scored, 3 of them †` contradicts itself."""
    content = {"scores": [{"task": "Avg.", "subset": "another", "metric": "spearman", "value": 0.5}]}
    monkeypatch.setattr(view, "shown_score", lambda *_: (content, True))
    clear()
    assert grid_view("made_up", "figure3", "mini").outdated == 0
    clear()


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb` (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["ground", "raised"])
def test_text_has_the_contrast_that_wcag_asks_for(scheme, ground):
    blocks = re.findall(r":root \{(.*?)\}", (html.TEMPLATES / "style.css").read_text(), re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#\w{6});", blocks[scheme == "dark"]))
    for text in ("text", "faint", "link", "good", "bad", "near"):
        low, high = sorted((luminance(colours[text]), luminance(colours[ground])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, text


# ---------------------------------------------------------------- the script, in a browser


@pytest.fixture
def browse(tmp_path_factory):
    """The document after a script of ours ran on a page: `browse(page, "click(…)")`."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium on PATH: what the pages' script does is not tested")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update"]

    def run(page: Path, script: str, width: int = 1280) -> str:
        copy = page.with_name("copy.html")
        click = "const click = (what) => document.querySelector(what).click();"
        added = f'<script>addEventListener("load", () => {{ {click} {script} }});</script></body>'
        copy.write_text(page.read_text().replace("</body>", added))
        own = f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"
        command = [chromium, *flags, own, f"--window-size={width},900", "--dump-dom", copy.resolve().as_uri()]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
        finally:
            copy.unlink()

    return run


NOTE = """
    const heads = () => [...document.querySelectorAll("#table2 .scores > tbody > tr > th")];
    const sorts = () => [...document.querySelectorAll("#table2 th[aria-sort]")].map((th) => th.ariaSort);
    const noted = [];
    const note = () => noted.push([heads().map((th) => th.textContent.split(" ")[0]), sorts()]);
    const write = () => { document.body.dataset.noted = JSON.stringify(noted); };
"""


def test_a_head_sorts(page, browse):
    clicks = ["th:nth-child(2)", "th:nth-child(2)", "th:nth-child(3)", "th:first-child"]
    script = "note();" + "".join(f'click("#table2 {head} button"); note();' for head in clicks)
    document = browse(page, NOTE + script + "write();")
    noted = json.loads(unescape(re.search(r'data-noted="(.*?)"', document)[1]))
    printed = ["SimCSE", "Mirror", "CT", "chance", "Elsewhere"]
    assert noted == [
        [printed, ["none", "none"]],
        [["Mirror", "SimCSE", "chance", "CT", "Elsewhere"], ["descending", "none"]],
        [
            ["chance", "SimCSE", "Mirror", "CT", "Elsewhere"],
            ["ascending", "none"],
        ],  # without a value: last, as printed
        [["Mirror", "SimCSE", "chance", "CT", "Elsewhere"], ["none", "descending"]],
        [printed, ["none", "none"]],
    ]


def test_a_cell_unfolds_and_goes_with_its_row(page, browse):
    """Clicked, sorted with its row; a second cell is opened by the space bar, a third one opened and closed."""
    spec = grids.plan_grid("made_up", "table2", "paper")[0][0].specs[0]
    opened = browse(
        page,
        """
        const cell = (name) => document.querySelector(`a.cell[href="#table2-${name}"]`);
        cell("r0-c0").click();
        click("#table2 th:nth-child(2) button");
        cell("r1-c1").dispatchEvent(new KeyboardEvent("keydown", { key: " ", bubbles: true }));
        cell("r2-c0").click();
        cell("r2-c0").click();
        """,
    )
    body = re.search(r'<table class="scores.*?</table>\s*</div>.*?<noscript class="cells', opened, re.DOTALL)[0]
    assert body.count('class="unfolded"') == body.count('aria-expanded="true"') == 2
    _, mirror, simcse = body.split('<tr class="unfolded">')
    assert body.index("Mirror") < body.index(mirror) < body.index("SimCSE") < body.index(simcse)
    for part in ("70.0000", "70.5000", f"csebench work {spec.run_id} --scale paper", "reproduced", "by the authors"):
        assert part in simcse, part


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_the_average_stays_in_sight(index, browse, width):
    """On the page of all methods, whose table has nine columns; the page itself does not scroll to the side."""
    document = browse(
        index.with_name("methods.html"),
        """
        const inside = [...document.querySelectorAll(".pinned")].every((cell) => {
          const { left, right } = cell.getBoundingClientRect();
          return left > 0 && right <= innerWidth;
        });
        const page = document.documentElement.scrollWidth <= innerWidth;
        document.body.dataset.seen = [document.querySelectorAll(".pinned").length > 1, inside, page];
        """,
        width,
    )
    assert 'data-seen="true,true,true"' in document


def test_the_keyboard_enters_a_table(page, browse):
    document = browse(
        page,
        """
        document.querySelector("#table2 .box").focus();
        const places = ["Enter", "ArrowRight", "ArrowDown", "Escape"].map((key) => {
          document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          return document.activeElement.hash || document.activeElement.className;
        });
        document.body.dataset.places = places;
        """,
    )
    assert 'data-places="#table2-r0,#table2-r0-c0,#table2-r1-c0,box"' in document


def test_claims_are_filtered(index, browse):
    page = index.with_name("claims.html")
    choose = "const own = document.querySelector('select[name=print]'); own.value = 'reversed';"
    write = "document.body.dataset.address = location.search;"
    document = browse(page, choose + "own.dispatchEvent(new Event('input', {bubbles: true}));" + write)
    assert 'data-address="?print=reversed"' in document
    shown = [tag for tag in re.findall(r"<tbody [^>]*data-paper[^>]*>", document) if "hidden" not in tag]
    assert len(shown) == 1
    assert 'data-print="reversed"' in shown[0]
