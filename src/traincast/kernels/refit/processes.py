"""Work that can be done at once, on several cores: one process a core, each with a copy of what is in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_JOBS: dict[int, tuple[Callable[[Any], Any], Sequence[Any]]] = {}  # forked processes find theirs here


def at_once(function: Callable[[Item], Result], items: Sequence[Item], n_processes: int = 1) -> list[Result]:
    """The results in order. Only these pass between processes; what the function holds on to does not."""
    if min(n_processes, len(items)) < 2:
        return [function(item) for item in items]
    number = len(_JOBS)
    _JOBS[number] = (function, items)
    try:
        with ProcessPoolExecutor(n_processes, mp_context=get_context("fork")) as pool:
            return list(pool.map(partial(_run, number), range(len(items))))
    finally:
        del _JOBS[number]


def _run(number: int, place: int) -> Any:
    function, items = _JOBS[number]
    return function(items[place])
