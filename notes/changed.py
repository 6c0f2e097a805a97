"""python changed.py before.tsv after.tsv: questions whose answer is of another kind, with both answers."""
import re, sys
def kind(text):
    t = text.lower()
    for word, k in (("cannot be asked", "unasked"), ("not run here", "not run"), ("nothing is run", "not run"), ("no answer", "no answer"), ("score the same", "same"), ("changes nothing", "same"), ("same runs", "same runs"), ("beats", "better"), ("is worse than", "worse"), ("is not shown to", "not shown")):
        if word in t: return k
    return re.sub(r"[-+]?\d[\d.]*", "#", t)
def read(path):
    rows = {}
    for line in open(path):
        page, text = line.rstrip("\n").split("\t", 1)
        q = text.partition("?")[0] if not text.startswith("**") else "(primary)"
        rows.setdefault((page, q), text)
    return rows
a, b = read(sys.argv[1]), read(sys.argv[2])
for key in sorted({*a, *b}):
    x, y = a.get(key, "(none)"), b.get(key, "(none)")
    if kind(x) != kind(y): print(*key, sep=" | "); print("  before:", x); print("  now:   ", y)
