"""The one cache policy: a function whose result is kept for the life of a process is decorated with `cached`.

`clear` empties every such cache. Results that must not change while a process runs, such as the state of the code, use
`functools.cache` and say so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_caches: list[Any] = []


def cached(function: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache`, registered so that `clear` empties it."""
    wrapper = functools.cache(function)
    _caches.append(wrapper)
    return wrapper


def clear() -> None:
    """Empty every registered cache, so that files are read again."""
    for wrapper in _caches:
        wrapper.cache_clear()
