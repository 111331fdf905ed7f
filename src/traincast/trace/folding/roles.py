"""What in the middle unit is at the place of something in the first or in the last one."""

from __future__ import annotations

from difflib import SequenceMatcher

import numpy as np

from traincast.trace.folding.units import FIRST, LAST, MIDDLE, OUTSIDE, Flags, Items, gather_rows
from traincast.trace.graph import Graph, Ints, Phase, Ragged


def adds_from_outside(graph: Graph, tensor_unit: Ints) -> Flags:
    """Sums of gradients with one that no block makes (of a table that is used elsewhere too): no block has the like."""
    is_sum = np.array([name == "aten.add" for name in graph.names], dtype=bool)[graph.op_name]
    from_outside = graph.op_inputs.sums((tensor_unit == OUTSIDE).astype(np.float64)) > 0
    return is_sum & from_outside & (graph.op_phase == Phase.BACKWARD)


def roles_of(unit: Ints, part: Ints, kind: Ints) -> tuple[Ints, Ints]:
    """What is at the same place of the middle unit: of the first and of the last unit, which may do a little more."""
    found = (np.full(len(unit), -1, dtype=np.int64), np.full(len(unit), -1, dtype=np.int64))
    for one in np.unique(part).tolist():
        middle = np.flatnonzero((unit == MIDDLE) & (part == one))
        for which, other in ((0, FIRST), (1, LAST)):
            members = np.flatnonzero((unit == other) & (part == one))
            for here, there, length in _matches(kind[members].tolist(), kind[middle].tolist()):
                found[which][members[here : here + length]] = middle[there : there + length]
    return found


def _matches(one: list[int], other: list[int]) -> list[tuple[int, int, int]]:
    """Runs of equal things in two lists: where they begin in each, and how long they are."""
    if one == other:
        return [(0, 0, len(one))]
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return [(block.a, block.b, block.size) for block in blocks]


def roles_by_neighbours(lists: Ragged, ops: Items, tensors: Items) -> Ints:
    """What in the middle a pointer from the middle to a neighbour stands for, by what the other neighbour points to.

    A running sum of gradients starts in the last unit with a summand, and goes on with sums.
    """
    found = np.full(len(lists.values), -1, dtype=np.int64)
    for which, target in ((0, LAST), (1, FIRST)):
        like = np.flatnonzero(ops.in_middle[which] >= 0)
        own = ops.in_middle[which][like]
        same = lists.lengths[like] == lists.lengths[own]
        _, theirs = gather_rows(lists.start, like[same])
        _, ours = gather_rows(lists.start, own[same])
        points = (tensors.unit[lists.values[ours]] == target) & (tensors.unit[lists.values[theirs]] == MIDDLE)
        found[ours[points]] = lists.values[theirs[points]]
    return found
