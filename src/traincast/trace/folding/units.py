"""Where blocks repeat, and how things that are copied with them (ops, tensors, storages, modules) are numbered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.trace.graph import Ints

Flags = NDArray[np.bool_]

N_UNITS = 3
FIRST, MIDDLE, LAST = range(N_UNITS)
OUTSIDE = -1


class IrregularError(Exception):
    """The blocks of a step are not copies of each other. Not for users: the caller takes the longer way."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Where the blocks are: `path` is the list of blocks, `start` the first of the units, `period` blocks a unit."""

    path: str
    start: int = 0
    period: int = 1

    def unit_of(self, module_path: str) -> int:
        """The unit that a module (or a parameter) is in."""
        number = self.block_of(module_path)
        unit = -1 if number is None or number < self.start else (number - self.start) // self.period
        return unit if unit < N_UNITS else OUTSIDE

    def block_of(self, module_path: str) -> int | None:
        head = f"{self.path}."
        number = module_path[len(head) :].partition(".")[0] if module_path.startswith(head) else ""
        return int(number) if number.isdigit() else None

    def moved(self, module_path: str, by: int) -> str:
        """The same path in a block so many blocks later."""
        number = self.block_of(module_path)
        if number is None:
            return module_path
        head = f"{self.path}."
        return f"{head}{number + by}{module_path[len(head) + len(str(number)) :]}"


@dataclass(frozen=True, eq=False, slots=True)
class Items:
    """Things that are copied with their unit (ops, tensors, storages, modules), and their numbers in the longer step.

    `source` and `copy` say of each new thing which old one it is, and which copy of it.
    """

    unit: Ints  # of each old thing
    source: Ints
    copy: Ints
    new: Ints  # of each old thing outside the middle
    of_copy: Ints  # (old thing, copy): of those in the middle
    in_middle: tuple[Ints, Ints]  # by unit FIRST and LAST: what corresponds to an old thing in the middle; -1: nothing
    is_common: Flags  # of the first or last unit, but every unit points to it
    n_copies: int

    def resolve(self, refs: Ints, owner_unit: Ints, owner_copy: Ints, roles: Ints | None = None) -> Ints:
        """The new numbers of what owners point to; -1 stays.

        `roles` say of pointers to a neighbour what in the middle they stand for, where that is known better (>= 0).
        """
        found = np.where(refs >= 0, self.new[refs], -1)
        unit = np.where(refs >= 0, self.unit[refs], OUTSIDE)
        shift = np.where(unit == FIRST, -1, 1)
        to_copy = owner_copy + shift
        is_neighbour = (owner_unit == MIDDLE) & ((unit == FIRST) | (unit == LAST)) & ~self.is_common[refs]
        is_neighbour &= (to_copy >= 0) & (to_copy < self.n_copies)
        rows = np.flatnonzero(is_neighbour)
        role = np.where(unit[rows] == FIRST, self.in_middle[0][refs[rows]], self.in_middle[1][refs[rows]])
        if roles is not None:
            role = np.where(roles[rows] >= 0, roles[rows], role)
        require(bool(np.all(role >= 0)), "a pointer to a neighbour that has nothing like it")
        found[rows] = self.of_copy[role, to_copy[rows]]
        rows = np.flatnonzero((unit == MIDDLE) & (owner_unit != OUTSIDE))
        copy = np.choose(
            owner_unit[rows], [np.zeros_like(rows), owner_copy[rows], np.full_like(rows, self.n_copies - 1)]
        )
        found[rows] = self.of_copy[refs[rows], copy]
        require(bool(np.all((unit != MIDDLE) | (owner_unit != OUTSIDE))), "a pointer into the middle from outside")
        return found


def require(holds: bool, why: str) -> None:
    if not holds:
        raise IrregularError(why)


def runs_spread(is_middle: Flags, n_copies: int, *, backward: Flags | None = None) -> tuple[Ints, Ints]:
    """Numbers with every run of those in the middle written `n_copies` times, and the copy; last copy first where
    `backward`."""
    marks = np.flatnonzero(np.diff(np.concatenate([[False], is_middle, [False]]).astype(np.int8)))
    sources, copies, at = [], [], 0
    for low, high in marks.reshape(-1, 2).tolist():
        sources.append(np.arange(at, low))
        copies.append(np.zeros(low - at, dtype=np.int64))
        order = np.arange(n_copies)
        if backward is not None and backward[low]:
            order = order[::-1]
        sources.append(np.tile(np.arange(low, high), n_copies))
        copies.append(np.repeat(order, high - low))
        at = high
    sources.append(np.arange(at, len(is_middle)))
    copies.append(np.zeros(len(is_middle) - at, dtype=np.int64))
    return np.concatenate(sources).astype(np.int64), np.concatenate(copies).astype(np.int64)


def number_items(unit: Ints, source: Ints, copy: Ints, in_middle: tuple[Ints, Ints], is_common: Flags, n: int) -> Items:
    """Items in the order in which they come in the longer step."""
    new = np.full(len(unit), -1, dtype=np.int64)
    of_copy = np.full((len(unit), n), -1, dtype=np.int64)
    is_middle = unit[source] == MIDDLE
    rows = np.flatnonzero(~is_middle)
    new[source[rows]] = rows
    rows = np.flatnonzero(is_middle)
    of_copy[source[rows], copy[rows]] = rows
    return Items(unit, source, copy, new, of_copy, in_middle, is_common, n)


def with_end(items: Items, new: Ints) -> Items:
    """The same items with one more behind the last, outside."""
    n = items.n_copies
    return Items(
        np.append(items.unit, OUTSIDE),
        items.source,
        items.copy,
        new,
        np.concatenate([items.of_copy, np.full((1, n), -1)]),
        (np.append(items.in_middle[0], -1), np.append(items.in_middle[1], -1)),
        np.append(items.is_common, False),
        n,
    )


def gather_rows(start: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Ragged rows picked by number: the new starts, and where in the old values each new value is."""
    lengths = start[rows + 1] - start[rows]
    new_start = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=new_start[1:])
    return new_start, np.repeat(start[rows] - new_start[:-1], lengths) + np.arange(new_start[-1])
