"""Whether settings depend on the search that chose them: the searches of the main comparison at scale mini again, with
other seeds and subsets (scale `again`), and on the pairs of STS-B dev that are in no test set (scale `unseen`).

    python benchmarks/selection.py [--out FOLDER] [--quick]

FOLDER becomes one of your own that has both scales: their tables are made like any others.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from _shared import ROOT, parser
from tabulate import tabulate

from csebench.base.files import sha256
from csebench.base.project import join
from csebench.data.sts import PUBLISHED_COUNTS, expected_counts, read_sts
from csebench.plan import catalog, tuning

SEARCHES = ("simcse", "simcse+ami", "micse")  # MoCo has nothing to search


def write_data(root: Path, folder: Path) -> None:
    """Links to the files of a data root, and those pairs of its STS-B dev that STS12 to STS16 lack."""

    def key(*pair: str) -> frozenset[str]:  # without order, case and punctuation
        return frozenset(re.sub(r"[\W_]+", "", text.lower()) for text in pair)

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


def write_folder(folder: Path, scale: str) -> None:
    """Both scales, and the data of the second."""
    data = folder / "data/unseen"
    write_data(Path(catalog.given_root(catalog.scale(scale)) or catalog.FETCHED), data)
    dev = {"path": catalog.STSB_DEV, "sha256": sha256(data / catalog.STSB_DEV), "note": "its pairs in no test set"}
    content = yaml.safe_load((ROOT / f"config/{scale}.yaml").read_text()) | {"tuned": True}
    other_seeds = [*content["seeds"], *tuning.trial_seeds(catalog.scale(scale))]
    files = {"data/registry.yaml": {"unseen": dev}, "config/again.yaml": content | {"seeds": other_seeds}}
    files["config/unseen.yaml"] = content | {"dev": "unseen", "data_root": "data/unseen"}
    (folder / "config").mkdir()
    for name, of_file in files.items():
        named = {"scale": Path(name).stem} if "config" in name else {}
        (folder / name).write_text(yaml.safe_dump(of_file | named, sort_keys=False))


def main():
    options = parser(__doc__, "one trial of one search at scale smoke")
    options.add_argument("--out", type=Path, help="(default: a temporary folder)")
    args = options.parse_args()
    scale, names, more = ("smoke", SEARCHES[:1], ["--trials", "1"]) if args.quick else ("mini", SEARCHES, [])
    folder = args.out or Path(tempfile.mkdtemp())
    if not (folder / "config").exists():
        write_folder(folder, scale)
    join([str(folder)])
    tune = [sys.executable, "-m", "csebench", "tune", *names, *more, "--scale"]
    searches = [subprocess.Popen([*tune, name], stdout=sys.stderr) for name in ("again", "unseen")]
    if any([search.wait() for search in searches]):  # a list: both are waited for
        sys.exit("A search failed; the same command goes on.")
    made = {(n, s): tuning.made_search(n, s) for n in names for s in (scale, "again", "unseen")}
    best = {key: tuning.best_trial(search.trials) for key, search in made.items() if search}
    rows = [[*key, tuning.settings_text(trial.settings), 100 * trial.dev] for key, trial in best.items()]
    print(tabulate(rows, ["search", "scale", "chosen", "STS-B dev"], floatfmt=".2f"))


if __name__ == "__main__":
    main()
