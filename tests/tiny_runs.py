"""Settings of runs that take a second, for fixtures and for processes that a test starts."""

TINY = {"steps": 4, "batch_size": 8, "evaluate_every": 2, "warmup_steps": 0}
# what is filled within so few steps, and needs no model of the hub
TINY_SUBSTITUTES = {
    "augmentation": {"back_translation": "insert_copies"},
    "buffer": {"1024": 12},
    "generator": {
        "distilbert/distilbert-base-uncased@12040accade4e8a0f71eabdb258fecc2e7e948be": "self"
    },
    "groups": {"128": 8},
    "neighbours": {"16": 3},
    "pretraining": {"condenser": "none"},
    "projector": {"4096": 64},
    "queue": {"160": 12, "384": 12},
}
# Batch normalisation over a few rows of a random encoder magnifies dropout.
TINY_PARAMS = {"diffcse": {"dropout": 0.02}, "infocse": {"dropout": 0.02}}


def weights(out):
    """Read the bytes of the weights of a run's model."""
    return (out / "model" / "model.safetensors").read_bytes()
