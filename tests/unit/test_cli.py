"""The command line: names as people type them, help, JSON, and how it ends in a pipe."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from statistics import fmean

import pytest

from csebench import cli
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.cli import run, train_options, verbs
from csebench.data import preflight
from csebench.plan import targets
from csebench.plan.catalog import files as catalog

VERBS = next(action for action in verbs.parser()._actions if action.choices).choices


def printed(capsys, *arguments):
    assert cli.main([*arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_help_explains_every_option_and_its_examples_can_be_typed(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for action in (action for action in VERBS[verb]._actions if action.dest != "help"):
        has_default = action.option_strings and action.default not in (
            None,
            False,
            [],
            "==SUPPRESS==",
        )
        assert action.help and (not has_default or "(default: " in action.help)
    examples = VERBS[verb].get_default("examples")
    assert examples and all(example in VERBS[verb].format_help() for example in examples)
    for example in map(shlex.split, examples):
        assert example[:2] == ["csebench", verb]
        verbs.parser().parse_args(example[1:])


def test_show_describes_all_that_has_a_name(capsys):
    assert [thing["what"] for thing in json.loads(printed(capsys, "show", "micse", "--json"))] == [
        "method",
        "paper",
    ]


def test_a_model_is_named_as_an_encoder_is(tmp_path, monkeypatch):
    ref = next(iter(catalog.scale("paper").encoders.values()))
    for name in (ref.name, ref.name.rpartition("/")[2]):
        assert train_options.find_model(name) == f"{ref.name}@{ref.revision}"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "simcse-0123456789" / "model").mkdir(parents=True)
    assert train_options.find_model("simcse-0123456789") == "runs/simcse-0123456789/model"
    for name in ("./runs", "owner/model", "owner/model@main"):
        assert train_options.find_model(name) == name
    assert train_options.find_model("runs") == "./runs"


LISTINGS = """plan micse --runs --scale paper; papers; methods; evaluators; check micse/table2; audit
power micse/table2 --scale mini; power claims; status micse; compare micse/table2; claims micse
compare micse/table2 miCSE SimCSE; show micse/table2; show beir:scifact; show micse/table1 --row SimCSE"""  # noqa: E501
# all are printed by the same functions
NARROW = ("papers", "plan micse --runs --scale paper", "show micse/table2")
WITHOUT_SCALE = ("papers", "methods", "evaluators", "audit")


@pytest.mark.parametrize("command", [*map(str.strip, LISTINGS.replace("\n", ";").split(";"))])
def test_listings_fit_80_columns_and_name_their_scale_first(command, capsys, monkeypatch):
    """But for an address that is longer; a narrower terminal is met, too, unless a word is as
    wide."""
    monkeypatch.setattr(preflight, "remote_size", lambda need: 1)
    for columns in (80, 60) if command in NARROW else (80,):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert cli.main(command.split()) == 0
        lines = capsys.readouterr().out.splitlines()
        assert not [line for line in lines if len(line) > columns and " " in line.strip()]
        assert command.startswith(WITHOUT_SCALE) or re.search(
            r"\bscale \w+", lines[0], re.IGNORECASE
        )


def test_what_is_behind_a_cell(capsys):
    command = ["show", "micse/table1", "--row", "SimCSE", "--column", "Avg."]
    (cell,) = json.loads(printed(capsys, *command, "--json"))
    assert (
        cell.items()
        >= {
            "row": "SimCSE (Gao et al., 2021)",
            "published": 76.15,
            "source": "rerun",
        }.items()
    )
    assert cell["others"]["n"] == 50 and cell["ours"] == pytest.approx(
        fmean(cell["values"].values())
    )
    text = printed(capsys, *command)
    assert all(f"{seed}  {value:.2f}  simcse-" in text for seed, value in cell["values"].items())
    assert all(part in text for part in [*cell["runs"].split(), "76.15", "hppRC"])
    assert cli.main(["show", "micse/table1", "--row", "nothing"]) == 2


def test_claims_of_a_table_are_those_about_it(capsys):
    rows = json.loads(printed(capsys, "claims", "micse/table1", "--json"))
    assert {row["paper"] for row in rows} == {"micse"} and all(
        "table1" in row["place"] for row in rows
    )


def test_a_claim_is_shown_by_its_words_with_its_numbers(capsys):
    (claim,) = json.loads(printed(capsys, "show", "up to (+5.91)", "--json"))
    assert (claim["what"], claim["place"], claim["printed numbers"]) == (
        "claim",
        "table2",
        "supported",
    )
    assert "(claimed: up to" in printed(capsys, "show", "up to (+5.91)")


def test_findings_of_a_target_are_those_about_its_paper(capsys):
    answers = [
        printed(capsys, "audit", target, "--json") for target in ("micse/table2", "micse", "all")
    ]
    of_table, of_paper, every = map(json.loads, answers)
    assert of_table == of_paper and 0 < len(of_paper) < len(every)
    assert all("miCSE" in row["place"] for row in of_paper)
    assert any("Eq. " in row["place"] for row in of_paper)  # the text of the paper, too


def test_scores_of_tasks_are_printed_in_percent(capsys):
    row = {
        "evaluator": "sts",
        "protocol": "p",
        "task": "STS12",
        "metric": "spearman",
        "value": 0.78134,
    }
    run.show_scores([row | {"subset": subset} for subset in ("all", "printed", "headlines")])
    assert capsys.readouterr().out.count("78.13  %") == 2


def test_characters_that_a_terminal_lacks_are_replaced(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert cli.main(["audit", "micse"]) == 0
    sys.stdout.flush()
    assert len(sys.stdout.buffer.getvalue()) > 100


def test_a_reader_that_goes_away_gets_no_traceback():
    code = "import sys; from csebench.cli import main; sys.exit(main(['methods']))"
    first = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    first.stdout.close()
    assert first.stderr.read() == b"" and first.wait() == 141


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (1, 2), (0, 1, 2)])
def test_closed_streams_end_no_verb(closed, tmp_path):
    """And what is printed there ends up in no file that is opened."""
    shut = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
    for words, code in (("new method mine", 0), ("shwo", 2)):
        command = f"exec {sys.executable} -m csebench {words} {shut}"
        env = os.environ | {"PYTHONPATH": str(ROOT), "CSEBENCH_PROJECT": str(tmp_path)}
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr and (
            "Did you mean" in done.stderr or code == 0 or 2 in closed
        )
        assert not done.stdout or code == 0  # a message goes to no other stream
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine.py"]
    assert "csebench" not in (tmp_path / "methods/mine.py").read_text().splitlines()[0]


def test_compare_says_why_there_is_nothing(capsys):
    for target, words in (
        (
            "informin_cl/table3 --scale mini",
            "informin_cl/table3: a table of settings has no scores to compare.",
        ),
        ("congen/table1 --scale mini", "congen/table1: it has no runs"),
        (
            "micse/table2 --scale paper",
            "runs is scored yet; `snakemake -j4 results/paper/micse/table2.md` makes them.",
        ),
        (
            "micse/figure5 --scale mini",
            "it declares no comparisons; name two rows: csebench compare micse/figure5",
        ),
    ):
        out = " ".join(printed(capsys, "compare", *target.split()).split())
        assert words in out, target
    assert "scored yet" not in printed(capsys, "compare", "micse/table2", "--scale", "mini")


def test_a_file_that_is_missing_gets_a_suggestion(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec_one.json").touch()
    assert cli.main(["train", "spec_on.json", "--out", "run"]) == 2
    assert "spec_on.json: no such file. Did you mean 'spec_one.json'?" in capsys.readouterr().err


def test_the_same_input_is_refused_without_asserts(tmp_path):
    """`python -O` leaves them out."""
    for words in (
        "compare informin_cl/table3 a b",
        "new method My-Method",
        "power informin_cl/table3 --difference -1",
    ):
        command = [sys.executable, "-O", "-m", "csebench", *words.split()]
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True
        )
        assert done.returncode == 2 and b"Traceback" not in done.stderr
    spec = next(spec for spec in targets.runs("smoke").values() if spec.method == "simcse")
    with pytest.raises(BadInput, match="simcse: steps: is 'many', but must be a number"):
        spec.model_copy(update={"params": {"steps": "many"}}).number("steps")


def test_a_folder_that_cannot_be_written_is_said_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # as for everyone but root
    monkeypatch.setattr("csebench.base.files.os.access", lambda *_: False)
    for words in ("new method mine", "csv --scale smoke", "html --scale smoke"):
        assert cli.main(words.split()) == 2
        assert "`csebench init DIR` makes a folder of your own" in capsys.readouterr().err
    for words in (
        "claims micse",
        "audit micse",
        "show micse/table2",
        "render micse/table2 --scale mini",
    ):
        assert cli.main(words.split()) == 0
    assert not list(tmp_path.iterdir())
