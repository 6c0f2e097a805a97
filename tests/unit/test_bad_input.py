"""Bad input on the command line: exit code 2, one clear message, nothing written."""

import errno
import json
import os
import sys
from pathlib import Path

import pytest
from made_up import copy_project

from csebench import cli
from csebench.base import caches
from csebench.base.project import ROOT
from csebench.cli import run, verbs
from csebench.plan import catalog, cli_spec, evidence, registry, targets

SMOKE = ROOT / "data" / "smoke"
CORPUS = SMOKE / "wiki" / "smoke.txt"
TRIPLETS = SMOKE / "nli" / "smoke.csv"
ENCODER = ROOT / "encoders" / "bert-mini-wiki"
STSB = "downstream/STS/STSBenchmark/sts-dev.csv"
FILES = {  # of the working directory
    "file": b"x",
    "latin.txt": b"one\ncaf\xe9\n",
    "half.json": b'{"method": "simcse", ',
    "finished/spec.json": b"{}",
    "damaged/spec.json": b"\xff\0",
    "foreign/model/config.json": b"{}",
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A working directory with files that nothing can use."""
    folder = tmp_path / "here"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def no_torch(monkeypatch):
    """What needs torch cannot be imported: input must be refused before it is."""
    for module in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, module, None)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of the project's YAML files to damage."""
    copy = tmp_path / "project"
    copy_project(copy, monkeypatch, "config", "evidence", "papers")
    yield copy
    caches.clear()


@pytest.fixture
def refused(capsys, here):
    """The command ends with 2 and one message that holds all parts, and leaves the folder as it was."""

    def files():
        return sorted(path for path in here.rglob("*") if path.suffix != ".lock")  # an unlocked lock means nothing

    def refused(arguments, *parts):
        before = files()
        assert cli.main([str(a) for a in arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("csebench: ") and err.count("csebench: ") == 1 and "Traceback" not in err
        for part in parts:
            assert str(part) in err, f"{part!r} not in {err!r}"
        assert files() == before
        return err

    return refused


def training(*more, encoder=ENCODER, corpus=CORPUS, data=SMOKE, method="simcse"):
    given = {"method": method, "encoder": encoder, "corpus": corpus, "data": data, "out": "out"}
    return ["train", *(word for key, value in given.items() for word in (f"--{key}", value)), *more]


def evaluation(*more, model=ENCODER, data=SMOKE):
    return ["evaluate", "--model", model, "--data", data, "--out", "scores.json", *more]


def setting(*values, **more):
    return training("--set", *values, **more)


REFUSED = {
    "method": (training(method="simsce"), "unknown method 'simsce'", "'simcse'"),
    "component": (training("--with", "amii"), "unknown component 'amii'", "'ami'"),
    "component in --set": (setting("mocco.queue=3"), "unknown component 'mocco'", "'moco'"),
    "variant": (training("--variant", "cod", method="micse"), "variant of micse 'cod'", "'code'"),
    "hyper-parameter": (setting("temprature=0.1"), "--set: simcse: temprature", "'temperature'"),
    "half a step": (setting("steps=2.5"), "steps", "valid integer"),
    "dropout of all": (setting("dropout=1.0"), "dropout", "less than 1"),
    "pooler of training": (setting("pooler=clss"), "pooler", "'cls_before_pooler'"),
    "choice of a component": (training("--with", "ami", "--set", "ami.form=papper"), "ami: form", "'paper'"),
    "setting of a component": (training("--with", "ami", "--set", "ami.wieght=1"), "wieght", "'weight'"),
    "too many steps": (setting("steps=1" + "0" * 30), "steps", "less than or equal to"),
    "number that overflows": (setting("clip=1e400"), "clip", "finite number"),
    "number that is none": (setting("temperature=nan"), "temperature", "finite number"),
    "negative seed": (training("--seed=-1"), "--seed", "greater than or equal to 0"),
    "huge seed": (training("--seed", str(2**64)), "--seed", "less than 4294967296"),
    "no thread": (training("--threads", "0"), "--threads", "greater than or equal to 1"),
    "component that the method lacks": (setting("ami.weight=0.1"), "--set ami", "--with ami"),
    "component that the variant lacks": (
        training("--variant", "released", "--set", "moco.queue=8", method="micse"),
        "--with moco",
    ),
    "batch of more than the sample": (training("--size", "63"), "batch_size: 64", "the 63 sentences"),
    "size of more than the corpus": (training("--size", "401"), "--size 401", "smoke.txt holds 400 sentences"),
    "size of more than the triplets": (
        training("--size", "41", corpus=TRIPLETS, method="simcse_sup"),
        "--size 41",
        "smoke.csv holds 40 triplets",
    ),
    "one sentence": (training("--size", "1"), "--size: '1'", "greater than or equal to 2"),
    "no batch": (evaluation("--batch-size", "0"), "--batch-size", "greater than or equal to 1"),
    "length of an evaluation": (evaluation("--max-length", "3"), "--max-length", "greater than or equal to 4"),
    "pooler of an evaluation": (evaluation("--pooler", "clss"), "--pooler", "'clss'", "Did you mean 'cls'?"),
    "pooler of another library": (evaluation("--pooler", "mean"), "Did you mean 'avg'?"),
    "model": (evaluation("--pooler", "cls", model="bert-mini-wik"), "Did you mean 'encoders/bert-mini-wiki'"),
    "device": (["plan", "micse/table3", "--device", "a crad"], "Known, in data/step_times.yaml:", "NVIDIA"),
    "difference": (["power", "table2", "--difference", "inf"], "'inf': it should be a finite number"),
    "processes": (["work", "simcse-0000000000", "--processes", "1000000"], "--processes", "less than or equal to 64"),
    "evaluator of a job": (["work", "simcse-0000000000", "--evaluators", "stss"], "unknown evaluator 'stss'", "'sts'"),
    "name that is not UTF-8": (training(corpus="\udcff.txt"), "'\\udcff.txt': not UTF-8"),
    "name with a NUL": (training(corpus="a\0b"), "cannot be opened", "null byte"),
    "name that is too long": (training(corpus="x" * 5000), "x" * 100 + "…", "too long"),
    "model with a long name": (evaluation(model="x" * 5000), "File name too long"),
    "path below a file": (training(corpus=CORPUS / "x"), CORPUS / "x", "Not a directory"),
    "positives that no method reads": (training("--positives", CORPUS), f"--positives {CORPUS}", "simcse reads none"),
    "corpus that no method reads": (training(method="bert"), f"--corpus {CORPUS}", "bert reads none"),
    "no KEY=VALUE": (setting("steps"), "--set steps", "KEY=VALUE"),
    "encoder": (training(encoder="bert-mini-wik"), "unknown encoder 'bert-mini-wik'", "'encoders/bert-mini-wiki'"),
    "second evaluator": (evaluation("--evaluators", "sts,transfr"), "unknown evaluator 'transfr'"),
    "scale of plan": (["plan", "table2", "--scale", "smokee"], "unknown scale 'smokee'", "'smoke'"),
    "table": (["plan", "table99"], "unknown table '99'.", "Known: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,"),
    "table to compare": (["compare", "micse/table9"], "unknown table of micse '9'"),
    "scale of the pages": (["html", "--scale", "smokee"], "unknown scale 'smokee'", "'smoke'"),
    "name like no other": (["show", "nope"], "unknown name 'nope'. `csebench methods`"),
    "no verb": ([], "csebench show micse/table2"),
    "verb": (["shwo"], "invalid choice: 'shwo'", "'show'", "csebench --help"),
    "no target": (["plan"], "argument", "csebench plan --help"),
    "precision": (training("--precision", "fp8"), "argument --precision"),
    "table to audit": (["audit", "micse/table9"], "unknown table of micse '9'"),
    "run": (["work", "simcse-0000000000"], "'simcse-0000000000'", "csebench plan all"),
    "run to publish": (["publish", "simcse-0000000000", "sts"], "'simcse-0000000000'", "csebench plan all"),
    "half a spec": (["train", "half.json", "--out", "out"], "half.json: not valid JSON", "line 1"),
    "half a spec as text": (["train", '{"method": ', "--out", "out"], "spec: not valid JSON"),
    "spec that is missing": (["train", "spec.json", "--out", "out"], "spec.json: no such file"),
    "no method": (["train", "--out", "out"], "--method"),
    "no encoder": (["train", "--method", "simcse", "--out", "out"], "--encoder"),
    "no corpus": (["train", "--method", "simcse", "--encoder", ENCODER, "--out", "out"], "simcse", "--corpus"),
    "corpus that is missing": (training(corpus="nothing.txt"), "nothing.txt: no such file"),
    "folder as corpus": (training(corpus=SMOKE), f"{SMOKE}: is a folder"),
    "corpus that is not UTF-8": (training(corpus="latin.txt"), "latin.txt: line 2: not UTF-8"),
    "no data to train with": (training(data="nowhere"), f"nowhere/{STSB}: no such file"),
    "no data to score with": (evaluation(data="nowhere"), "nowhere/downstream", "no such file", "--data"),
    "file is a folder": (["render", "claims", "--out", "finished"], "finished: is not a file"),
    "file below a file": (["render", "claims", "--out", "file/page.md"], "file is not a folder"),
    "file without a name": (["render", "claims", "--out", ""], "--out", "is empty"),
    "file with a long name": (["render", "claims", "--out", "x" * 300], "too long"),
    "file with a NUL": (["render", "claims", "--out", "a\0b"], "null byte"),
    "scores are a folder": ([*evaluation("--pooler", "avg"), "--out", "finished"], "finished: is not a file"),
    "run is a file": (training("--out", "file"), "file: is not a folder"),
    "run below a file": (training("--out", "file/x"), "file is not a folder"),
}


LATER = {  # once torch is imported
    "no pooler": (evaluation(), ENCODER, "--pooler", "cls_before_pooler"),
    "folder of another run": (training("--out", "finished"), "finished: holds another run"),
    "folder of a damaged run": (training("--out", "damaged"), "damaged/spec.json", "not valid JSON", "delete damaged"),
    "folder of something else": (training("--out", "foreign"), "foreign/model: belongs to no known run"),
}


@pytest.mark.parametrize(("arguments", "parts"), [(a, p) for a, *p in REFUSED.values()], ids=REFUSED)
def test_it_is_refused_before_torch_is_imported(arguments, parts, refused, no_torch):
    refused(arguments, *parts)


@pytest.mark.parametrize(("arguments", "parts"), [(a, p) for a, *p in LATER.values()], ids=LATER)
def test_it_is_refused(arguments, parts, refused):
    refused(arguments, *parts)


def test_a_data_root_of_the_environment_that_is_missing(refused, here, no_torch, monkeypatch):
    monkeypatch.setenv("CSEBENCH_DATA", str(here / "nowhere"))
    refused(["evaluate", "--model", ENCODER, "--out", "scores.json"], here / "nowhere", "no such file")


# ---------------------------------------------------------------- specs


def spec_of(*options):
    """The run of `csebench train` with these options."""
    args = verbs.parser().parse_args([str(word) for word in training(*options)])
    return cli_spec.spec_from(args, run.corpus_size(args))


def test_a_setting_of_a_component_of_the_method_needs_no_option():
    assert spec_of("--method", "micse", "--set", "ami.weight=0.1").components["ami"].params["weight"] == 0.1


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"sed": 3}, ["sed: unknown key. Did you mean 'seed'?"]),
        ({"encoder": None}, ["encoder"]),
        ({"method": "simsce"}, ["'simsce'", "'simcse'"]),
        ({"method_version": 99}, ["method_version", "99"]),
        ({"trainer_version": 1}, ["trainer_version", "1"]),
        ({"components": {"ami": {"version": 99, "params": {}}}}, ["components.ami.version", "99"]),
        ({"components": {"ami": {"version": 1, "params": {"wieght": 1}}}}, ["wieght", "'weight'"]),
        ({"params": {"temprature": 0.1}}, ["temprature", "'temperature'"]),
        ({"corpus": None}, ["corpus: simcse needs one"]),
        ({"dev_sha256": None}, ["dev_sha256: a trained method needs one"]),
        ({"seed": True}, ["seed", "valid integer"]),
        ({"seeds": {"order": 2**70}}, ["seeds.order", "less than"]),
        ({"threads": 1000000}, ["threads", "less than or equal to 1024"]),
        ({"params": {"steps": 5, "warmup_steps": 6}}, ["warmup_steps: 6", "steps, 5"]),
        ({"params": {"learning_rate": float("inf")}}, ["not valid JSON", "line 1"]),
        ({"corpus": {"size": 401}}, ["401", "400 sentences"]),
    ],
    ids=str,
)
def test_a_spec_that_does_not_fit(changes, parts, refused, here, no_torch):
    content = next(run for run in targets.runs("smoke").values() if run.method == "simcse").model_dump()
    for key, value in changes.items():
        content[key] = content[key] | value if isinstance(value, dict) and content.get(key) else value
    (here / "spec.json").write_text(json.dumps(content))
    refused(["train", "spec.json", "--corpus", CORPUS, "--out", "out"], *parts)


