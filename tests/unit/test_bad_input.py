"""Bad input on the command line: exit code 2, one clear message, nothing written."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from csebench import cli
from csebench.base import caches
from csebench.base.project import ROOT
from csebench.cli import inspect, run, show, verbs
from csebench.plan import catalog, cli_spec, evidence, grids, recipe, registry, targets

SMOKE = ROOT / "data" / "smoke"
CORPUS = SMOKE / "wiki" / "smoke.txt"
ENCODER = ROOT / "encoders" / "bert-mini-wiki"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty working directory."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def no_torch(monkeypatch):
    """What needs torch cannot be imported: input must be refused before it is."""
    for module in ("csebench.encoder", "csebench.trainer", "torch", "transformers"):
        monkeypatch.setitem(sys.modules, module, None)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of the project's YAML files to damage."""
    copy = tmp_path / "project"
    for folder in ("config", "evidence", "papers"):
        shutil.copytree(ROOT / folder, copy / folder)
    (copy / "data").mkdir()
    shutil.copy(ROOT / "data" / "registry.yaml", copy / "data")
    monkeypatch.setattr(catalog, "ROOT", copy)
    caches.clear()
    yield copy
    caches.clear()


def refused(capsys, here, arguments, *parts):
    """The command ends with 2 and a message that holds all parts, and leaves the folder as it was."""

    def files():
        return sorted(path for path in here.rglob("*") if path.suffix != ".lock")  # an unlocked lock means nothing

    before = files()
    assert cli.main([str(a) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("csebench: ") and err.count("csebench: ") == 1 and "Traceback" not in err
    for part in parts:
        assert str(part) in err, f"{part!r} not in {err!r}"
    assert files() == before
    return err


def training(*more, encoder=ENCODER, corpus=CORPUS, data=SMOKE, method="simcse"):
    return [
        "train",
        "--method",
        method,
        "--encoder",
        encoder,
        "--corpus",
        corpus,
        "--data",
        data,
        "--out",
        "out",
        *more,
    ]


def evaluation(*more, model=ENCODER, data=SMOKE):
    return ["evaluate", "--model", model, "--data", data, "--out", "scores.json", *more]


# ---------------------------------------------------------------- names and values


NAMES = {
    "method": (training(method="simsce"), "unknown method 'simsce'", "'simcse'"),
    "component": (training("--with", "amii"), "unknown component 'amii'", "'ami'"),
    "component in --set": (training("--set", "mocco.queue=3"), "unknown component 'mocco'", "'moco'"),
    "variant": (training("--variant", "cod", method="micse"), "variant of micse 'cod'", "'code'"),
    "hyper-parameter": (training("--set", "temprature=0.1"), "--set: simcse: temprature", "'temperature'"),
    "component's parameter": (training("--with", "ami", "--set", "ami.wieght=1"), "--set: ami: wieght", "'weight'"),
    "word for a number": (training("--set", "learning_rate=fast"), "learning_rate", "valid number", "'fast'"),
    "word for a whole number": (training("--set", "steps=many"), "steps", "'many'"),
    "negative number": (training("--set", "steps=-3"), "steps", "greater than or equal to 1"),
    "fraction of a step": (training("--set", "steps=1.5"), "steps", "'1.5'"),
    "choice": (training("--with", "ami", "--set", "ami.form=cod"), "ami: form", "'paper' or 'code'"),
    "pooler": (training("--set", "pooler=clss"), "pooler", "'cls_before_pooler'"),
    "infinite number": (training("--set", "learning_rate=inf"), "learning_rate", "finite number"),
    "number that overflows": (training("--set", "clip=1e400"), "clip", "finite number"),
    "number that is none": (training("--set", "temperature=nan"), "temperature", "finite number"),
    "negative temperature": (training("--set", "temperature=-1"), "temperature", "greater than or equal to 0"),
    "negative queue": (training("--with", "moco", "--set", "moco.queue=-3"), "queue", "greater than or equal to 0"),
    "weight of a component": (training("--with", "ami", "--set", "ami.weight=nan"), "ami: weight", "finite number"),
    "huge number of steps": (training("--set", "steps=1" + "0" * 30), "steps", "less than or equal to"),
    "huge batch": (training("--set", "batch_size=1000000000000"), "batch_size", "less than or equal to"),
    "negative seed": (training("--seed=-1"), "--seed", "greater than or equal to 0"),
    "huge seed": (training("--seed", str(2**64)), "--seed", "less than 4294967296"),
    "threads of no machine": (training("--threads", "1000000"), "--threads", "less than or equal to 1024"),
    "component that the method lacks": (training("--set", "ami.weight=0.1"), "--set ami", "--with ami"),
    "component that the variant leaves out": (
        training("--variant", "released", "--set", "moco.queue=8", method="micse"),
        "--with moco",
    ),
    "warm-up longer than the run": (training("--set", "steps=4", "warmup_steps=5"), "warmup_steps: 5", "steps, 4"),
    "batch of more than the corpus": (training("--set", "batch_size=401"), "batch_size: 401", "the 400 sentences"),
    "batch of more than the sample": (training("--size", "20"), "batch_size: 64", "the 20 sentences"),
    "size of more than the corpus": (training("--size", "401"), "--size 401", "smoke.txt holds 400 sentences"),
    "size of more than the triplets": (
        training("--size", "41", corpus=SMOKE / "nli" / "smoke.csv", method="simcse_sup"),
        "--size 41",
        "smoke.csv holds 40 triplets",
    ),
    "one sentence": (training("--size", "1"), "--size: '1'", "greater than or equal to 2"),
    "batch of an evaluation": (
        evaluation("--batch-size", "1" + "0" * 30),
        "--batch-size",
        "less than or equal to 1048576",
    ),
    "length of an evaluation": (evaluation("--max-length", "3"), "--max-length", "greater than or equal to 4"),
    "difference": (["power", "table2", "--difference", "inf"], "'inf': it should be a finite number"),
    "seconds": (["status", "--watch", "1" + "0" * 30], "--watch", "less than or equal to 86400"),
    "processes": (["work", "simcse-0000000000", "--processes", "1000000"], "--processes", "less than or equal to 64"),
    "evaluator of a job": (["work", "simcse-0000000000", "--evaluators", "stss"], "unknown evaluator 'stss'", "'sts'"),
    "evaluator to publish": (["publish", "simcse-0000000000", "stss"], "unknown evaluator 'stss'", "'sts'"),
    "name that is not UTF-8": (training(corpus="\udcff.txt"), "'\\udcff.txt': not UTF-8"),
    "model with a long name": (evaluation(model="x" * 5000), "File name too long"),
    "name with a NUL": (training(corpus="a\0b"), "cannot be opened", "null byte"),
    "name that is too long": (training(corpus="x" * 5000), "too long"),
    "path below a file": (training(corpus=CORPUS / "x"), CORPUS / "x", "Not a directory"),
    "positives that no method reads": (training("--positives", CORPUS), f"--positives {CORPUS}", "simcse reads none"),
    "corpus that no method reads": (training(method="bert"), f"--corpus {CORPUS}", "bert reads none"),
    "not KEY=VALUE": (training("--set", "steps"), "--set steps", "KEY=VALUE"),
    "encoder": (training(encoder="bert-mini-wik"), "unknown encoder 'bert-mini-wik'", "'encoders/bert-mini-wiki'"),
    "evaluator": (evaluation("--evaluators", "stss"), "unknown evaluator 'stss'", "'sts'"),
    "second evaluator": (evaluation("--evaluators", "sts,transfr"), "unknown evaluator 'transfr'"),
    "scale of plan": (["plan", "table2", "--scale", "smokee"], "unknown scale 'smokee'", "'smoke'"),
    "scale of render": (["render", "table2", "--scale", "minni", "--out", "page.md"], "'minni'", "'mini'"),
    "target of plan": (["plan", "results/tabel2.md"], "unknown target", "'table2'"),
    "target of render": (["render", "results/tabel2.md", "--out", "page.md"], "unknown target", "'table2'"),
    "target with a paper": (["plan", "micsee/table2"], "unknown target 'micsee/table2'", "'micse/table2'"),
    "table": (["plan", "table99"], "unknown table '99'"),
    "second target": (["plan", "table2", "tabel2"], "unknown target", "'table2'"),
    "figure": (["plan", "micse/figure2"], "unknown figure of micse '2'", "3, 4, 5"),
    "figure to draw": (["render", "micse/figur3"], "unknown target", "'micse/figure3'"),
    "table to compare": (["compare", "micse/table9"], "unknown table of micse '9'"),
    "report": (["render", "claim"], "unknown target 'claim'"),
    "scale of the claims": (["claims", "--scale", "minni"], "unknown scale 'minni'", "'mini'"),
    "scale of the pages": (["html", "--scale", "smokee"], "unknown scale 'smokee'", "'smoke'"),
    "name": (["show", "simsce"], "unknown name 'simsce'", "'simcse'"),
    "name like no other": (["show", "nope"], "unknown name 'nope'. `csebench methods`"),
    "verb": (["shwo"], "invalid choice: 'shwo'", "'show'", "csebench --help"),
    "table to audit": (["audit", "micse/table9"], "unknown table of micse '9'"),
    "target to fetch": (["fetch", "micse/table9"], "unknown table of micse '9'"),
    "run": (["work", "simcse-0000000000"], "'simcse-0000000000'", "csebench plan all"),
    "run to publish": (["publish", "simcse-0000000000", "sts"], "'simcse-0000000000'", "csebench plan all"),
}


@pytest.mark.parametrize(("arguments", "parts"), [(a, p) for a, *p in NAMES.values()], ids=NAMES)
def test_name_or_value(arguments, parts, capsys, here, no_torch):
    refused(capsys, here, arguments, *parts)


def spec_of(*options):
    """The run of `csebench train` with these options."""
    args = verbs.parser().parse_args([str(word) for word in training(*options)])
    return cli_spec.spec_from(args, run.corpus_size(args))


def test_a_setting_of_a_component_of_the_method_needs_no_option():
    assert spec_of("--method", "micse", "--set", "ami.weight=0.1").components["ami"].params["weight"] == 0.1


def test_a_spec_of_more_sentences_than_the_corpus(capsys, here, no_torch):
    run = next(run for run in targets.runs("smoke").values() if run.method == "simcse").model_dump()
    (here / "spec.json").write_text(json.dumps(run | {"corpus": run["corpus"] | {"size": 401}}))
    refused(capsys, here, ["train", "spec.json", "--corpus", CORPUS, "--out", "out"], "400 sentences", "401")


def test_a_small_number_as_people_write_it_is_accepted():
    """`3e-5` is a string to YAML and to the command line."""
    spec = spec_of("--set", "learning_rate=3e-5", "batch_size=64")
    assert spec.params["learning_rate"] == 3e-5
    assert spec.run_id == spec_of("--set", "learning_rate=0.00003", "batch_size=64.0").run_id


def test_what_argparse_refuses_is_bad_input_too(capsys, here):
    for arguments in (["plan"], training("--precision", "fp8"), training("--seed", "one")):
        refused(capsys, here, arguments, "argument")


# ---------------------------------------------------------------- specs


def spec(**changes):
    return targets.run(next(iter(targets.runs("smoke"))), "smoke").model_dump() | changes


def test_malformed_spec(capsys, here, no_torch):
    (here / "spec.json").write_text('{"method": "simcse", ')
    refused(capsys, here, ["train", "spec.json", "--out", "out"], "spec.json", "line 1", "not valid JSON")
    refused(capsys, here, ["train", '{"method": ', "--out", "out"], "spec", "not valid JSON")


def test_spec_with_an_unknown_key(capsys, here, no_torch):
    content = spec(sed=3)
    (here / "spec.json").write_text(json.dumps(content))
    refused(capsys, here, ["train", "spec.json", "--out", "out"], "spec.json: sed", "'seed'")


def test_spec_without_a_key(capsys, here, no_torch):
    content = spec()
    del content["encoder"]
    (here / "spec.json").write_text(json.dumps(content))
    refused(capsys, here, ["train", "spec.json", "--out", "out"], "spec.json: encoder", "required")


def test_spec_of_an_unknown_method(capsys, here, no_torch):
    (here / "spec.json").write_text(json.dumps(spec(method="simsce")))
    refused(capsys, here, ["train", "spec.json", "--out", "out"], "'simsce'", "'simcse'")


def test_missing_spec_and_no_spec(capsys, here, no_torch):
    refused(capsys, here, ["train", "spec.json", "--out", "out"], "spec.json: no such file")
    refused(capsys, here, ["train", "--out", "out"], "--method")
    refused(capsys, here, ["train", "--method", "simcse", "--out", "out"], "--encoder")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"seed": -1}, ["seed", "greater than or equal to 0"]),
        ({"seed": True}, ["seed", "valid integer"]),
        ({"seeds": {"order": 2**70}}, ["seeds.order", "less than"]),
        ({"threads": 1000000}, ["threads", "less than or equal to 1024"]),
        ({"threads": 0}, ["threads", "greater than or equal to 1"]),
        ({"params": {"steps": 5, "warmup_steps": 6}}, ["warmup_steps: 6", "steps, 5"]),
        ({"params": {"learning_rate": float("inf")}}, ["not valid JSON", "line 1"]),
        ({"encoder": {"name": "\ud800", "revision": "main"}}, ["not valid JSON", "hex escape"]),
    ],
    ids=str,
)
def test_spec_with_a_value_out_of_range(changes, parts, capsys, here, no_torch):
    (here / "spec.json").write_text(json.dumps(spec(**changes)))
    refused(capsys, here, ["train", "spec.json", "--out", "out"], "spec.json", *parts)


