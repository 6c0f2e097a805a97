"""Settings of runs that take a second, for fixtures and for processes that a test starts."""

TINY = {"steps": 4, "batch_size": 8, "evaluate_every": 2, "warmup_steps": 0}
# what is filled within so few steps, and needs no model of the hub
TINY_SUBSTITUTES = {
    "augmentation": {"back_translation": "insert_copies"},
    "buffer": {"1024": 12},
    "document_lines": {"100": 4},
    "generator": {
        "distilbert/distilbert-base-uncased@12040accade4e8a0f71eabdb258fecc2e7e948be": "self"
    },
    "groups": {"128": 8},
    "max_length": {"131": 64, "512": 64},
    "max_span": {"512": 12},
    "min_span": {"32": 3},
    "neighbours": {"16": 3},
    "pretraining": {"condenser": "none", "simcse": "none"},
    "projector": {"4096": 64},
    "queue": {"160": 12, "384": 12},
    "teacher": {
        "princeton-nlp/unsup-simcse-bert-base-uncased"
        "@0c1b4b17e8b6c285152fdc748feb50872f18f5ad": "self",
    },
    "teachers": {
        "princeton-nlp/unsup-simcse-bert-base-uncased"
        "@0c1b4b17e8b6c285152fdc748feb50872f18f5ad": "self",
        "voidism/diffcse-bert-base-uncased-sts@ea605f716bd57f97407640374487c2c9effc94af"
        " princeton-nlp/unsup-simcse-bert-large-uncased"
        "@a6db567693e8fec332a718036c4ad58f9c85cd21": "self self",
    },
}
TINY_PARAMS = {
    # Batch normalisation over a few rows of a random encoder magnifies dropout.
    "diffcse": {"dropout": 0.02},
    "infocse": {"dropout": 0.02},
    "vascl": {"head_rate": 1.0},  # tests raise the learning rate, and its head's would be 0.1
}


def weights(out):
    """Read the bytes of the weights of a run's model, of all its encoders."""
    files = sorted((out / "model").rglob("model.safetensors"))
    return b"".join(file.read_bytes() for file in files)