# ---------------------------------------------------------------- YAML of the project


@pytest.mark.parametrize(
    ("file", "old", "new", "parts"),
    [
        ("papers/micse.yaml", "caption:", "captoin:", ["tables.1", "captoin: unknown key", "'caption'"]),
        ("papers/micse.yaml", "73.68±0.89", "9" * 400, ["values", "finite number"]),
        ("papers/micse.yaml", "components: {ami: {}}", "components: {amii: {}}", ["component 'amii'", "'ami'"]),
        ("papers/micse.yaml", "batch_size: 50", "batch_sise: 50", ["batch_sise", "'batch_size'"]),
        ("papers/micse.yaml", 'size: "10%"', 'size: "11%"', ["size of config/smoke.yaml '11%'", "'1%'"]),
        ("papers/micse.yaml", 'task: "Avg."', 'task: "Awg."', ["task of sts 'Awg.'", "'Avg.'"]),
        ("papers/infocse.yaml", "encoder: bert-large, params", "encoder: bert-huge, params", ["rows.", "'bert-huge'"]),
        ("papers/micse.yaml", "source: copied", "source: rerun", ["tables.1.rows.", "`source: copied` and `from`"]),
        ("papers/micse.yaml", "evaluator: attention", "evaluator: atention", ["'atention'", "'attention'"]),
        ("papers/micse.yaml", "sweep: {negatives: zeroed}", "sweep: {negative: zeroed}", ["tables.4", "'negatives'"]),
        ("papers/micse.yaml", "kind: cosine_gold", "kind: cosine_golds", ["figures.7.kind", "'cosine_gold'"]),
        ("papers/micse.yaml", "name: micse", "name: infocse", ["name: is 'infocse'", "micse.yaml"]),
        ("papers/infocse.yaml", 'url: "http', 'url: "javascript:http', ["papers/infocse.yaml: line 7: url"]),
        ("papers/infocse.yaml", "/InfoCSE", '/\\" onclick=\\"y', ["papers/infocse.yaml: line 7: url"]),
        ("config/smoke.yaml", "scale: smoke", "scale: mini", ["scale: is 'mini'", "smoke.yaml"]),
        ("config/smoke.yaml", "override:", "overide:", ["overide: unknown key", "'override'"]),
        ("config/smoke.yaml", "  steps: 6", "  steps: 6\n  clip: .nan", ["override.clip", "finite number"]),
        ("config/smoke.yaml", "threads: 1", "threads: 1\nsteps_factor: 0.5", ["steps_factor and override.steps"]),
        ("config/smoke.yaml", "  queue: {", "  quue: {", ["substitutes: unknown parameter 'quue'", "'queue'"]),
        ("config/smoke.yaml", '{"384": 24', '{"384": many', ["moco", "queue", "'many'"]),
        ("config/smoke.yaml", '{"1024": 24}', '{"1024": 4}', ["iscse: neighbours (4) must be below buffer (4)"]),
        ("config/smoke.yaml", "threads: 1", "threads: 1\nkinds: {two_view: {}}", ["kinds.two_view", "two_views"]),
        ("config/smoke.yaml", "threads: 1", "threads: 1\nkinds: {two_views: {tau: 1}}", ["kinds.two_views", "'tau'"]),
        ("config/smoke.yaml", '{"10%": [48]', '{"5%": [48]', ["seeds_by_size", "'5%'"]),
        ("config/smoke.yaml", "threads: 1", "threads: 1\nseeds_by_table: {micse/tabel2: [48]}", ["'micse/table2'"]),
        ("config/smoke.yaml", "seeds: [48, 49]", "seeds: []", ["seeds", "at least 1 item"]),
        ("config/smoke.yaml", "seeds: [48, 49]", "seeds: [48, 48]", ["seeds", "occurs twice"]),
        ("config/smoke.yaml", '"100%": 400', '"100%": 401', ["sizes: 100%", "smoke holds 400"]),
        ("config/smoke.yaml", "  beir: ", "  bier: ", ["evaluators", "'bier'", "'beir'"]),
        ("config/smoke.yaml", '"beir:smoke"', '"bier:smoke"', ["config/smoke.yaml: evaluators", "'bier'", "'beir'"]),
        ("config/smoke.yaml", "corpus: smoke", "corpus: smok", ["data/registry.yaml", "'smok'", "'smoke'"]),
        ("data/registry.yaml", "  path: wiki/smoke.txt", "  path: ../../x.txt", ["smoke.path", "below the data root"]),
        ("data/registry.yaml", "  path: wiki/smoke.txt", "  pth: wiki/smoke.txt", ["smoke.pth", "'path'"]),
    ],
)
def test_what_does_not_fit_is_named_with_file_and_key(project, file, old, new, parts, refused, no_torch, verb=None):
    path = project / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    verb = verb or f"plan {path.stem if path.parent.name == 'papers' else 'all'}"
    refused(verb.split(), file, *parts)