def test_spec_with_a_number_that_overflows(capsys, here, no_torch):
    (here / "spec.json").write_text(re.sub('"learning_rate": [^,}]+', '"learning_rate": 1e999', json.dumps(spec())))
    refused(capsys, here, ["train", "spec.json", "--out", "out"], "spec.json", "learning_rate")


# ---------------------------------------------------------------- YAML of the project


def test_paper_that_is_no_yaml(project, capsys, here, no_torch):
    path = project / "papers" / "micse.yaml"
    path.write_text(path.read_text() + "\ntables: [1, 2\n")
    refused(capsys, here, ["plan", "table2"], path, "line ", "not valid YAML")


def test_scale_that_is_no_yaml(project, capsys, here, no_torch):
    path = project / "config" / "smoke.yaml"
    path.write_text("scale: smoke\nseeds: [48, 49\n")
    refused(capsys, here, ["plan", "table2"], path, "line ", "not valid YAML")


@pytest.mark.parametrize(
    ("file", "old", "new", "parts"),
    [
        ("papers/micse.yaml", "caption:", "captoin:", ["tables.1", "captoin: unknown key", "'caption'"]),
        ("papers/micse.yaml", "source: rerun", "sourc: rerun", ["sourc: unknown key", "'source'"]),
        ("papers/micse.yaml", "73.68±0.89", "73,68±0.89", ["values", "73,68"]),
        ("papers/micse.yaml", "source: rerun", "source: reruns", ["source", "'rerun'", "reruns"]),
        ("papers/micse.yaml", "method: micse", "method: micsee", ["unknown method 'micsee'", "'micse'"]),
        ("papers/micse.yaml", "components: {ami: {}}", "components: {amii: {}}", ["component 'amii'", "'ami'"]),
        ("papers/micse.yaml", "batch_size: 50", "batch_sise: 50", ["batch_sise", "'batch_size'"]),
        ("papers/micse.yaml", 'size: "10%"', 'size: "11%"', ["size of config/smoke.yaml '11%'", "'1%'"]),
        ("config/smoke.yaml", "override:", "overide:", ["overide: unknown key", "'override'"]),
        ("config/smoke.yaml", "threads: 1", "threads: one", ["threads", "'one'"]),
        ("config/smoke.yaml", "  steps: 6", "  stesp: 6", ["stesp", "'steps'"]),
        ("config/smoke.yaml", "  moco: {", "  mocoo: {", ["components", "'mocoo'", "'moco'"]),
        ("config/smoke.yaml", "{queue: 24}", "{quue: 24}", ["components.moco: quue", "'queue'"]),
        ("config/smoke.yaml", '{"10%": [48]', '{"5%": [48]', ["seeds_by_size", "'5%'"]),
        (
            "config/smoke.yaml",
            "threads: 1",
            "threads: 1\nseeds_by_table: {micse/tabel2: [48]}",
            ["seeds_by_table", "'micse/tabel2'", "'micse/table2'"],
        ),
        ("papers/micse.yaml", 'task: "Avg."', 'task: "Awg."', ["task of sts 'Awg.'", "'Avg.'"]),
        ("papers/micse.yaml", '["73.68±0.89", ', "[", ["tables.2", "miCSE: 3 values for 4 columns"]),
        (
            "papers/micse.yaml",
            "    evaluator: attention",
            "    evaluator: atention",
            ["evaluator 'atention'", "'attention'"],
        ),
        ("papers/micse.yaml", "sweep: {negatives: zeroed}", "sweep: {negative: zeroed}", ["table4", "'negatives'"]),
        ("config/smoke.yaml", "  beir: ", "  bier: ", ["evaluators", "'bier'", "'beir'"]),
        ("config/smoke.yaml", '"beir:smoke"', '"bier:smoke"', ["config/smoke.yaml: evaluators", "'bier'", "'beir'"]),
        ("config/smoke.yaml", "threads: 1", "threads: .inf", ["threads", "valid integer"]),
        ("config/smoke.yaml", "threads: 1", "threads: 1\nthreads: 2", ["line ", "'threads' occurs twice"]),
        ("config/smoke.yaml", "seeds: [48, 49]", "seeds: []", ["seeds", "at least 1 item"]),
        ("config/smoke.yaml", "seeds: [48, 49]", "seeds: [48, 48]", ["seeds", "occurs twice"]),
        ("config/smoke.yaml", "seeds: [48, 49]", "seeds: [-1]", ["seeds.0", "greater than or equal to 0"]),
        ("config/smoke.yaml", '"1%": 24', '"1%": -1', ["sizes.1%", "greater than or equal to 2"]),
        ("config/smoke.yaml", '"100%": 400', '"100%": 401', ["sizes: 100%", "smoke holds 400"]),
        ("config/smoke.yaml", '"1%": 24', '"1%": 401', ["1% has more sentences than 10%"]),
        ("config/smoke.yaml", "threads: 1", "threads: 1\nsteps_factor: 0.5", ["steps_factor and override.steps"]),
        ("config/smoke.yaml", "  warmup_steps: 0", "  warmup_steps: 7", ["warmup_steps: 7", "steps, 6"]),
        ("config/smoke.yaml", "  batch_size: 8", "  batch_size: 32", ["batch_size: 32", "24 sentences"]),
        ("config/smoke.yaml", "{buffer: 24,", "{buffer: 4,", ["iscse: neighbours (4) must be below buffer (4)"]),
        ("config/smoke.yaml", "  steps: 6", "  steps: 6\n  clip: .nan", ["override.clip", "finite number"]),
        ("config/smoke.yaml", "scale: smoke", "scale: mini", ["scale: is 'mini'", "smoke.yaml"]),
        ("papers/micse.yaml", "name: micse", "name: infocse", ["name: is 'infocse'", "micse.yaml"]),
        ("papers/micse.yaml", "73.68±0.89", "9" * 400, ["values", "finite number"]),
        (
            "papers/micse.yaml",
            "    caption:",
            "    digits: -1\n    caption:",
            ["digits", "greater than or equal to 0"],
        ),
        (
            "papers/infocse.yaml",
            '{label: "Δ", delta: "STS-B"}',
            '{label: "STS-B", delta: "STS-B"}',
            ["STS-B: `delta` needs exactly one column"],
        ),
        ("papers/micse.yaml", "    caption:", "    factor: 0\n    caption:", ["factor", "greater than 0"]),
        ("data/registry.yaml", "  path: wiki/smoke.txt", "  path: ../../x.txt", ["smoke.path", "below the data root"]),
        ("config/smoke.yaml", "corpus: smoke", "corpus: smok", ["data/registry.yaml", "'smok'", "'smoke'"]),
        ("data/registry.yaml", "  path: wiki/smoke.txt", "  pth: wiki/smoke.txt", ["smoke.pth", "'path'"]),
    ],
)
def test_what_does_not_fit_is_named_with_file_and_key(project, file, old, new, parts, capsys, here, no_torch):
    path = project / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    refused(capsys, here, ["plan", "all"], file, *parts)


