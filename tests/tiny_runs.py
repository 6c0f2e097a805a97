"""Settings of runs that a test can pay, for the fixtures and for processes that a test starts."""

# Steps that a test can pay, and a queue that fills within them.
TINY = {"steps": 4, "batch_size": 8, "evaluate_every": 2, "warmup_steps": 0}
TINY_COMPONENTS = {"moco": {"queue": 12}, "rtd": {"generator": "self"}}  # DistilBERT is on the hub
TINY_METHODS = {
    "msse": {"augmentation": "insert_copies"},
    "infocse": {"pretraining": "none", "dropout": 0.02},
    "iscse": {"buffer": 12, "neighbours": 3},
    "diffcse": {"dropout": 0.02},  # batch normalisation over a few rows of a random encoder magnifies dropout
    "scd": {"projector": 64},
}
