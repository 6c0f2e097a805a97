"""A made-up project of papers and one scale, for tests of what is made from papers and scores.

Nothing is trained in it. tests/score_files.py writes its scores.
"""

import shutil

import yaml

from csebench.base import caches
from csebench.base.project import ROOT

SCALE = "smoke"


def made_up(folder, patch, *papers, name=SCALE, **changed):
    """Make a project in a folder, which becomes the current project and the current folder.

    Args:
        patch: pytest's monkeypatch, which undoes it.
        papers: contents of papers/*.yaml, without title and reference.
        name: of the only scale.
        changed: keys of the scale that get another value.
    """
    for paper in papers:
        content = {"title": "A paper", "reference": "Somebody", **paper}
        write_yaml(folder / "papers" / f"{paper['name']}.yaml", content)

    scale = {
        "scale": name,
        "purpose": "tests.",
        "data_root": str(ROOT / "data" / "smoke"),
        "dev": "stsb-dev-smoke",
        "corpus": "wiki1m-github",
        "sizes": {"1%": 10_000, "10%": 100_000, "100%": 1_000_000},
        "seeds": [1, 2, 3],
        "seeds_by_size": {"1%": [1]},
        "encoders": {"bert-base": {"name": "encoders/bert-mini-wiki", "revision": "0" * 16}},
    }
    write_yaml(folder / "config" / f"{name}.yaml", scale | changed)

    (folder / "data").mkdir(exist_ok=True)
    shutil.copy(ROOT / "data" / "registry.yaml", folder / "data")
    use_project(folder, patch)
    patch.chdir(folder)


def table(rows, columns, **more):
    """Make a table of a paper.

    Args:
        rows: (method, printed values) by label. A row without a method is not run.
        more: further keys of the table.
    """
    listed = []
    for label, (method, values) in rows.items():
        row = {"label": label, "source": "measured", "values": values}
        if method:
            row["run"] = {"method": method}
        else:
            row["missing"] = "not here"
        listed.append(row)
    return {"title": "A table", "columns": columns, "rows": listed, **more}


def unprinted_table(methods, columns, **more):
    """Make a table that prints no value.

    Args:
        methods: {label of the row: method}.
        more: further keys of the table.
    """
    nothing_printed = [None] * len(columns)
    rows = {label: (method, nothing_printed) for label, method in methods.items()}
    return table(rows, columns, **more)


def copy_project(folder, patch, *folders):
    """Copy the YAML files of these folders and of data/, to be changed, and make it the project."""
    for name in folders:
        shutil.copytree(ROOT / name, folder / name)
    (folder / "data").mkdir()
    for path in (ROOT / "data").glob("*.yaml"):
        shutil.copy(path, folder / "data")
    use_project(folder, patch)


def use_project(folder, patch):
    """Make a folder the current project.

    If it lacks code, encoders or standard test sets, it gets links to those of the real project.
    """
    (folder / "data").mkdir(exist_ok=True)
    for name in ("methods", "evaluators", "encoders", "data/test_sets.yaml"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    patch.setattr("csebench.base.project.ROOT", folder)
    clear()


def clear():
    """Forget what was read of a project, because its files have changed."""
    caches.clear()


def write_yaml(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