def test_a_table_of_settings_of_an_unknown_encoder(project, capsys, here):
    path = project / "papers" / "informin_cl.yaml"
    before, start, settings = path.read_text().partition("    kind: settings\n")
    path.write_text(before + start + settings.replace("encoder: roberta-base", "encoder: roberta-bse", 1))
    refused(capsys, here, ["render", "informin_cl/table3"], path.name, "table3: RoBERTa base", "'roberta-base'")


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("by (+0.44)", 'by (+0.44)"\n    whatever: "', ["claims.4.whatever: unknown key"]),
        ('    row: "miCSE"\n', '    row: "miCSEE"\n', ["comparable in the full-shot scenario", "'miCSEE'"]),
        ('versus: ["SCD (Klein', 'versus: ["SDC (Klein', ["second-best approach SCD", "'SDC (Klein and Nabi, 2022)'"]),
        ('columns: ["SICK-R"]', 'columns: ["SICKR"]', ["best performance on the SICK-R", "'SICKR'"]),
        ("    by: 0.44", "    by: a lot", ["claims.4.by", "'a lot'"]),
    ],
    ids=["key", "row", "other row", "column", "number"],
)
@pytest.mark.parametrize("verb", ["claims", "audit"])
def test_a_claim_that_does_not_fit_is_named(project, old, new, parts, verb, capsys, here):
    path = project / "papers" / "micse.yaml"
    before, start, after = path.read_text().partition("\nclaims:")
    assert old in after
    path.write_text(before + start + after.replace(old, new, 1))
    refused(capsys, here, [verb], "papers/micse.yaml", *parts)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", 'https://x/" onclick="y', "file:///x"])
