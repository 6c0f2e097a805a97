"""The command line: names as people type them, help, JSON, and how it ends in a pipe."""

import io
import json
import os
import re
import shlex
import subprocess
import sys

import pytest

from csebench import cli
from csebench.base.errors import unknown
from csebench.base.project import ROOT
from csebench.cli import run, verbs
from csebench.data import preflight
from csebench.plan import catalog, cli_spec

VERBS = next(action for action in verbs.parser()._actions if action.choices).choices
SIMCSE = ("SimCSE (Gao et al., 2021)", 76.15, "rerun", 50)  # miCSE's Table 1


def printed(capsys, *arguments):
    assert cli.main([*arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_help_explains_every_option_and_its_examples_can_be_typed(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for action in (action for action in VERBS[verb]._actions if action.dest != "help"):
        has_default = action.option_strings and action.default not in (None, [], "==SUPPRESS==")
        assert action.help and (not has_default or "(default: " in action.help)
    examples = VERBS[verb].get_default("examples")
    assert examples and all(example in VERBS[verb].format_help() for example in examples)
    for example in examples:
        program, *arguments = shlex.split(example)
        assert program == "csebench" and arguments[0] == verb
        verbs.parser().parse_args(arguments)


FIRST_TABLES = sum("1" in catalog.paper(name).tables for name in catalog.paper_names())
NAMES = {"micse": ["method", "paper"], "beir:scifact": ["evaluator"], "table1": ["table"] * FIRST_TABLES}


@pytest.mark.parametrize("name", NAMES)
def test_show_describes_all_that_has_a_name(name, capsys):
    assert [thing["what"] for thing in json.loads(printed(capsys, "show", name, "--json"))] == NAMES[name]
    assert printed(capsys, "show", name)


@pytest.mark.parametrize(("name", "near"), [("InforMin-CL", "informin_cl"), ("micse/tabel2", "micse/table2")])
def test_show_suggests_the_name_that_is_near(name, near, capsys):
    assert cli.main(["show", name]) == 2
    assert f"unknown name '{name}'. Did you mean '{near}'" in capsys.readouterr().err


def test_near_names_are_suggested_and_few_names_listed():
    known = [f"table{n}" for n in range(13, 0, -1)]
    assert str(unknown("table", "tabl2", known, hint="See there.")).endswith("Did you mean 'table2'? See there.")
    assert "Did you mean 'table2'? Known: table2, table3, " in str(unknown("table", "tabl2", known[:12]))


def test_a_model_is_named_as_an_encoder_is(tmp_path, monkeypatch):
    ref = next(ref for ref in catalog.scale("paper").encoders.values())
    short = ref.name.rpartition("/")[2]
    assert cli_spec.find_model(ref.name) == cli_spec.find_model(short) == f"{ref.name}@{ref.revision}"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "simcse-0123456789" / "model").mkdir(parents=True)
    assert cli_spec.find_model("simcse-0123456789") == "runs/simcse-0123456789/model"
    for name in ("runs", "owner/model", "owner/model@main"):
        assert cli_spec.find_model(name) == name


def test_a_page_is_named_by_its_path_too(capsys):
    by_name = printed(capsys, "render", "claims", "--scale", "smoke")
    assert by_name == printed(capsys, "render", "results/smoke/claims.md") and by_name.startswith("# ")


LISTINGS = """plan micse --runs --scale paper; papers; methods; evaluators; check micse/table2; audit
power micse/table2 --scale mini; power claims; status micse; compare micse/table2; claims micse
compare micse/table2 miCSE AMI+SimCSE; show micse/table2; show ami; show micse/table1 --row SimCSE"""
NARROW = ("papers", "plan micse --runs --scale paper", "show micse/table2")  # all are printed by the same functions
WITHOUT_SCALE = ("papers", "methods", "evaluators", "audit")


@pytest.mark.parametrize("command", [*map(str.strip, LISTINGS.replace("\n", ";").split(";"))])
def test_listings_fit_80_columns_and_name_their_scale_first(command, capsys, monkeypatch):
    """But for an address that is longer; a narrower terminal is met, too, unless a word is as wide."""
    monkeypatch.setattr(preflight, "remote_size", lambda need: 1)
    for columns in (80, 60) if command in NARROW else (80,):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert cli.main(command.split()) == 0
        lines = capsys.readouterr().out.splitlines()
        assert not [line for line in lines if len(line) > columns and " " in line.strip()]
        assert command.startswith(WITHOUT_SCALE) or re.search(r"\bscale \w+", lines[0], re.IGNORECASE)


def test_what_is_behind_a_cell(capsys):
    """Values by seed with their runs, the printed value and others' runs, for people and as JSON."""
    command = ["show", "micse/table1", "--row", "SimCSE", "--column", "Avg."]
    (cell,) = json.loads(printed(capsys, *command, "--json"))
    assert (cell["row"], cell["published"], cell["source"], cell["others"]["n"]) == SIMCSE
    assert cell["ours"] == pytest.approx(sum(cell["values"].values()) / len(cell["values"]))
    text = printed(capsys, *command)
    assert all(f"{seed}  {value:.2f}  simcse-" in text for seed, value in cell["values"].items())
    assert all(run in text for run in cell["runs"].split()) and "76.15" in text and "hppRC" in text
    assert cli.main(["show", "micse/table1", "--row", "nothing"]) == 2


def test_claims_of_a_table_are_those_about_it(capsys):
    """A claim whose size is off says so, as claims.md does: miCSE's text states +3.94 over SimCSE, its table +1.98."""
    rows = json.loads(printed(capsys, "claims", "micse/table1", "--json"))
    assert {row["paper"] for row in rows} == {"micse"} and all("table1" in row["place"] for row in rows)
    (verdict,) = {row["printed numbers"] for row in rows if "(+3.94)" in row["claim"]}
    assert verdict == "not shown, of another size"


def test_a_claim_is_shown_by_its_words_with_its_numbers(capsys):
    (claim,) = json.loads(printed(capsys, "show", "up to (+5.91)", "--json"))
    (part,) = claim["parts"]
    assert (claim["what"], claim["place"], claim["printed numbers"]) == ("claim", "table2", "supported")
    assert max(c["difference"] for c in part["printed"]["contrasts"]) == pytest.approx(5.91)
    assert "(claimed: up to" in printed(capsys, "show", "up to (+5.91)")


def test_rows_are_compared_by_the_names_that_pages_print(capsys):
    assert "miCSE" in printed(capsys, "compare", "micse/table2", "miCSE", "SimCSE")
    assert cli.main(["compare", "micse/table2", "miCSE", "Sim"]) == 2
    assert "0 rows have the label 'Sim'; rows: CT (Carlsson et al., 2021), " in capsys.readouterr().err


def test_a_figure_without_data_is_answered_with_the_reason(capsys):
    assert cli.main(["render", "micse/figure6", "--scale", "mini"]) == 2
    assert "the runs have no scores of the task syntax" in capsys.readouterr().err


def test_findings_of_a_target_are_those_about_it(capsys):
    def findings(*targets):
        return json.loads(printed(capsys, "audit", *targets, "--json"))

    of_paper, of_table = findings("micse"), findings("micse/table2")
    assert all("miCSE" in row["place"] for row in of_paper)
    assert any("Eq. " in row["place"] for row in of_paper)  # the text of the paper, too
    assert all(row in of_paper for row in of_table) and len(of_table) < len(of_paper)
    assert any(row["place"] == "InfoCSE Tables 5 and 8" for row in findings("infocse/table8"))
    assert len(of_paper) < len(findings()) == len(findings("all"))


def test_scores_are_printed_in_percent(capsys):
    row = {"evaluator": "sts", "protocol": "p", "task": "STS12", "metric": "spearman"}
    run.show_scores([row | {"subset": subset, "value": 0.78134} for subset in ("all", "printed", "headlines")])
    assert capsys.readouterr().out.count("78.13  %") == 2


def test_the_shell_completes_names(tmp_path):
    pytest.importorskip("argcomplete")
    code = "import sys; sys.argv = ['csebench']; from csebench.cli import main; main()"
    line, out = "csebench show micse/table", tmp_path / "out"
    env = os.environ | {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": " "}
    env["_ARGCOMPLETE_STDOUT_FILENAME"] = str(out)
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True)
    assert out.read_text().split() == [f"micse/table{n}" for n in range(1, 5)]


def test_without_argcomplete_nothing_is_said(monkeypatch, capsys):
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert cli.main(["papers"]) == 0 and capsys.readouterr().err == ""


def test_characters_that_a_terminal_lacks_are_replaced(monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    assert cli.main(["audit", "micse"]) == 0
    stdout.flush()
    assert len(stdout.buffer.getvalue()) > 100


def test_a_reader_that_goes_away_gets_no_traceback():
    code = "import sys; from csebench.cli import main; sys.exit(main(['methods']))"
    first = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first.stdout.close()
    assert first.stderr.read() == b"" and first.wait() == 141
