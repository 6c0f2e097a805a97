"""The one cache policy: results that are kept for the life of a process, until `clear`. What
must not change while a process runs, such as the state of its code, uses `functools.cache` and
says so."""

import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_caches: list[Any] = []


def cached(function: Callable[P, T]) -> Callable[P, T]:
    """`functools.cache`, which `clear` empties."""
    wrapper: Any = functools.cache(function)
    _caches.append(wrapper)
    return wrapper


def cached_by_folder(function: Callable[P, T]) -> Callable[P, T]:
    """`cached`, with a result per current folder: for what reads relative paths, as those of
    results are."""
    kept = cached(lambda _, *args, **kwargs: function(*args, **kwargs))

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        return kept(os.getcwd(), *args, **kwargs)

    return wrapper


def clear() -> None:
    """Let every file be read again."""
    for wrapper in _caches:
        wrapper.cache_clear()
