"""Runs of mini, one after another in one process, each claimed by a file; `csebench work` and `publish` without starting python anew."""
import os, sys, time, traceback
from pathlib import Path
from csebench import run
from csebench.plan import targets
from csebench.base.errors import BadInput
from csebench.base.runs import lock_run
from csebench.plan import catalog
claims = Path("/tmp/claims"); claims.mkdir(exist_ok=True)
until = float(sys.argv[1])  # epoch seconds: no run begins later
order = {}
for page in targets.pages("mini"):
    if not page.papers[1:]:
        for spec in page.available_runs().values():
            order.setdefault(spec.run_id, spec)
for page in targets.pages("mini"):
    for spec in page.available_runs().values():
        order.setdefault(spec.run_id, spec)
wanted = {}
for page in targets.pages("mini"):
    for run_id, evaluator in page.available():
        wanted.setdefault(run_id, set()).add(evaluator)
todo = sorted(order.values(), key=lambda s: s.run_before is not None)
print(len(todo), "runs", flush=True)
for spec in todo:
    if time.time() > until: break
    rid = spec.run_id
    evs = sorted(wanted.get(rid, ()))
    missing = [e for e in evs if not targets.score_path(rid, e, "mini").exists()]
    if evs and not missing: continue
    if not evs and (catalog.RUNS / rid / "train.json").exists(): continue
    try:
        fd = os.open(claims / rid, os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        continue
    started = time.time()
    try:
        run.work(rid, "mini", None, 0, 1)
        trained = time.time()
        for e in evs:
            run.publish(rid, e, "mini")
        print(f"{time.strftime('%T')} {rid} {trained-started:.0f} s, publish {time.time()-trained:.0f} s: {' '.join(evs)}", flush=True)
    except Exception as error:
        print(f"{time.strftime('%T')} FAILED {rid}: {error!r}", flush=True)
        (claims / rid).unlink(missing_ok=True)
        if not isinstance(error, BadInput): traceback.print_exc()
