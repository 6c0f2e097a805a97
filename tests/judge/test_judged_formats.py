"""Scores are read from files of csebench, mteb, lm-eval and others, and a malformed file is named
with the line or key that is wrong."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from csebench.base.errors import BadInput
from csebench.base.files import with_digest, write_json
from csebench.judging.arguments import SystemArgument, sources_of_arguments
from csebench.judging.systems import ReadingOptions, read_systems, scores_of_source
from csebench.plan.catalog.registry import evaluator_declaration
from csebench.score.replicates import make_replicates
from csebench.score.score_types import Score
from csebench.score.store import write_items

OPTIONS = ReadingOptions(["sts"], Path("nowhere"))
BOUNDED = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def read(path, metric=None):
    """Read the scores of a file or folder."""
    return scores_of_source(path, ReadingOptions(["sts"], Path("nowhere"), metric))


def written(path, text):
    """Write a file and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def sample_line(number=0, **changed):
    """Return a line of lm-eval's samples, with other keys if given."""
    line = {
        "doc_id": number,
        "doc": {"question": "?"},
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "doc_hash": f"hash {number}",
        "target_hash": "b",
        "acc": 1.0,
        "acc_norm": 0.0,
    }
    return json.dumps(line | changed)


def result(**changed):
    """Return mteb's result of a task, with other keys if given."""
    subset = {
        "main_score": 0.5,
        "accuracy": 0.25,
        "hf_subset": "default",
        "languages": ["eng-Latn"],
    }
    content = {"task_name": "STS12", "dataset_revision": "abc", "scores": {"test": [subset]}}
    return content | changed


# ---------------------------------------------------------------- what is read


def test_a_csv_gives_the_mean_of_each_task(tmp_path):
    path = written(tmp_path / "a.csv", "id,value,task\nq1,0.5,x\nq2,1,x\nq1,0.25,y\n")
    scores = read(path)
    assert {task: score.value for task, score in scores.items()} == {"x": 0.75, "y": 0.25}


def test_an_npz_says_the_same_as_a_csv_with_the_same_items(tmp_path):
    path = written(tmp_path / "a.csv", "id,value,hash\nq1,0.5,h1\nq2,1,h2\n")
    np.savez(tmp_path / "a.npz", ids=["q2", "q1"], values=[1, 0.5], hashes=["h2", "h1"])
    (from_csv,) = read(path).values()
    (from_npz,) = read(tmp_path / "a.npz").values()
    assert from_npz.replicates.items == from_csv.replicates.items
    assert np.array_equal(from_npz.replicates.clustered, from_csv.replicates.clustered)


def test_samples_of_lm_eval_are_named_by_task_and_metric(tmp_path):
    name = "samples_arc_easy_2026-01-01T00-00-00.000000.jsonl"
    path = written(tmp_path / name, f"{sample_line(0)}\n{sample_line(1, acc=0.0)}\n")
    assert {task: score.value for task, score in read(path).items()} == {"arc_easy, acc": 0.5}
    assert list(read(path, "acc_norm")) == ["arc_easy, acc_norm"]


def test_a_filter_of_lm_eval_is_chosen_by_its_name(tmp_path):
    strict = sample_line(filter="strict-match", acc=0.0)
    flexible = sample_line(filter="flexible-extract", acc=1.0)
    path = written(tmp_path / "samples.jsonl", f"{strict}\n{flexible}\n")
    (score,) = read(path, "acc,flexible-extract").values()
    assert score.value == 1.0


def test_a_metric_of_lm_eval_that_is_no_number_is_skipped(tmp_path):
    lines = sample_line(metrics=["f1", "acc"], f1=[0, 1])
    path = written(tmp_path / "samples.jsonl", lines)
    assert list(read(path)) == ["samples, acc"]


def test_a_metric_of_lm_eval_that_is_no_number_on_a_later_line_is_skipped(tmp_path):
    path = written(tmp_path / "samples.jsonl", f"{sample_line()}\n{sample_line(1, acc=None)}")
    assert list(read(path)) == ["samples, acc_norm"]
    with pytest.raises(BadInput, match="line 2: acc: must be a number"):
        read(path, "acc")


def test_a_document_without_the_metric_is_not_left_out_silently(tmp_path):
    lines = f"{sample_line()}\n{sample_line(1, metrics=['acc'])}"
    path = written(tmp_path / "samples.jsonl", lines)
    with pytest.raises(BadInput, match="line 2: acc_norm: must be a number"):
        read(path, "acc_norm")


