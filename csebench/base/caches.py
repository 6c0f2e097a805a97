"""The one cache policy: a function whose result is kept for the life of a process is decorated with `cached`; with
`cached_by_folder`, if it reads paths that are relative to the current folder, as those of results are.

`clear` empties every such cache. Results that must not change while a process runs, such as the state of the code, use
`functools.cache` and say so.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_caches: list[Any] = []


def cached(function: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache`, registered so that `clear` empties it."""
    wrapper: Any = functools.cache(function)
    _caches.append(wrapper)
    return wrapper


def cached_by_folder(function: Callable[P, T]) -> Callable[P, T]:
    """`cached`, with a result for every folder that was the current one in a call."""
    kept = cached(lambda _, *args, **kwargs: function(*args, **kwargs))

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        return kept(os.getcwd(), *args, **kwargs)

    return wrapper


def clear() -> None:
    """Empty every registered cache, so that files are read again."""
    for wrapper in _caches:
        wrapper.cache_clear()