def test_an_address_that_is_not_of_a_web_page(url, project, capsys, here, no_torch):
    path = project / "papers" / "infocse.yaml"
    before, start, after = path.read_text().partition("\nurl: ")
    assert start
    path.write_text(f"{before}{start}{json.dumps(url)}\n{after.partition(chr(10))[2]}")
    refused(capsys, here, ["plan", "all"], "papers/infocse.yaml: line 6: url")


@pytest.mark.parametrize("name", ["html", "methods", "scores", "all", "table7", "a b", "mini"])
def test_a_paper_with_a_name_of_other_pages(name, project, capsys, here, no_torch):
    (project / "papers" / "msse.yaml").rename(project / "papers" / f"{name}.yaml")
    refused(capsys, here, ["plan", "all"], f"papers/{name}.yaml", "name")


@pytest.mark.parametrize("name", ["html", "partial", "evidence", "a;b", "micse"])
def test_a_scale_with_a_name_of_other_pages(name, project, capsys, here, no_torch):
    (project / "config" / "short.yaml").rename(project / "config" / f"{name}.yaml")
    refused(capsys, here, ["plan", "all"], f"{name}.yaml", "name")


@pytest.mark.parametrize("file", ["config/smoke.yaml", "papers/micse.yaml", "data/registry.yaml"])
def test_yaml_that_is_not_utf8(project, file, capsys, here, no_torch):
    path = project / file
    path.write_bytes(b"# caf\xe9\n" + path.read_bytes())
    refused(capsys, here, ["plan", "table2"], path, "line 1", "not UTF-8")


