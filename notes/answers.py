"""Answers of mini's pages: python answers.py FOLDER > file; used to compare the study of 2026-11-23 with the new one."""
import re, sys
from pathlib import Path
root = Path(sys.argv[1])
for path in sorted(root.glob("*/*.md")) + [root / "methods.md"]:
    lines = [l for l in path.read_text().splitlines() if l.startswith("**") and not l.startswith("**Trained") or re.match(r"(Do|Does|Is|Are|Which)\b.*\?", l)]
    for l in lines: print(f"{path.relative_to(root)}\t{l}")
