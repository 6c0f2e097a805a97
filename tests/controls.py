"""Controls, models whose scores are known in advance, as tests use them."""

from csebench.plan.catalog.registry import load, typed_params


def random_model(dimensions, seed=1):
    """Return a model that gives every sentence a random vector of its own."""
    return load("random")(typed_params("random", {"dimensions": dimensions}), seed)
