"""What was worked out before, as much as fits: a server that is asked about everything must stay small."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Owner = TypeVar("Owner")
Value = TypeVar("Value")


class Kept(Generic[Owner, Value]):
    """Values that were asked for last. They belong to an owner, and go with it."""

    def __init__(self, most_bytes: int, size_of: Callable[[Value], int]) -> None:
        self.most_bytes, self._size_of = most_bytes, size_of
        self._values: OrderedDict[tuple[weakref.ref[Owner], Hashable], tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def n_bytes(self) -> int:
        with self._lock:
            return self._n_bytes()

    def get(self, owner: Owner, how: Hashable, make: Callable[[], Value]) -> Value:
        """What was made for this owner in this way, made now if it is not there."""
        key = (weakref.ref(owner), how)
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        made = make()  # two threads may make the same one: better than that one waits for all others
        with self._lock:
            self._values[key] = made, self._size_of(made)
            for old in [old for old in self._values if old[0]() is None]:
                del self._values[old]
            while self._n_bytes() > self.most_bytes:
                self._values.popitem(last=False)
        return made

    def _n_bytes(self) -> int:
        return sum(size for _, size in self._values.values())