def test_empty_yaml(project, capsys, here, no_torch):
    path = project / "config" / "smoke.yaml"
    path.write_text("")
    refused(capsys, here, ["plan", "table2"], path)


# ---------------------------------------------------------------- files


def test_missing_corpus(capsys, here, no_torch):
    refused(capsys, here, training(corpus="nothing.txt"), "nothing.txt: no such file")
    arguments = training()
    del arguments[arguments.index("--corpus") : arguments.index("--corpus") + 2]
    refused(capsys, here, arguments, "simcse", "--corpus")


def test_missing_data_root(capsys, here, no_torch):
    refused(capsys, here, training(data="nowhere"), "nowhere/downstream/STS/STSBenchmark/sts-dev.csv: no such file")
    refused(capsys, here, evaluation(data="nowhere"), "nowhere/downstream", "no such file", "--data")


def test_missing_data_root_from_the_environment(capsys, here, no_torch, monkeypatch):
    monkeypatch.setenv("CSEBENCH_DATA", str(here / "nowhere"))
    arguments = ["evaluate", "--model", ENCODER, "--out", "scores.json"]
    refused(capsys, here, arguments, here / "nowhere", "no such file")


def test_empty_corpus(capsys, here):
    (here / "empty.txt").write_text("\n\n")
    refused(capsys, here, training(corpus="empty.txt"), "empty.txt: holds no sentence")


