"""The command line takes names as people type them, explains itself, and ends well in a pipe."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from statistics import fmean
from unittest.mock import Mock

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
    """Run a command, which must end well, and return what it prints."""
    assert cli.main([*arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_help_explains_every_option_and_its_examples_can_be_typed(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nothing = (None, False, [], "==SUPPRESS==")
    for action in VERBS[verb]._actions:
        if action.dest == "help":
            continue
        assert action.help
        if action.option_strings and action.default not in nothing:
            assert "(default: " in action.help

    text = VERBS[verb].format_help()
    examples = VERBS[verb].get_default("examples")
    assert examples
    for example in examples:
        assert example in text
        program, example_verb, *arguments = shlex.split(example)
        assert program == "csebench"
        assert example_verb == verb
        verbs.parser().parse_args([verb, *arguments])


def test_help_lists_every_verb_once_in_a_line_of_80_columns():
    listed = [name for names in verbs.GROUPS.values() for name in names]
    assert sorted(listed) == sorted(VERBS)
    lines = verbs.parser().format_help().splitlines()
    for verb in VERBS:
        (line,) = [line for line in lines if line.startswith(f"  {verb} ")]
        assert len(line) <= 80


@pytest.mark.parametrize("verb", ["claims", "audit", "methods"])
def test_a_list_can_be_cut(verb, capsys):
    rows = json.loads(printed(capsys, verb, "--json"))
    assert json.loads(printed(capsys, verb, "--json", "--limit", "2")) == rows[:2]
    assert f"The first 2 of {len(rows)} " in printed(capsys, verb, "--limit", "2")


def test_printed_numbers_are_labelled_as_printed(capsys):
    lines = printed(capsys, "show", "micse/table2").splitlines()
    label = next(i for i, line in enumerate(lines) if line.startswith("As printed in the paper"))
    assert "scale" not in " ".join(lines[:label]).lower()
    assert "Our runs, at scale mini: results/mini/micse/table2.md" in lines


def test_plan_gives_the_command_that_starts_what_is_missing(capsys):
    with_work = printed(capsys, "plan", "micse/table2", "--scale", "paper")
    _, commands = with_work.split("To start or resume it:")
    here, on_slurm = commands.replace("\\\n", "").split("On SLURM:\n")
    assert shlex.split(here)[-2:] == ["--", "results/paper/micse/table2.md"]
    assert "scale=paper" in shlex.split(on_slurm)
    assert "--workflow-profile" in shlex.split(on_slurm)

    assert "To start" not in printed(capsys, "plan", "micse/table2", "--scale", "mini")


def test_check_without_a_network_gives_one_reason_and_asks_nobody(capsys, monkeypatch):
    remote_size = Mock()
    monkeypatch.setattr(preflight.hub, "can_be_reached", lambda: False)
    monkeypatch.setattr(preflight, "remote_size", remote_size)
    monkeypatch.setattr(preflight, "files_of", lambda need, scale: [])
    assert cli.main(["check", "micse/table2", "--scale", "paper"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert out.count("cannot be reached") == 1
    assert "google-bert/bert-base-uncased, senteval, wiki: not here" in out
    remote_size.assert_not_called()


def test_show_describes_all_that_has_a_name(capsys):
    described = json.loads(printed(capsys, "show", "micse", "--json"))
    assert [thing["what"] for thing in described] == ["method", "paper"]


def test_a_model_is_named_as_an_encoder_is(tmp_path, monkeypatch):
    ref = next(iter(catalog.scale("paper").encoders.values()))
    short_name = ref.name.rpartition("/")[2]
    pinned = f"{ref.name}@{ref.revision}"
    assert train_options.find_model(ref.name) == pinned
    assert train_options.find_model(short_name) == pinned

    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "simcse-0123456789" / "model").mkdir(parents=True)
    assert train_options.find_model("simcse-0123456789") == "runs/simcse-0123456789/model"
    for name in ("./runs", "owner/model", "owner/model@main"):
        assert train_options.find_model(name) == name
    assert train_options.find_model("runs") == "./runs"


LISTINGS = [
    "plan micse --runs --scale paper",
    "papers",
    "methods",
    "evaluators",
    "check micse/table2",
    "audit",
    "power micse/table2 --scale mini",
    "power claims",
    "status micse",
    "compare micse/table2",
    "claims micse",
    "compare micse/table2 miCSE SimCSE",
    "show micse/table2",
    "show beir:scifact",
    "show micse/table1 --row SimCSE",
]
# Tried in a narrower terminal, too; all listings are printed by the same functions.
NARROW = ("papers", "plan micse --runs --scale paper", "show micse/table2")
WITHOUT_SCALE = (
    "papers",
    "methods",
    "evaluators",
    "audit",
    "show micse/table2",  # the printed numbers
    "show beir:scifact",
)


@pytest.mark.parametrize("command", LISTINGS)
def test_listings_fit_80_columns_and_name_their_scale_first(command, capsys, monkeypatch):
    """They also fit a narrower terminal. Only a single word, such as an address, may be longer."""
    monkeypatch.setattr(preflight.hub, "can_be_reached", lambda: True)
    monkeypatch.setattr(preflight, "remote_size", lambda need: 1)
    widths = [80, 60] if command in NARROW else [80]
    for width in widths:
        monkeypatch.setenv("COLUMNS", str(width))
        lines = printed(capsys, *command.split()).splitlines()
        assert not [line for line in lines if len(line) > width and " " in line.strip()]
        if command not in WITHOUT_SCALE:
            assert re.search(r"\bscale \w+", lines[0], re.IGNORECASE)


def test_what_is_behind_a_cell(capsys):
    command = ["show", "micse/table1", "--row", "SimCSE", "--column", "Avg."]
    (cell,) = json.loads(printed(capsys, *command, "--json"))
    assert cell["row"] == "SimCSE (Gao et al., 2021)"
    assert cell["published"] == 76.15
    assert cell["source"] == "rerun"
    assert cell["others"]["kind"] == "pooled over sources"
    assert "miCSE-T1" not in cell["others"]["sources"]  # the paper itself
    assert cell["ours"] == pytest.approx(fmean(cell["values"].values()))

    text = printed(capsys, *command)
    for seed, value in cell["values"].items():
        assert f"{seed}  {value:.2f}  simcse-" in text
    for part in (*cell["runs"].split(), "76.15", "hppRC"):
        assert part in text

    assert cli.main(["show", "micse/table1", "--row", "nothing"]) == 2


def test_claims_of_a_table_are_those_about_it(capsys):
    rows = json.loads(printed(capsys, "claims", "micse/table1", "--json"))
    assert {row["paper"] for row in rows} == {"micse"}
    for row in rows:
        assert "table1" in row["place"]


def test_a_claim_is_shown_by_its_words_with_its_numbers(capsys):
    (claim,) = json.loads(printed(capsys, "show", "up to (+5.91)", "--json"))
    assert claim["what"] == "claim"
    assert claim["place"] == "table2"
    assert claim["printed numbers"] == "supported"
    words = printed(capsys, "show", "up to (+5.91)").split()
    assert "(the sentence says up to +5.91)" in " ".join(words)


def test_findings_of_a_target_are_those_about_its_paper(capsys):
    of_table = json.loads(printed(capsys, "audit", "micse/table2", "--json"))
    of_paper = json.loads(printed(capsys, "audit", "micse", "--json"))
    of_all = json.loads(printed(capsys, "audit", "all", "--json"))

    assert of_table == of_paper
    assert 0 < len(of_paper) < len(of_all)
    for row in of_paper:
        assert "miCSE" in row["place"]
    assert any("Eq. " in row["place"] for row in of_paper)  # the text of the paper, too


def test_scores_of_tasks_are_printed_in_percent(capsys):
    row = {
        "evaluator": "sts",
        "protocol": "p",
        "task": "STS12",
        "metric": "spearman",
        "value": 0.78134,
    }
    rows = [row | {"subset": subset} for subset in ("all", "printed", "headlines")]

    run.show_scores(rows)

    assert capsys.readouterr().out.count("78.13  %") == 2


def test_characters_that_a_terminal_lacks_are_replaced(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert cli.main(["audit", "micse"]) == 0
    sys.stdout.flush()
    assert len(sys.stdout.buffer.getvalue()) > 100


def test_a_reader_that_goes_away_gets_no_traceback():
    code = "import sys; from csebench.cli import main; sys.exit(main(['methods']))"
    program = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    program.stdout.close()
    assert program.stderr.read() == b""
    assert program.wait() == 141


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams_end_no_verb(closed, tmp_path):
    """What would be printed there ends up in no file that is opened later."""
    env = os.environ | {"PYTHONPATH": str(ROOT), "CSEBENCH_PROJECT": str(tmp_path)}

    def run_csebench(words):
        command = f"exec {sys.executable} -m csebench {words} {closed}"
        return subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True
        )

    done = run_csebench("new method mine")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr

    refused = run_csebench("shwo")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    if "2>&-" not in closed:
        assert "Did you mean" in refused.stderr
    assert not refused.stdout  # a message goes to no other stream

    files = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert files == ["mine.py"]
    first_line, *_ = (tmp_path / "methods/mine.py").read_text().splitlines()
    assert "csebench" not in first_line


@pytest.mark.parametrize(
    ("target", "scale", "reason"),
    [
        (
            "informin_cl/table3",
            "mini",
            "informin_cl/table3: a table of settings has no scores to compare.",
        ),
        ("informin_cl/table1", "mini", "a table of texts has no scores to compare."),
        ("congen/table1", "mini", "congen/table1: it has no runs"),
        (
            "micse/table2",
            "paper",
            "runs is scored yet; `snakemake -j4 results/paper/micse/table2.md` makes them,",
        ),
        (
            "micse/figure5",
            "mini",
            "it declares no comparisons; name two rows: csebench compare micse/figure5",
        ),
    ],
)
def test_compare_says_why_there_is_nothing(target, scale, reason, capsys):
    out = printed(capsys, "compare", target, "--scale", scale)
    assert reason in " ".join(out.split())


def test_a_file_that_is_missing_gets_a_suggestion(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec_one.json").touch()
    assert cli.main(["train", "spec_on.json", "--out", "run"]) == 2
    assert "spec_on.json: no such file. Did you mean 'spec_one.json'?" in capsys.readouterr().err


def test_compare_says_nothing_of_missing_scores_if_there_are_some(capsys):
    assert "scored yet" not in printed(capsys, "compare", "micse/table2", "--scale", "mini")


@pytest.mark.parametrize(
    "words",
    [
        "compare informin_cl/table3 a b",
        "new method My-Method",
        "power informin_cl/table3 --difference -1",
    ],
)
def test_the_same_input_is_refused_without_asserts(words, tmp_path):
    """`python -O` leaves out every assert."""
    command = [sys.executable, "-O", "-m", "csebench", *words.split()]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_a_folder_that_cannot_be_written_is_said_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # Root may write everywhere; nobody else may.
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


def test_a_text_in_the_place_of_a_number_is_refused():
    spec = next(spec for spec in targets.runs("smoke").values() if spec.method == "simcse")
    changed = spec.model_copy(update={"params": {"steps": "many"}})
    with pytest.raises(BadInput, match="simcse: steps: is 'many', but must be a number"):
        changed.number("steps")
