"""Folders that join the project: `csebench init`, `csebench snakefile`, and the option `--project` of every verb."""

from csebench.base.files import write_text
from csebench.base.project import MARKER, ROOT

LAYOUT = ("methods", "methods/components", "evaluators", "papers", "evidence", "config", "data")


def init(args):
    """Make a folder for one's own methods, papers and results; what is there stays."""
    for name in LAYOUT:
        (args.folder / name).mkdir(parents=True, exist_ok=True)
    if not (args.folder / MARKER).exists():
        write_text(
            args.folder / MARKER, "In this folder, csebench finds its methods, papers, scales … and writes results.\n"
        )
    print(f"{args.folder}: put your own files into {', '.join(LAYOUT)}. In it, for example:")
    print(f"  cd {args.folder}\n  csebench new method mine\n  csebench try methods/mine.py")


def snakefile(args):
    """Print the path of the workflow: `snakemake -s $(csebench snakefile) -j4 results/table2.md`."""
    print(ROOT / "Snakefile")