def test_corpus_that_is_not_utf8(capsys, here):
    (here / "latin.txt").write_bytes(b"one\ncaf\xe9\n")
    refused(capsys, here, training(corpus="latin.txt"), "latin.txt: line 2: not UTF-8")


def test_corpus_of_one_sentence(capsys, here, no_torch):
    (here / "one.txt").write_text("a single sentence\n\n")
    refused(capsys, here, training(corpus="one.txt"), "one.txt: holds only one sentence", "at least two")


def test_corpus_of_carriage_returns(capsys, here, no_torch):
    (here / "mac.txt").write_bytes(b"one sentence\rtwo sentences\r")
    refused(capsys, here, training(corpus="mac.txt"), "mac.txt", "carriage returns", "line feeds")


def test_constant_gold_scores_are_a_fault_of_the_data(tmp_path, capsys, here):
    data = shutil.copytree(SMOKE, tmp_path / "data")
    path = data / "downstream/STS/STS12-en-test/STS.gs.MSRvid.txt"
    path.write_text("3.0\n" * len(path.read_text().splitlines()))
    message = refused(capsys, here, evaluation("--pooler", "avg", data=data), "STS.input.MSRvid.txt", "the score 3")
    assert "model" not in message


def change_first(**values):
    """A function that changes keys of the first line of a JSONL file; of None, that repeats the line."""

    def change(path):
        first, *rest = path.read_text().splitlines()
        changed = [json.dumps(json.loads(first) | values)] if values else [first, first]
        path.write_text("\n".join([*changed, *rest]) + "\n")

    return change


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl"])
@pytest.mark.parametrize(
    ("change", "part"),
    [
        (change_first(), "line 2: `_id`"),
        (change_first(text=None), "line 1: `text` is None"),
        (change_first(text=["a", "b"]), "line 1: `text` is ['a', 'b']"),
        (change_first(title=3), "line 1: `title` is 3"),
        (lambda path: path.write_text("[" * 100_000), "line 1: not valid JSON: recursion limit"),
    ],
    ids=["id twice", "null text", "list text", "number as title", "deep"],
)
def test_malformed_retrieval_data(file, change, part, tmp_path, capsys, here):
    data = shutil.copytree(SMOKE, tmp_path / "data")
    change(data / "beir" / "smoke" / file)
    refused(capsys, here, evaluation("--pooler", "avg", "--evaluators", "beir:smoke", data=data), f"{file}: {part}")


def test_damaged_dev_set(tmp_path, capsys, here):
    data = shutil.copytree(SMOKE, tmp_path / "data")
    path = data / "downstream/STS/STSBenchmark/sts-dev.csv"
    path.write_text(path.read_text() + "only one column\n")
    refused(capsys, here, training(data=data), path, "line 33")