def test_a_task_of_mteb_is_the_mean_of_its_subsets(tmp_path):
    subsets = [{"main_score": value, "hf_subset": name} for value, name in ((0.5, "a"), (0.7, "b"))]
    write_json(tmp_path / "STS22.json", result(scores={"test": subsets}))
    write_json(tmp_path / "model_meta.json", {"name": "x"})
    (score,) = read(tmp_path).values()
    assert score.value == pytest.approx(0.6)


@pytest.mark.slow
def test_a_file_that_mteb_writes_has_the_score_that_mteb_computes(tmp_path):
    from mteb.results import TaskResult

    english = {"main_score": 0.5, "hf_subset": "en", "languages": ["eng-Latn"]}
    german = {"main_score": 0.75, "hf_subset": "de", "languages": ["deu-Latn"]}
    written_by_mteb = TaskResult(
        task_name="STS22",
        dataset_revision="abc",
        mteb_version="2.26.24",
        scores={"test": [english, german]},
        evaluation_time=1.0,
        kg_co2_emissions=None,
    )
    written_by_mteb.to_disk(tmp_path / "STS22.json")
    (score,) = read(tmp_path).values()
    assert score.value == written_by_mteb.main_score


def test_the_folder_that_a_tool_makes_for_a_model_stands_for_its_files(tmp_path):
    write_json(tmp_path / "mteb" / ("0" * 40) / "STS12.json", result())
    written(tmp_path / "lm" / "org__model" / "samples_x.jsonl", sample_line())
    assert list(read(tmp_path / "mteb")) == ["STS12"]
    assert list(read(tmp_path / "lm")) == ["samples_x, acc"]


def test_two_revisions_of_a_model_are_not_its_seeds(tmp_path):
    for commit in ("0" * 40, "1" * 40):
        write_json(tmp_path / "model" / commit / "STS12.json", result())
    sources = sources_of_arguments([SystemArgument("model", tmp_path)])
    with pytest.raises(BadInput, match="holds 2 models"):
        read(sources["model"][0])


# ---------------------------------------------------------------- words of a command line


def test_a_pattern_with_a_name_gives_seeds_and_one_without_gives_systems(tmp_path):
    for name in ("a-1.csv", "a-2.csv"):
        written(tmp_path / name, "id,value\nq,1\n")
    paths = [str(tmp_path / "a-1.csv"), str(tmp_path / "a-2.csv")]
    assert sources_of_arguments([SystemArgument("a=a-*.csv", tmp_path)]) == {"a": paths}
    named = sources_of_arguments([SystemArgument("a-*.csv", tmp_path)])
    assert named == {"a-1": [paths[0]], "a-2": [paths[1]]}


@pytest.mark.parametrize("seeds", [("seed-1", "seed-2"), ("13", "42")])
def test_a_folder_of_folders_that_are_named_as_seeds_gives_seeds(tmp_path, seeds):
    for seed in seeds:
        write_json(tmp_path / "model" / seed / "STS12.json", result())
    sources = sources_of_arguments([SystemArgument("model", tmp_path)])
    assert tuple(Path(path).name for path in sources["model"]) == seeds


def test_a_folder_of_several_models_is_refused(tmp_path):
    """mteb writes a folder for each model, with one for each commit inside."""
    for model in ("ORG__A", "ORG__B"):
        write_json(tmp_path / "results" / model / ("0" * 40) / "STS12.json", result())
    (source,) = sources_of_arguments([SystemArgument("results", tmp_path)])["results"]
    message = rf"holds 2 models \(ORG__A, ORG__B\); .* NAME='{source}/\*' if they are seeds"
    with pytest.raises(BadInput, match=message):
        read(source)


def test_a_pattern_is_found_in_a_folder_whose_name_has_brackets(tmp_path):
    path = written(tmp_path / "run[1]" / "a.csv", "id,value\nq,1\n")
    sources = sources_of_arguments([SystemArgument("a=*.csv", tmp_path / "run[1]")])
    assert sources == {"a": [str(path)]}


def test_files_of_the_same_name_are_named_by_their_paths(tmp_path):
    for folder in ("x", "y"):
        written(tmp_path / folder / "a.csv", "id,value\nq,1\n")
    arguments = [SystemArgument(text, tmp_path) for text in ("x/a.csv", "y/a.csv")]
    assert list(sources_of_arguments(arguments)) == ["x/a.csv", "y/a.csv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=", "empty path"),
        ("=a.csv", "has no name before the `=`"),
        ("a=*.csv", "no file or folder matches"),
    ],
)
def test_a_word_that_names_no_system_is_refused(tmp_path, text, message):
    with pytest.raises(BadInput, match=message):
        sources_of_arguments([SystemArgument(text, tmp_path)])