MICSE, TABLE3 = '"miCSE"\n    versus: ["Arc', 'base", run: {method: informin_cl, encoder: roberta-'
OTHERS = [
    ("claims micse", "micse", MICSE, MICSE.replace("SE", "SEE"), ["full-shot", "'miCSEE'"]),
    ("render informin_cl/table3", "informin_cl", f"{TABLE3}b", TABLE3, ["tables.3.columns.1: ", "'roberta-base'"]),
]


@pytest.mark.parametrize(("verb", "paper", "old", "new", "parts"), OTHERS)
def test_other_verbs_name_it_too(project, verb, paper, old, new, parts, refused, no_torch):
    file = f"papers/{paper}.yaml"
    test_what_does_not_fit_is_named_with_file_and_key(project, file, old, new, parts, refused, no_torch, verb)


NAMES = {
    "papers/msse.yaml": ["html", "table7", "a b", "mini"],
    "config/short.yaml": ["html", "partial", "a;b", "micse"],
}


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, names in NAMES.items() for name in names])
def test_a_name_of_other_pages(file, name, project, refused, capsys, no_torch):
    (project / file).replace((project / file).with_stem(name))
    if file.startswith("papers") or name == "micse":  # which stops no other paper
        assert cli.main(["papers", "--json"]) == 0 and f"BROKEN: papers/{name}.yaml: " in capsys.readouterr().out
    else:
        refused(["plan", "all"], f"{name}.yaml", "name")


