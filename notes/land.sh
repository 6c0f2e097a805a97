# bash land.sh: scores of /work/wt/x into the worktree of `landing` (/work/wt/l), and all that is made from them
set -e
L=/work/wt/l X=/work/wt/x; cd $L; . /tmp/venv/bin/activate; export PYTHONPATH=$L; unset CSEBENCH_DATA
rm -rf results/mini/scores && cp -r $X/results/mini/scores results/mini/
find results/mini/scores -name '*.items.npz' -delete
CSEBENCH_DATA=/work/shared/data python - <<'P'
from pathlib import Path
from csebench.plan import targets
wanted = {targets.score_path(run, e, "mini") for page in targets.pages("mini") for run, e in page.available()}
there = set(Path("results/mini/scores").rglob("*.json"))
gone = [p.unlink() for p in there - wanted]
print(len(wanted), "wanted,", len(wanted - there), "missing,", len(gone), "deleted")
P
python -m csebench render all --scale mini | wc -l
python docs/quoted_numbers.py
python docs/examples.py
python -m csebench render all --scale mini --check
python /tmp/notes/answers.py results/mini > /tmp/after.tsv
python /tmp/notes/changed.py /tmp/notes/before.tsv /tmp/after.tsv > /tmp/changed.txt
git status --short | grep -v results/mini/ ; ls -la results/mini/msse/figure4.svg; git add -A results && git ls-files -z | xargs -0 du -cb | tail -1