# ---------------------------------------------------------------- malformed files

MALFORMED = {
    "no column of values": ("a.csv", "id,score\nq,1\n", "line 1: has no column `value`"),
    "an unknown column": ("a.csv", "id,value,tsak\nq,1,x\n", "Did you mean 'task'"),
    "a column twice": ("a.csv", "id,value,value\nq,1,1\n", "line 1: column value stands twice"),
    "a short line": ("a.csv", "id,value\nq,1\nq2\n", "line 3: has another number of cells"),
    "a word for a number": ("a.csv", "id,value\nq,high\n", "line 2: value: 'high'"),
    "a percentage": ("a.csv", "id,value\nq,83.4\n", "line 2: value: 83.4 is not a fraction"),
    "not a number": ("a.csv", "id,value\nq,nan\n", "line 2: value: nan is not a fraction"),
    "an item twice": ("a.csv", "id,value\nq,1\nq,0\n", "line 3: id: q stands twice"),
    "an empty id": ("a.csv", "id,value\n,1\n", "line 2: id: is empty"),
    "no items": ("a.csv", "id,value\n", "holds no items"),
    "an empty file": ("a.csv", "", "line 1: has no column `id`"),
    "a damaged npz": ("a.npz", "PK", "cannot be read as npz"),
    "a line that is no JSON": ("a.jsonl", sample_line() + "\n{", "line 2: not valid JSON"),
    "no samples": ("a.jsonl", "\n", "holds no samples"),
    "no document": ("a.jsonl", '{"metrics": ["acc"]}', "line 1: doc_id"),
    "a document twice": ("a.jsonl", f"{sample_line()}\n{sample_line()}", "line 2: doc_id: 0"),
    "only lists": ("a.jsonl", sample_line(acc=[1], acc_norm=[2]), "no metric has a number"),
    "a list on a later line": (
        "a.jsonl",
        f"{sample_line(acc_norm=[2])}\n{sample_line(1, acc=None)}",
        "no metric has a number for each document",
    ),
    "a metric in percent": ("a.jsonl", sample_line(acc=55), "line 1: acc: 55 is not a fraction"),
    "no result": ("a.json", "{}", "has neither `evaluations`"),
    "a list": ("a.json", "[]", "has neither `evaluations`"),
    "no revision": ("a.json", '{"task_name": "STS12"}', "dataset_revision: Field required"),
    "no subset": ("a.json", json.dumps(result(scores={"test": []})), "scores.test"),
    "no main score": (
        "a.json",
        json.dumps(result(scores={"test": [{"hf_subset": "x"}]})),
        "scores.test.0.main_score: must be a number",
    ),
    "scores in percent": (
        "a.json",
        json.dumps(result(scores={"test": [{"hf_subset": "x", "main_score": 83.4}]})),
        "divide percentages by 100",
    ),
    "a score file without scores": (
        "a.json",
        json.dumps(
            {"evaluations": [{"evaluator": "sts", "version": 2}], "scores": [], "sha256": ""}
        ),
        "scores: List should have at least 1 item",
    ),
    "another kind of file": ("a.txt", "x", "is of no known kind"),
    "values beside a score file": ("a.json.items.npz", "x", "belongs to a.json"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_file_is_refused_with_the_place(tmp_path, case):
    name, text, message = MALFORMED[case]
    path = written(tmp_path / name, text)
    with pytest.raises(BadInput) as error:
        read(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"ids": ["a"]}, "has no array `values`"),
        ({"values": [0.5]}, "ids: is missing"),
        ({"values": [0.5], "ids": ["a", "b"]}, "ids: has shape (2,)"),
        ({"values": ["x"], "ids": ["a"]}, "must hold numbers"),
        ({"values": [[0.5]], "ids": ["a"]}, "values: has shape (1, 1)"),
        ({"values": [50.0], "ids": ["a"]}, "values: entry 0: 50 is not a fraction"),
        ({"values": [0.5], "ids": ["a"], "gold": [1]}, "gold: unknown array"),
        ({"values": [0.5, 1], "ids": ["a", "a"]}, "id: a stands twice"),
    ],
)
def test_a_malformed_npz_is_refused_with_the_array(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(BadInput) as error:
        read(tmp_path / "a.npz")
    assert message in str(error.value)


def test_two_files_of_one_task_in_a_folder_are_refused(tmp_path):
    for name in ("STS12.json", "copy.json"):
        write_json(tmp_path / "mteb" / name, result())
    for date in ("2026-01-01T00-00-00.0", "2026-01-02T00-00-00.0"):
        written(tmp_path / "lm" / f"samples_x_{date}.jsonl", sample_line())
    for folder in ("mteb", "lm"):
        with pytest.raises(BadInput, match=r"task_name: STS12 is also|two files of x"):
            read(tmp_path / folder)


def test_results_of_lm_eval_without_samples_say_how_to_get_them(tmp_path):
    write_json(tmp_path / "results_2026.json", {"results": {}})
    with pytest.raises(BadInput, match="--log_samples"):
        read(tmp_path)


def test_an_unknown_metric_is_refused_with_the_known_ones(tmp_path):
    path = written(tmp_path / "samples.jsonl", sample_line())
    with pytest.raises(BadInput, match=r"unknown metric 'acc_nrom'.*Did you mean"):
        read(path, "acc_nrom")


@BOUNDED
@given(st.data())
def test_a_damaged_file_is_read_or_refused(tmp_path, data):
    """Bytes are lost or changed at any place."""
    texts = {
        "a.csv": "id,value,task\nq1,0.5,x\nq2,1,x\n",
        "a.jsonl": f"{sample_line(0)}\n{sample_line(1)}\n",
        "a.json": json.dumps(result()),
    }
    name = data.draw(st.sampled_from(sorted(texts)))
    content = texts[name].encode()
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, len(content)))
    path = tmp_path / name
    path.write_bytes(content[:start] + data.draw(st.binary(max_size=3)) + content[end:])
    try:
        assert read(path)
    except BadInput as error:
        assert str(path) in str(error)