# ---------------------------------------------------------------- the system, and files of runs


def test_a_full_disk_is_one_message(capsys, here, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert cli.main(["render", "claims", "--out", "page.md"]) == 1
    assert capsys.readouterr().err.endswith("No space left on device.\n")
    assert not (here / "page.md").exists()


@pytest.mark.parametrize("model", ["./nowhere", "nowhere/at-all"])
def test_a_missing_model(model, refused, monkeypatch):
    """Offline, so that the hub is not asked."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    refused(evaluation("--pooler", "cls", model=model), model)


@pytest.mark.parametrize(("file", "content"), [("progress.json", b"\xff\0"), ("train.json", b"[]")])
def test_a_damaged_file_of_one_run_is_its_reason_and_stops_nothing(file, content, capsys, here):
    """Whatever the damage: test_readers.py."""
    run = next(iter(targets.parse_target("micse/table2", "smoke")[0].runs()))
    path = here / "runs" / run / file
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert cli.main(["status", "micse/table2"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert ", 1 failed, " in shown and f"{run}: runs/{run}/{file}: " in shown and "Delete " in shown


# ---------------------------------------------------------------- files of methods


def test_the_lock_of_an_editor_is_no_file_of_the_project(project, tmp_path):
    """Emacs makes a link that leads nowhere while a file has changes that are not saved."""
    for folder in (project / "papers", project / "config", project / "evidence", tmp_path / "methods"):
        folder.mkdir(exist_ok=True)
        (folder / ".#x.yaml").symlink_to("user@host.1:2")
        (folder / ".#x.py").symlink_to("user@host.1:2")
    assert "micse" in catalog.paper_names() and "Echo" in evidence.sources()
    assert registry.names(tmp_path / "methods") == []


def declared(entry):
    """A file with this entry in its declaration."""
    return f"DECLARATION = {{'name': 'broken', 'version': 1, 'title': 't', 'paper': 'p', 'citation': 'c', {entry}}}\n"


BROKEN = {
    "syntax": ("DECLARATION = {\n", "line 1", "not valid Python"),
    "deep": ("x = " + "+".join("1" * 30_000), "nested too deeply"),
    "key": ("DECLARATION = {[]: 1}\n", "line 1", "literal"),
    "nothing declared": ("x = 1\n", "no DECLARATION", "csebench new"),
    "not a literal": ("import math\nDECLARATION = {'version': math.pi}\n", "line 2", "literal"),
    "unknown key": ("DECLARATION = {'name': 'broken', 'version': 1, 'titel': 'x'}\n", "titel: unknown key", "'title'"),
    "another name": (declared("'name': 'other'"), "'other'", "broken.py"),
    "text": (declared("'title': '\\ud800'"), "line 1", "cannot be printed"),
    "variant": (declared("'variants': {'code': None}"), "variants", "must hold (reading, difference, params)"),
    "parameter": (declared("'params': {'model_config': (1, 'here')}"), "params", "'model_config'"),
    "default": (declared("'params': {'steps': (-5, 'here')}"), "steps", "greater than or equal to 1"),
    "choices": (declared("'params': {'form': ('a', 'here')}, 'choices': {'form': []}"), "choices.form", "at least 1"),
}


@pytest.mark.parametrize(("content", "parts"), [(c, p) for c, *p in BROKEN.values()], ids=BROKEN)
def test_a_broken_method_file_is_named_and_hides_no_other(content, parts, tmp_path, monkeypatch, capsys, refused):
    (tmp_path / "mine" / "methods").mkdir(parents=True)
    (tmp_path / "mine" / "methods" / "broken.py").write_text(content)
    monkeypatch.setenv("CSEBENCH_PROJECT", str(tmp_path / "mine"))
    caches.clear()
    try:
        refused(["show", "broken"], "methods/broken.py", *parts)
        assert cli.main(["methods"]) == 0
        listed = capsys.readouterr().out
        assert "BROKEN" in listed and "simcse" in listed and "micse" in listed
    finally:
        caches.clear()
