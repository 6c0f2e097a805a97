"""Bad input on the command line ends it with exit code 2 and one clear message. Nothing is
written."""

import json
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from made_up import copy_project

from csebench import cli
from csebench.base import caches
from csebench.base.errors import unknown
from csebench.base.project import ROOT
from csebench.plan import targets
from csebench.plan.catalog import files as catalog

SMOKE = ROOT / "data" / "smoke"
CORPUS = SMOKE / "wiki" / "smoke.txt"
TRIPLETS = SMOKE / "nli" / "smoke.csv"
ENCODER = ROOT / "encoders" / "bert-mini-wiki"
FILES = {
    "file": b"x",
    "finished/spec.json": b"{}",
    "damaged/spec.json": b"\xff\0",
    "foreign/model/config.json": b"{}",
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A working directory with files that nothing can use, and a data root that is not there."""
    folder = tmp_path / "here"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CSEBENCH_DATA", "nowhere")
    return folder


@pytest.fixture
def no_torch(monkeypatch):
    """Make it impossible to import torch: input must be refused before it is needed."""
    for module in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, module, None)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of the project's YAML files to damage."""
    copy_project(tmp_path / "project", monkeypatch, "config", "evidence", "papers")
    yield tmp_path / "project"
    caches.clear()


@pytest.fixture
def refused(capsys, here):
    """`refused(arguments, *parts)`: the command ends with 2 and one message that holds all parts,
    and leaves the folder as it was."""
    before = set(here.rglob("*"))

    def refused(arguments, *parts):
        assert cli.main([str(argument) for argument in arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("csebench: ")
        assert err.count("csebench: ") == 1
        for part in parts:
            assert str(part) in err
        # A lock file that nobody holds means nothing.
        after = {path for path in here.rglob("*") if path.suffix != ".lock"}
        assert after == before

    return refused


def training(*more, encoder=ENCODER, corpus=CORPUS, data=SMOKE, method="simcse"):
    """Return the command of a training, with more arguments at its end."""
    words = ["train", "--method", method, "--encoder", encoder, "--corpus", corpus]
    words += ["--data", data, "--out", "out"]
    return [*words, *more]


def evaluation(*more, model=ENCODER):
    return ["evaluate", "--model", model, "--data", SMOKE, "--out", "scores.json", *more]


def setting(*values, **more):
    return training("--set", *values, **more)


def spec(**changed):
    """The command that trains a planned run of SimCSE with other values in its spec.

    Args:
        changed: values by key; a dictionary changes entries of the value that is there.
    """
    planned = [run for run in targets.runs("smoke").values() if run.method == "simcse"]
    content = planned[0].model_dump()
    for key, value in changed.items():
        if isinstance(value, dict):
            content[key] |= value
        else:
            content[key] = value
    return ["train", json.dumps(content), "--corpus", CORPUS, "--out", "out"]


REFUSED = {
    "method": (training(method="simsce"), "unknown method 'simsce'", "'simcse'"),
    "component": (setting("mocco.queue=3"), "unknown component 'mocco'", "'moco'"),
    "variant": (training("--variant", "cod", method="micse"), "variant of micse 'cod'", "'code'"),
    "hyper-parameter": (setting("temprature=0.1"), "--set: simcse: temprature", "'temperature'"),
    "choice of a component of the method": (
        setting("ami.form=papper", method="micse"),
        "ami: form",
        "'paper'",
    ),
    "number that overflows": (setting("clip=1e400"), "clip", "finite number"),
    "seed beside a spec": ([*spec(), "--seed=7"], "--seed: is for --method"),
    "setting beside a spec": ([*spec(), "--set", "clip=1"], "--set: is for --method"),
    "size without a corpus": (
        ["train", "--method", "bert", "--encoder", "bert-mini-wiki", "--size=5", "--out", "out"],
        "bert reads no corpus; leave --size out",
    ),
    "negative seed": (training("--seed=-1"), "--seed", "greater than or equal to 0"),
    "component that the method lacks": (setting("ami.weight=0.1"), "--set ami", "--with ami"),
    "component that the variant lacks": (
        setting("moco.queue=8", "--variant=released", method="micse"),
        "--with moco",
    ),
    "batch of more than the sample": (
        training("--size", "63"),
        "batch_size: 64",
        "the 63 sentences",
    ),
    "size above the corpus": (
        training("--size=41", corpus=TRIPLETS, method="simcse_sup"),
        "holds 40 triplets",
    ),
    "pooler of an evaluation": (
        evaluation("--pooler", "clss"),
        "--pooler",
        "'clss'",
        "Did you mean 'cls'?",
    ),
    "pooler of another library": (evaluation("--pooler", "mean"), "Did you mean 'avg'?"),
    "model": (
        evaluation("--pooler", "cls", model="bert-mini-wik"),
        "Did you mean 'encoders/bert-mini-wiki'",
    ),
    "device": (["plan", "micse/table3", "--device", "a crad"], "Known: AMD", "NVIDIA"),
    "evaluator of a job": (
        ["work", "simcse-0000000000", "--evaluators", "stss"],
        "unknown evaluator 'stss'",
        "'sts'",
    ),
    "name that is not UTF-8": (training(corpus="\udcff.txt"), "'\\udcff.txt': not UTF-8"),
    "name with a NUL": (training(corpus="a\0b"), "cannot be opened", "null byte"),
    "model with a long name": (evaluation(model="x" * 5000), "File name too long"),
    "positives that no method reads": (
        training("--positives", CORPUS),
        f"--positives {CORPUS}",
        "simcse reads none",
    ),
    "corpus that no method reads": (
        training(method="bert"),
        f"--corpus {CORPUS}",
        "bert reads none",
    ),
    "no KEY=VALUE": (setting("steps"), "--set steps", "KEY=VALUE"),
    "second evaluator": (evaluation("--evaluators", "sts,transfr"), "unknown evaluator 'transfr'"),
    "scale of plan": (["plan", "table2", "--scale", "smokee"], "unknown scale 'smokee'", "'smoke'"),
    "table": (["plan", "table99"], "unknown table '99'.", "Known: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,"),
    "name like no other": (["show", "nope"], "unknown name 'nope'. `csebench methods`"),
    "name that is near": (
        ["show", "InforMin-CL"],
        "unknown name 'InforMin-CL'. Did you mean 'informin_cl'",
    ),
    "row": (
        ["compare", "micse/table2", "miCSE", "Sim"],
        "0 rows have the label 'Sim'; rows: CT (Carlsson",
    ),
    "figure without data": (
        ["render", "micse/figure6", "--scale", "mini"],
        "nothing to draw: no scores",
    ),
    "no verb": ([], "csebench show micse/table2"),
    "verb": (["shwo"], "unknown verb 'shwo'. Did you mean 'show'?", "csebench --help"),
    "kind of a new file": (
        ["new", "methd", "mine"],
        "unknown kind 'methd'. Did you mean 'method'?",
        "new --help",
    ),
    "value of an option": (
        ["evaluate", "--device", "cup"],
        "unknown --device 'cup'. Did you mean 'cpu'?",
    ),
    "page": (["render", "claim"], "unknown target 'claim'. Did you mean 'claims'?"),
    "file of a method": (["show", "methods/simsce.py"], "Did you mean 'simcse'?"),
    "file of a paper": (["plan", "papers/micsee.yaml"], "Did you mean 'micse'?"),
    "settings to compare": (
        ["compare", "informin_cl/table3", "a", "b"],
        "a table of settings: it has no scores to compare",
    ),
    "run": (["work", "simcse-0000000000"], "'simcse-0000000000'", "csebench plan all"),
    "half a spec as text": (["train", '{"method": ', "--out", "out"], "spec: not valid JSON"),
    "key of a spec": (spec(sed=3), "spec: sed: unknown key. Did you mean 'seed'?"),
    "type in a spec": (spec(seed=True), "seed", "valid integer"),
    "long value in a spec": (spec(seed="x" * 999), "seed", "valid integer", "x…x"),
    "method of another version": (spec(method_version=99), "method_version", "99"),
    "trainer of another version": (spec(trainer_version=1), "trainer_version", "1"),
    "component of another version": (
        spec(components={"ami": {"version": 99, "params": {}}}),
        "ami.version",
        "99",
    ),
    "component in a spec": (
        spec(components={"ami": {"version": 2, "params": {"wieght": 1}}}),
        "wieght",
        "'weight'",
    ),
    "spec without a corpus": (spec(corpus=None), "corpus: simcse needs one"),
    "spec without a dev set": (spec(dev_sha256=None), "dev_sha256: a trained method needs one"),
    "steps of a spec": (
        spec(params={"steps": 5, "warmup_steps": 6}),
        "warmup_steps: 6",
        "steps, 5",
    ),
    "size of a spec": (spec(corpus={"size": 401}), "401", "400 sentences"),
    "no method": (["train", "--out", "out"], "--method"),
    "no encoder": (["train", "--method", "simcse", "--out", "out"], "--encoder"),
    "no corpus": (
        ["train", "--method", "simcse", "--encoder", ENCODER, "--out", "out"],
        "simcse",
        "--corpus",
    ),
    "corpus that is missing": (training(corpus="nothing.txt"), "nothing.txt: no such file"),
    "folder as corpus": (training(corpus=SMOKE), f"{SMOKE}: cannot be opened: Is a directory"),
    "no data to train with": (
        training(data="none"),
        "none/downstream/STS/STSBenchmark/sts-dev.csv: no such file",
    ),
    "no data to score with": (
        ["evaluate", "--model", ENCODER, "--out", "x"],
        "nowhere/downstream",
        "--data",
    ),
    "file is a folder": (["render", "claims", "--out", "finished"], "finished: is not a file"),
    "file below a file": (["render", "claims", "--out", "file/page.md"], "file is not a folder"),
    "file without a name": (["render", "claims", "--out", ""], "--out", "is empty"),
    "file with a long name": (["render", "claims", "--out", "x" * 300], "too long"),
    "run is a file": (training("--out", "file"), "file: is not a folder"),
}
LATER = {  # once torch is imported
    "model that is nowhere": (
        evaluation("--pooler", "cls", model="./nowhere"),
        "./nowhere",
        "no such folder",
    ),
    "no pooler": (evaluation(), ENCODER, "--pooler", "cls_before_pooler"),
    "folder of another run": (training("--out", "finished"), "finished: holds another run"),
    "folder of a damaged run": (
        training("--out", "damaged"),
        "damaged/spec.json",
        "not valid JSON",
        "delete damaged",
    ),
    "folder of something else": (
        training("--out", "foreign"),
        "foreign/model: belongs to no known run",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_it_is_refused_before_torch_is_imported(case, refused, no_torch):
    arguments, *parts = case
    refused(arguments, *parts)


@pytest.mark.parametrize("case", LATER.values(), ids=LATER)
def test_it_is_refused_once_torch_is_imported(case, refused):
    arguments, *parts = case
    refused(arguments, *parts)


MICSE = '"miCSE"\n    versus: ["Arc'
TABLE3 = 'base", run: {method: informin_cl, encoder: roberta-'


@pytest.mark.parametrize(
    ("file", "old", "new", "parts"),
    [
        ("papers/micse.yaml", "batch_size: 50", "batch_sise: 50", ["batch_sise", "'batch_size'"]),
        (
            "papers/micse.yaml",
            'size: "10%"',
            'size: "11%"',
            ["size of config/smoke.yaml '11%'", "'1%'"],
        ),
        ("papers/micse.yaml", 'task: "Avg."', 'task: "Awg."', ["task of sts 'Awg.'", "'Avg.'"]),
        (
            "papers/infocse.yaml",
            "encoder: bert-large, params",
            "encoder: bert-huge, params",
            ["rows.", "'bert-huge'"],
        ),
        (
            "papers/micse.yaml",
            "source: copied",
            "source: rerun",
            ["tables.1.rows.", "`source: copied` and `from`"],
        ),
        (
            "papers/micse.yaml",
            "evaluator: attention",
            "evaluator: atention",
            ["'atention'", "'attention'"],
        ),
        (
            "papers/micse.yaml",
            "kind: cosine_gold",
            "kind: cosine_golds",
            ["figures.7.kind", "'cosine_gold'"],
        ),
        ("papers/micse.yaml", MICSE, MICSE.replace("SE", "SEE"), ["full-shot", "'miCSEE'"]),
        (
            "papers/informin_cl.yaml",
            f"{TABLE3}b",
            TABLE3,
            ["tables.3.columns.1: ", "'roberta-base'"],
        ),
        ("papers/micse.yaml", "name: micse", "name: infocse", ["name: is 'infocse'", "micse.yaml"]),
        (
            "papers/infocse.yaml",
            'url: "http',
            'url: "javascript:http',
            ["papers/infocse.yaml: line 7: url"],
        ),
        (
            "papers/infocse.yaml",
            "/InfoCSE",
            '/\\" onclick=\\"y',
            ["papers/infocse.yaml: line 7: url"],
        ),
        (
            "config/smoke.yaml",
            "  steps: 6",
            "  steps: 6\n  clip: .nan",
            ["override.clip", "finite number"],
        ),
        (
            "config/smoke.yaml",
            "threads: 1",
            "threads: 1\nsteps_factor: 0.5",
            ["steps_factor and override.steps"],
        ),
        (
            "config/smoke.yaml",
            "  queue: {",
            "  quue: {",
            ["substitutes: unknown parameter 'quue'", "'queue'"],
        ),
        (
            "config/smoke.yaml",
            '{"1024": 24}',
            '{"1024": 4}',
            ["iscse: neighbours (4) must be below buffer (4)"],
        ),
        (
            "config/smoke.yaml",
            "threads: 1",
            "threads: 1\nseeds_by_table: {micse/tabel2: [48]}",
            ["'micse/table2'"],
        ),
        ("config/smoke.yaml", "seeds: [48, 49]", "seeds: [48, 48]", ["seeds", "occurs twice"]),
        ("config/smoke.yaml", '"100%": 400', '"100%": 401', ["sizes: 100%", "smoke holds 400"]),
        ("config/smoke.yaml", "  beir: ", "  bier: ", ["evaluators", "'bier'", "'beir'"]),
        (
            "config/smoke.yaml",
            '"beir:smoke"',
            '"bier:smoke"',
            ["config/smoke.yaml: evaluators", "'bier'", "'beir'"],
        ),
        (
            "config/smoke.yaml",
            "corpus: smoke",
            "corpus: smok",
            ["data/registry.yaml", "'smok'", "'smoke'"],
        ),
        (
            "data/registry.yaml",
            "  path: wiki/smoke.txt",
            "  path: ../../x.txt",
            ["smoke.path", "below the data root"],
        ),
    ],
)
def test_what_does_not_fit_is_named_with_file_and_key(
    project, file, old, new, parts, refused, no_torch
):
    path = project / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))

    if file == "papers/informin_cl.yaml":
        command = ["render", "informin_cl/table3"]  # `plan` reads no table of settings
    elif path.parent.name == "papers":
        command = ["plan", path.stem]
    else:
        command = ["plan", "all"]
    refused(command, file, *parts)


TAKEN = [
    ("papers/msse", "table7"),
    ("papers/msse", "mini"),
    ("config/short", "html"),
    ("config/short", "a;b"),
]


@pytest.mark.parametrize(("file", "name"), TAKEN)
def test_a_name_of_other_pages(file, name, project, refused, capsys, no_torch):
    path = project / f"{file}.yaml"
    path.replace(path.with_stem(name))
    if file.startswith("papers"):
        assert_broken_paper(name, capsys)
    else:
        refused(["plan", "all"], f"{name}.yaml", "name")


def test_a_scale_with_the_name_of_a_paper(project, capsys, no_torch):
    scale = project / "config" / "short.yaml"
    scale.replace(scale.with_stem("micse"))
    assert_broken_paper("micse", capsys)


def assert_broken_paper(name, capsys):
    """Assert that a paper is listed as broken, which stops no other paper."""
    assert cli.main(["papers", "--json"]) == 0
    assert f"BROKEN: papers/{name}.yaml: " in capsys.readouterr().out


def test_a_full_disk_is_one_message(capsys, monkeypatch):
    error = OSError(28, "No space left on device", "page.md")
    monkeypatch.setattr(Path, "write_bytes", Mock(side_effect=error))

    assert cli.main(["render", "claims", "--out", "page.md"]) == 1

    assert capsys.readouterr().err == "csebench: page.md: No space left on device.\n"
    assert not Path("page.md").exists()


@pytest.mark.parametrize(("file", "content"), [("progress.json", b"\xff\0"), ("train.json", b"[]")])
def test_a_damaged_file_of_one_run_is_its_reason_and_stops_nothing(file, content, capsys):
    (page,) = targets.parse_target("micse/table2", "smoke")
    run = next(iter(page.runs()))
    folder = Path("runs", run)
    folder.mkdir(parents=True)
    (folder / file).write_bytes(content)

    assert cli.main(["status", "micse/table2"]) == 0

    printed = " ".join(capsys.readouterr().out.split())
    assert ", 1 failed, " in printed
    assert f"{run}: runs/{run}/{file}: " in printed
    assert "Delete " in printed


def test_known_names_are_sorted_by_their_numbers():
    """Python counts a superscript as a digit, but it is no number."""
    message = str(unknown("table", "x", ["table10", "²", "table2"]))
    assert message.endswith("Known: table2, table10, ².")


def test_the_lock_of_an_editor_is_no_file_of_the_project(project):
    """Emacs makes a link that leads nowhere while a file has changes that are not saved."""
    (project / "papers" / ".#x.yaml").symlink_to("user@host.1:2")
    assert "micse" in catalog.paper_names()


REQUIRED = {"name": "broken", "version": 1, "title": "t", "paper": "p", "citation": "c"}


def declared(entry):
    """Return a declaration with one more entry, or with another one in place of its own."""
    given = entry.partition(":")[0].strip("'")
    entries = [f"{key!r}: {value!r}" for key, value in REQUIRED.items() if key != given]
    return f"DECLARATION = {{{', '.join([*entries, entry])}}}\n"


BROKEN = {
    "syntax": ("DECLARATION = {\n", "line 1", "not valid Python"),
    "deep": ("x = " + "+".join("1" * 30_000), "nested too deeply"),
    "nothing declared": ("x = 1\n", "no DECLARATION", "csebench new"),
    "not a literal": ("import math\nDECLARATION = {'version': math.pi}\n", "line 2", "literal"),
    "another name": (declared("'name': 'other'"), "'other'", "broken.py"),
    "text": (declared("'title': '\\ud800'"), "line 1", "cannot be printed"),
    "a key twice": (
        declared("'params': {},\n 'params': {}"),
        "line 2",
        "'params' occurs twice, first in line 1",
    ),
    "a key twice, deep": (
        declared("'params': {'steps': (5, 'a'),\n 'steps': (6, 'b')}"),
        "line 2",
        "'steps' occurs",
    ),
    "given twice": (declared("'params': {}") * 2, "line 2", "DECLARATION is given in line 1"),
    "changed in a part": (
        declared("'params': {}") + "DECLARATION['version'] = 2\n",
        "line 2",
        "given in line 1",
    ),
    "added to": (
        declared("'params': {}") + "DECLARATION |= {'version': 2}\n",
        "line 2",
        "given in line 1",
    ),
    "variant": (
        declared("'variants': {'code': None}"),
        "variants",
        "must hold (reading, difference, params)",
    ),
    "parameter": (declared("'params': {'_a': (1, 'here')}"), "params", "'_a'"),
    "default": (
        declared("'params': {'steps': (-5, 'here')}"),
        "steps",
        "greater than or equal to 1",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_a_broken_method_file_is_named_and_hides_no_other(
    case, project, monkeypatch, capsys, refused
):
    content, *parts = case
    own = project / "mine"
    (own / "methods").mkdir(parents=True)
    (own / "methods" / "broken.py").write_text(content)
    monkeypatch.setenv("CSEBENCH_PROJECT", str(own))
    caches.clear()

    refused(["show", "broken"], "methods/broken.py", *parts)
    assert cli.main(["methods"]) == 0

    listed = capsys.readouterr().out
    assert "BROKEN" in listed
    assert "simcse" in listed
    assert "micse" in listed