def score_json(folder):
    """Write a score JSON of STS-B dev with values of items, and return its path."""
    generator = np.random.default_rng(0)
    items = {
        "stsb_dev/STS-B/dev": generator.uniform(0, 1, 20),
        "stsb_dev/gold/STS-B/dev": generator.uniform(0, 5, 20),
        "stsb_dev/sentences/STS-B/dev": np.arange(40).reshape(20, 2),
    }
    row = {"evaluator": "stsb_dev", "subset": "all", "metric": "spearman", "value": 0.5}
    row["task"] = evaluator_declaration("stsb_dev").tasks[0]
    content = {"evaluations": [{"evaluator": "stsb_dev", "version": 1}], "scores": [row]}
    path = folder / "mine.json"
    content |= write_items(folder / "mine.json.items.npz", items)
    write_json(path, with_digest(content))
    return path


def test_a_score_json_is_read_with_the_values_beside_it(tmp_path):
    (score,) = read(score_json(tmp_path)).values()
    assert score.item_count == 20
    assert score.replicates is not None


def test_values_of_single_items_pair_with_published_ones_also_if_not_all_tasks_are_judged(tmp_path):
    """The items of all tasks have one digest."""
    generator = np.random.default_rng(0)
    items = {}
    rows = []
    for number, (task, metric) in enumerate((("STS12", "spearman"), ("STS13", "pearson"))):
        items[f"sts/{task}/all"] = generator.uniform(0, 1, 20)
        items[f"sts/gold/{task}/all"] = generator.uniform(0, 5, 20)
        items[f"sts/sentences/{task}/all"] = np.arange(40).reshape(20, 2) + 40 * number
        rows.append(Score(task, "all", metric, 0.5))
    scores = [row._asdict() | {"evaluator": "sts"} for row in rows]
    content = {"evaluations": [{"evaluator": "sts", "version": 2}], "scores": scores}
    content |= write_items(tmp_path / "mine.json.items.npz", items)
    write_json(tmp_path / "mine.json", with_digest(content))

    of_sts = {name.removeprefix("sts/"): array for name, array in items.items()}
    published = make_replicates(rows, of_sts, evaluator_declaration("sts").items)
    (score,) = read(tmp_path / "mine.json", "spearman").values()
    assert score.replicates.items == published["items"]


@pytest.mark.parametrize("name", ["STS-B/dev", "gold/STS-B/dev", "sentences/STS-B/dev"])
@pytest.mark.parametrize("array", [np.full(20, np.nan), np.full((20, 2, 2), "x"), np.array(1)])
def test_values_of_items_that_cannot_be_resampled_are_refused_or_left_out(tmp_path, name, array):
    path = score_json(tmp_path)
    file = tmp_path / "mine.json.items.npz"
    with np.load(file) as archive:
        items = {key: archive[key] for key in archive.files}
    content = json.loads(path.read_text())
    write_json(path, with_digest(content | write_items(file, items | {f"stsb_dev/{name}": array})))
    try:
        (score,) = read(path).values()
        assert score.replicates is None or np.isfinite(score.replicates.clustered).all()
    except BadInput as error:
        assert str(path) in str(error)


