"""A made-up project of papers and one scale, for tests of what is made from papers and scores."""

import shutil

import yaml

from csebench.base import caches
from csebench.base.project import ROOT

SCALE = "smoke"


def clear():
    caches.clear()


def use_project(folder, patch):
    """Let a folder be the project, with links to the code, encoders and standard test sets that
    it lacks."""
    (folder / "data").mkdir(exist_ok=True)
    for name in ("methods", "evaluators", "encoders", "data/test_sets.yaml"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    patch.setattr("csebench.base.project.ROOT", folder)
    clear()


def copy_project(folder, patch, *folders):
    """Make a copy of the project's YAML files in these folders, to be changed, the project."""
    for name in folders:
        shutil.copytree(ROOT / name, folder / name)
    (folder / "data").mkdir()
    for path in (ROOT / "data").glob("*.yaml"):
        shutil.copy(path, folder / "data")
    use_project(folder, patch)


def made_up(folder, patch, *papers, name=SCALE, **changed):
    """Make a project in `folder`, which becomes the current one; `changed` are values of its
    scale."""
    scale = {
        "scale": name,
        "purpose": "tests.",
        "data_root": str(ROOT / "data" / "smoke"),
        "dev": "stsb-dev-smoke",
    }
    scale |= {"corpus": "wiki1m-github", "sizes": {"1%": 10_000, "10%": 100_000, "100%": 1_000_000}}
    scale |= {"seeds": [1, 2, 3], "seeds_by_size": {"1%": [1]}}
    scale |= {"encoders": {"bert-base": {"name": "encoders/bert-mini-wiki", "revision": "0" * 16}}}
    files = {
        f"papers/{p['name']}": {"title": "A paper", "reference": "Somebody", **p} for p in papers
    }
    for file, content in (files | {f"config/{name}": scale | changed}).items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / f"{file}.yaml").write_text(
            yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        )
    (folder / "data").mkdir(exist_ok=True)
    shutil.copy(ROOT / "data" / "registry.yaml", folder / "data")
    use_project(folder, patch)
    patch.chdir(folder)


def table(rows, columns, **more):
    """Of rows {label: (method, printed values)}; a row without a method is not run."""
    made = []
    for label, (method, values) in rows.items():
        run = {"run": {"method": method}} if method else {"missing": "not here"}
        made.append({"label": label, "source": "measured", "values": values} | run)
    return {"title": "A table", "columns": columns, "rows": made, **more}
