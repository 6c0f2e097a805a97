"""Results that a process keeps: declared by `cached`, cleared in one place."""

from __future__ import annotations

import functools

_caches: list = []


def cached(function):
    """`functools.cache` that `clear` knows of."""
    kept = functools.cache(function)
    _caches.append(kept)
    return kept


def clear() -> None:
    """Forget every result: what is read again is read from disk."""
    for kept in _caches:
        kept.cache_clear()