@BOUNDED
@given(st.data())
def test_a_score_json_with_another_value_at_any_key_is_read_or_refused(tmp_path, data):
    path = score_json(tmp_path)
    content = json.loads(path.read_text())
    place = content
    key = data.draw(st.sampled_from(sorted(content)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
    place[key] = data.draw(st.sampled_from([None, "", "x", -1, 1e9, True, [], {}, ["x"], {"a": 1}]))
    write_json(path, with_digest(content))
    try:
        assert read(path)
    except BadInput as error:
        assert str(path) in str(error)


def test_two_variants_of_an_evaluator_in_one_file_are_refused(tmp_path):
    path = score_json(tmp_path)
    content = json.loads(path.read_text())
    content["evaluations"] *= 2
    write_json(path, with_digest(content))
    with pytest.raises(BadInput, match=r"evaluations.1: a second variant of stsb_dev"):
        read(path)


# ---------------------------------------------------------------- systems that cannot be compared


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("id,value,hash\nq1,0,h1\n", "1 of 2 items are only in the first: q2"),
        ("id,value,hash\nq1,0,h1\nq2,0,h2\nq3,0,h3\n", "1 of 3 items are only in the second: q3"),
        ("id,value,hash\nq1,0,h1\nq2,0,other\n", "have another content (hash): q2"),
        ("id,value\nq1,0\nq2,0\n", "only one of them states hashes"),
        ("id,value,task\nq1,0,x\nq2,0,x\n", "no task is in all systems"),
    ],
)
def test_systems_on_other_items_are_refused(tmp_path, second, message):
    first = written(tmp_path / "a.csv", "id,value,hash\nq1,0.5,h1\nq2,1,h2\n")
    other = written(tmp_path / "b.csv", second)
    with pytest.raises(BadInput) as error:
        read_systems({"a": [first], "b": [other]}, OPTIONS)
    assert message in str(error.value)


def test_results_of_mteb_on_other_revisions_are_refused(tmp_path):
    write_json(tmp_path / "a.json", result())
    write_json(tmp_path / "b.json", result(dataset_revision="def"))
    with pytest.raises(BadInput, match="revision abc of test/default against revision def"):
        read_systems({"a": [tmp_path / "a.json"], "b": [tmp_path / "b.json"]}, OPTIONS)


def test_a_file_that_is_given_twice_as_a_seed_is_refused(tmp_path):
    path = written(tmp_path / "a.csv", "id,value\nq1,0.5\nq2,1\n")
    with pytest.raises(BadInput, match="have the same scores"):
        read_systems({"a": [path, path], "b": [path]}, OPTIONS)


def test_a_source_without_values_of_items_that_is_given_twice_is_refused(tmp_path):
    write_json(tmp_path / "a.json", result())
    path = tmp_path / "a.json"
    with pytest.raises(BadInput, match="so one model was scored twice"):
        read_systems({"a": [path, path], "b": [path]}, OPTIONS)


def test_seeds_that_are_right_on_the_same_items_are_doubted_but_judged(tmp_path):
    """Two models may well answer all of a few documents in the same way."""
    for name in ("a", "b"):
        written(tmp_path / f"{name}.csv", "id,value\nq1,0\nq2,1\n")
    seeds = [tmp_path / "a.csv", tmp_path / "b.csv"]
    compared = read_systems({"a": seeds, "b": [tmp_path / "a.csv"]}, OPTIONS)
    (doubt,) = compared.doubts
    assert "have the same scores; check that they are two models" in doubt


def test_an_unknown_evaluator_is_refused_before_a_file_is_read(tmp_path):
    options = ReadingOptions(["stss"], tmp_path)
    with pytest.raises(BadInput, match="--evaluators: unknown evaluator 'stss'"):
        read_systems({"a": [tmp_path / "missing.csv"], "b": [tmp_path / "missing.csv"]}, options)


def test_seeds_with_different_tasks_are_refused(tmp_path):
    both = written(tmp_path / "a.csv", "id,value,task\nq,0.5,x\nq,1,y\n")
    one = written(tmp_path / "b.csv", "id,value,task\nq,0.25,x\n")
    with pytest.raises(BadInput, match="has 2 seeds of x and 1 of y"):
        read_systems({"a": [both, one], "b": [both]}, OPTIONS)
