"""The caches of the engine: results are kept until the process ends or calls `clear`.

A result that must not change while a process runs, such as the state of its code, is kept by
`functools.cache` instead. A comment there says why.
"""

import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_caches: list[Any] = []


def cached(function: Callable[P, T]) -> Callable[P, T]:
    """Remember the results of a function, as `functools.cache` does, until `clear`."""
    wrapper: Any = functools.cache(function)
    _caches.append(wrapper)
    return wrapper


def cached_by_folder(function: Callable[P, T]) -> Callable[P, T]:
    """Remember the results of a function for each current folder.

    It is for functions that read relative paths, such as the paths of results.
    """

    @cached
    def in_folder(_folder: str, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        return in_folder(os.getcwd(), *args, **kwargs)

    return wrapper


def clear() -> None:
    """Forget all results, so that every file is read again."""
    for wrapper in _caches:
        wrapper.cache_clear()