def test_damaged_test_set(tmp_path, capsys, here):
    data = shutil.copytree(SMOKE, tmp_path / "data")
    path = data / "downstream/STS/STS14-en-test/STS.gs.images.txt"
    path.write_text(path.read_text() + "3.0\n")
    refused(capsys, here, evaluation("--pooler", "avg", data=data), "STS.input.images.txt", path.name)


def test_model_that_says_no_pooler(capsys, here):
    refused(capsys, here, evaluation(), ENCODER, "--pooler", "cls_before_pooler")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["./nowhere", "nowhere/at-all"])
def test_missing_model(here, model):
    """Offline, so that the hub is not asked."""
    arguments = [str(a) for a in evaluation("--pooler", "cls", model=model)]
    done = subprocess.run(
        [sys.executable, "-m", "csebench", *arguments],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert model in done.stderr
    assert not list(here.iterdir())


# ---------------------------------------------------------------- what is written


@pytest.fixture
def existing(here):
    (here / "folder").mkdir()
    (here / "file").write_text("x")


OUTPUTS = {
    "file is a folder": (["render", "claims", "--out", "folder"], "folder: is not a file"),
    "file below a file": (["render", "claims", "--out", "file/page.md"], "file is not a folder"),
    "file without a name": (["render", "claims", "--out", ""], "--out", "is empty"),
    "file is a device": (["render", "claims", "--out", "/dev/null"], "/dev/null: is not a file"),
    "file with a long name": (["render", "claims", "--out", "x" * 300], "too long"),
    "file with a NUL": (["render", "claims", "--out", "a\0b"], "null byte"),
    "scores are a folder": ([*evaluation("--pooler", "avg"), "--out", "folder"], "folder: is not a file"),
    "sentences below a file": (["sentences", "--out", "file/s"], "file is not a folder"),
    "run is a file": ([*training(), "--out", "file"], "file: is not a folder"),
    "run below a file": ([*training(), "--out", "file/x"], "file is not a folder"),
    "figures are a file": (["plot", "scores.json", "--out", "file"], "file: is not a folder"),
}


@pytest.mark.parametrize(("arguments", "parts"), [(a, p) for a, *p in OUTPUTS.values()], ids=OUTPUTS)
def test_an_output_that_cannot_be_written_is_refused_first(arguments, parts, capsys, here, existing, no_torch):
    refused(capsys, here, arguments, *parts)


def test_a_full_disk_is_one_message(capsys, here, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert cli.main(["render", "claims", "--out", "page.md"]) == 1
    assert capsys.readouterr().err.endswith("No space left on device.\n")
    assert not list(here.iterdir())


# ---------------------------------------------------------------- folders of runs


DAMAGED = {
    "empty": b"",
    "text": b"\xff\0",
    "list": b"[]",
    "number": b"3",
    "truncated": b'{"state": ',
    "deep": b"[" * 9999,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("file", ["progress.json", "train.json"])
def test_a_damaged_file_of_one_run_is_its_reason_and_stops_nothing(file, content, capsys, here):
    run = next(iter(targets.parse_target("micse/table2", "smoke")[0].runs()))
    path = here / "runs" / run / file
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert cli.main(["status", "micse/table2"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert ", 1 failed, " in shown and f"{run}: runs/{run}/{file}: " in shown and "Delete " in shown
    assert cli.main(["plan", "micse/table2", "--runs"]) == 0
    planned = capsys.readouterr().out
    assert file == "progress.json" or (f"\nruns/{run}/{file}: " in planned and " damaged " in planned)


def test_a_damaged_spec_of_a_run_is_named(capsys, here):
    (here / "out").mkdir()
    (here / "out" / "spec.json").write_bytes(b"\xff\0")
    refused(capsys, here, training(), "out/spec.json", "not valid JSON", "delete out")


# ---------------------------------------------------------------- method files


def declared(entry):
    """A method file with this entry in its declaration."""
    needed = "'name': 'broken', 'version': 1, 'title': 't', 'paper': 'p', 'citation': 'c'"
    return f"DECLARATION = {{{needed}, {entry}}}\n"


def test_the_lock_of_an_editor_is_no_file_of_the_project(project, tmp_path):
    """Emacs makes a link that leads nowhere while a file has changes that are not saved."""
    (tmp_path / "methods").mkdir()
    for path in (project / "papers/.#x.yaml", project / "config/.#x.yaml", project / "evidence/.#x.yaml"):
        path.symlink_to("user@host.1:2")
    (tmp_path / "methods" / ".#x.py").symlink_to("user@host.1:2")
    assert "micse" in catalog.paper_names() and "Echo" in evidence.sources()
    assert registry.names(tmp_path / "methods") == []


def test_an_evaluator_whose_name_is_no_text_is_known_by_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "EVALUATORS", tmp_path)
    (tmp_path / "broken.py").write_text("DECLARATION = {'name': []}\n")
    assert registry.names(tmp_path) == ["broken"]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("DECLARATION = {\n", ["line 1", "not valid Python"]),
        ("x = " + "+".join("1" * 30_000), ["nested too deeply"]),
        ("DECLARATION = {[]: 1}\n", ["line 1", "literal"]),
        (declared("'title': '\\ud800'"), ["line 1", "cannot be printed"]),
        (declared("'variants': {'code': None}"), ["variants", "must hold (reading, difference, params)"]),
        (declared("'params': {'model_config': (1, 'here')}"), ["params", "'model_config'"]),
        (declared("'params': {'steps': (-5, 'here')}"), ["steps", "greater than or equal to 1"]),
        (declared("'params': {'form': ('a', 'here')}, 'choices': {'form': []}"), ["choices.form", "at least 1"]),
        ("x = 1\n", ["no DECLARATION", "methods/_template.py"]),
        ("import math\nDECLARATION = {'version': math.pi}\n", ["line 2", "literal"]),
        ("DECLARATION = {'name': 'broken', 'version': 1, 'titel': 'x'}\n", ["titel: unknown key", "'title'"]),
        (
            "DECLARATION = {'name': 'other', 'version': 1, 'title': 't', 'paper': 'p', 'citation': 'c'}\n",
            ["'other'", "broken.py"],
        ),
    ],
    ids=[
        "syntax",
        "deep",
        "key",
        "text",
        "variant",
        "parameter",
        "default",
        "choices",
        "nothing declared",
        "not a literal",
        "unknown key",
        "another name",
    ],
)
def test_broken_method_file_is_named(content, parts, tmp_path, monkeypatch, capsys, here, no_torch):
    """One bad file in methods/ is named, and does not hide the others."""
    methods = tmp_path / "copy" / "methods"
    shutil.copytree(ROOT / "methods", methods)
    (methods / "broken.py").write_text(content)
    shutil.copytree(ROOT / "evaluators", evaluators := tmp_path / "copy" / "evaluators")
    for name, folder in (("METHODS", methods), ("COMPONENTS", methods / "components"), ("EVALUATORS", evaluators)):
        for module in (registry, catalog, grids, recipe, inspect, show):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, folder)
    monkeypatch.setattr(registry, "ROOT", methods.parent)
    monkeypatch.setattr(registry.declaration, "__defaults__", (methods,))
    caches.clear()
    try:
        refused(capsys, here, ["show", "broken"], "methods/broken.py", *parts)
        assert cli.main(["methods"]) == 0
        listed = capsys.readouterr().out
        assert "BROKEN" in listed and "simcse" in listed and "micse" in listed
    finally:
        caches.clear()


# ---------------------------------------------------------------- refused too late, or not at all


LATE = {
    "pooler of an evaluation": (evaluation("--pooler", "clss"), "--pooler", "'clss'", "'cls'"),
    "batch size": (evaluation("--batch-size", "0"), "batch"),
    "size": (training("--size", "-5"), "size"),
    "threads": (training("--threads", "0"), "threads"),
    "folder as corpus": (training(corpus=SMOKE), SMOKE),
}


@pytest.mark.parametrize(("arguments", "parts"), [(a, p) for a, *p in LATE.values()], ids=LATE)
def test_refused_before_torch(arguments, parts, capsys, here, no_torch):
    refused(capsys, here, arguments, *parts)


@pytest.mark.parametrize("content", [b"", b"caf\xe9\n", b"a\nb\0\n"], ids=["empty", "not UTF-8", "a NUL byte"])
def test_corpus_is_refused_before_torch(content, capsys, here, no_torch):
    (here / "corpus.txt").write_bytes(content)
    refused(capsys, here, training(corpus="corpus.txt"), "corpus.txt")


def test_spec_with_an_unknown_component_parameter(capsys, here, no_torch):
    components = {"ami": {"version": 1, "params": {"wieght": 1}}}
    content = targets.run(next(r for r in targets.runs("smoke") if r.startswith("simcse")), "smoke").model_dump()
    (here / "spec.json").write_text(json.dumps(content | {"components": components}))
    refused(capsys, here, ["train", "spec.json", "--out", "out"], "wieght", "'weight'")


def test_spec_of_another_version(capsys, here, no_torch):
    content = targets.run(next(r for r in targets.runs("smoke") if r.startswith("simcse")), "smoke").model_dump()
    (here / "spec.json").write_text(json.dumps(content | {"method_version": 99}))
    refused(capsys, here, ["train", "spec.json", "--out", "out"], "version", "99")
