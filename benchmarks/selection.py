"""Whether settings depend on the search that chose them: the searches of the main comparison again, with other seeds
and subsets (scale `again`), and with the pairs of STS-B dev that are in no test set (scale `unseen`).

    python benchmarks/selection.py [--out FOLDER] [--scale mini] [--quick]

FOLDER becomes one of your own that has both scales: their tables are made like any others.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from tabulate import tabulate

from csebench.base.files import sha256
from csebench.base.project import ROOT, join
from csebench.data.sts import PUBLISHED_COUNTS, expected_counts, read_sts
from csebench.plan import catalog, tuning

SEARCHES = ("simcse", "simcse+ami", "micse")  # MoCo has nothing to search


def key(left: str, right: str) -> frozenset[str]:
    """A pair without order, case and punctuation."""
    return frozenset(re.sub(r"[\W_]+", "", text.lower()) for text in (left, right))


def write_unseen(root: Path, folder: Path) -> int:
    """A data root of links to another's files, with those pairs of STS-B dev that STS12 to STS16 lack; how many."""
    shutil.copytree(root.resolve(), folder, copy_function=os.symlink)
    sets = [pairs for year in range(12, 17) for pairs in read_sts(root, f"STS{year}")]
    seen = {key(*pair) for pairs in sets for pair in zip(pairs.left, pairs.right, strict=True)}
    lines = (root / catalog.STSB_DEV).read_text().splitlines(keepends=True)
    kept = [line for line in lines if key(*line.rstrip("\n").split("\t")[5:7]) not in seen]
    counts = {task: dict(expected_counts(root, task, PUBLISHED_COUNTS)) for task in PUBLISHED_COUNTS}
    counts["STS-B"]["dev"] = len(kept)
    for name, text in ((catalog.STSB_DEV, "".join(kept)), ("counts.yaml", yaml.safe_dump(counts))):
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(text)
    return len(kept)


def write_folder(folder: Path, scale: str) -> None:
    """The folder with both scales and the data of the second."""
    pairs = write_unseen(Path(catalog.given_root(catalog.scale(scale)) or catalog.FETCHED), folder / "data/unseen")
    about = {
        "path": catalog.STSB_DEV,
        "sha256": sha256(folder / "data/unseen" / catalog.STSB_DEV),
        "note": f"{pairs} pairs",
    }
    (folder / "data/registry.yaml").write_text(yaml.safe_dump({"unseen": about}))
    content = yaml.safe_load((ROOT / f"config/{scale}.yaml").read_text()) | {"tuned": True}
    again = {"scale": "again", "seeds": [*content["seeds"], *tuning.trial_seeds(catalog.scale(scale))]}
    unseen = {"scale": "unseen", "dev": "unseen", "data_root": "data/unseen"}
    (folder / "config").mkdir()
    for changed in (again, unseen):
        (folder / f"config/{changed['scale']}.yaml").write_text(yaml.safe_dump(content | changed, sort_keys=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="(default: a temporary folder)")
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--quick", action="store_true", help="one trial of one search at scale smoke")
    args = parser.parse_args()
    scale, names = ("smoke", SEARCHES[:1]) if args.quick else (args.scale, SEARCHES)
    folder = args.out or Path(tempfile.mkdtemp())
    if not (folder / "config").exists():
        write_folder(folder, scale)
    join([str(folder)])
    command = [sys.executable, "-m", "csebench", "tune", *names, *(["--trials", "1"] if args.quick else []), "--scale"]
    searches = [subprocess.Popen([*command, name], stdout=sys.stderr) for name in ("again", "unseen")]
    if any([search.wait() for search in searches]):  # a list: both are waited for
        sys.exit("A search failed; the same command goes on.")
    rows = []
    for name in names:
        for of_scale in (scale, "again", "unseen"):
            if search := tuning.made_search(name, of_scale):
                best = tuning.best_trial(search.trials)
                rows.append([name, of_scale, tuning.settings_text(best.settings), 100 * best.dev])
    print(tabulate(rows, ["search", "scale", "chosen", "STS-B dev"], floatfmt=".2f"))


if __name__ == "__main__":
    main()
