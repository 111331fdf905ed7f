"""What is worked out once for each graph, and goes with it."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from traincast.trace.graph import Graph

Value = TypeVar("Value")


def once_per_graph(find: Callable[[Graph], Value]) -> Callable[[Graph], Value]:
    """The same function, which remembers its answer for as long as somebody holds the graph."""
    known: weakref.WeakKeyDictionary[Graph, Value] = weakref.WeakKeyDictionary()

    @functools.wraps(find)
    def remembered(graph: Graph) -> Value:
        if graph not in known:
            known[graph] = find(graph)
        return known[graph]

    return remembered
