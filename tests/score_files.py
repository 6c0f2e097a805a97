"""Parts of score JSONs that tests write without an evaluation."""

from csebench.plan.registry import protocol


def scored_by(evaluator: str, **changed) -> dict:
    """The entry under `evaluations` of today's version of an evaluator."""
    wanted = protocol(evaluator)
    params = {"params": wanted.params} if wanted.params else {}
    return {"evaluator": wanted.declaration.name, "version": wanted.declaration.version, **params, **changed}
