"""A step with blocks that repeat, from one that has three of them: the first, one in the middle, the last.

A stack of equal blocks is captured with three *units* (a unit is one block, or a few where kinds alternate). The middle
unit is written again as often as the model has it: its ops in order through the forward pass and in reverse through the
backward pass, its tensors and storages, and what they point to. A pointer from a copy to its neighbour in the captured
step (the residual stream, its gradient, the op before which memory is freed) becomes one to the neighbouring copy; a
pointer to anything else stays. Ops of an optimizer that run over all parameters at once get longer lists.

What does not have this form raises `IrregularError`: then the step has to be captured or lowered as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traincast.trace.folding.roles import adds_from_outside, roles_by_neighbours, roles_of
from traincast.trace.folding.units import (
    FIRST,
    LAST,
    MIDDLE,
    OUTSIDE,
    Flags,
    IrregularError,
    Items,
    gather_rows,
    number_items,
    require,
    runs_spread,
    with_end,
)
from traincast.trace.graph import Graph, Ints, Phase, Ragged

_UNKNOWN = -2


@dataclass(frozen=True, eq=False, slots=True)
class Repeated:
    """The longer step, and which op and tensor of the short one each of its own is."""

    graph: Graph
    ops: Items
    tensors: Items


def repeat_graph(graph: Graph, module_unit: Ints, new_module: Items, n_copies: int) -> Repeated:
    """The step with `n_copies` of the middle unit. `module_unit` has one entry a module."""
    op_unit = _op_units(graph, module_unit)
    tensor_unit, op_unit = _tensor_units(graph, op_unit)
    ops = _number_ops(graph, op_unit, tensor_unit, n_copies)
    tensors = _number_tensors(graph, ops, tensor_unit)
    storages = _number_storages(graph, tensors)
    return Repeated(_rewritten(graph, ops, tensors, storages, new_module), ops, tensors)


def _op_units(graph: Graph, module_unit: Ints) -> Ints:
    """The unit of each op before the update: units follow each other without a gap, in both directions."""
    units = np.full(graph.n_ops, OUTSIDE, dtype=np.int64)
    of_module = module_unit[graph.op_module]
    is_backward = graph.op_phase == Phase.BACKWARD
    for chosen, order in ((graph.op_phase == Phase.FORWARD, (0, 1, 2)), (is_backward, (2, 1, 0))):
        firsts = [np.flatnonzero(chosen & (of_module == unit))[:1] for unit in order]
        if not any(len(first) for first in firsts) and order[0] == 2:
            continue  # no backward pass
        require(all(len(first) for first in firsts), "a unit without ops")
        a, b, c = (int(first[0]) for first in firsts)
        require(a < b < c, "units in another order")
        units[a:b], units[b:c] = order[0], order[1]
        end = min(2 * c - b, int(np.flatnonzero(chosen)[-1]) + 1)
        if not np.array_equal(graph.op_name[c:end], graph.op_name[b:c]):  # it ends there in its own way
            end = int(np.flatnonzero(chosen & (of_module == order[2]))[-1]) + 1
        units[c:end] = order[2]
        left = chosen & (units == OUTSIDE) & (of_module != OUTSIDE)
        require(not left.any(), "ops of a unit beside it")
    return units


def _tensor_units(graph: Graph, op_unit: Ints) -> tuple[Ints, Ints]:
    """Units of tensors: of the op that makes them, or of those that use what was there before; and of the update."""
    unit = np.full(graph.n_tensors, _UNKNOWN, dtype=np.int64)
    made, maker = graph.op_outputs.values, np.repeat(np.arange(graph.n_ops), graph.op_outputs.lengths)
    is_update = graph.op_phase == Phase.OPTIMIZER
    before = ~is_update[maker]
    unit[made[before]] = op_unit[maker[before]]
    reader, read = np.repeat(np.arange(graph.n_ops), graph.op_inputs.lengths), graph.op_inputs.values
    is_made = np.zeros(graph.n_tensors, dtype=bool)
    is_made[made] = True
    chosen = ~is_update[reader] & ~is_made[read]
    lowest, highest = np.full(graph.n_tensors, 99), np.full(graph.n_tensors, -99)
    np.minimum.at(lowest, read[chosen], op_unit[reader[chosen]])
    np.maximum.at(highest, read[chosen], op_unit[reader[chosen]])
    used = highest > -99
    unit[used] = np.where(lowest[used] == highest[used], lowest[used], OUTSIDE)
    op_unit = op_unit.copy()
    columns: dict[int, Ints] = {}
    update = np.flatnonzero(is_update).tolist()
    for op in update:
        _update_units(graph, op, unit, op_unit, None)
    for op in reversed(update):  # a list whose units are not known (step counters) is like the next one of its length
        _update_units(graph, op, unit, op_unit, columns)
    require(not np.any(unit[made] == _UNKNOWN), "an update that cannot be read")
    unit[unit == _UNKNOWN] = OUTSIDE
    return unit, op_unit


def _update_units(graph: Graph, op: int, unit: Ints, op_unit: Ints, columns: dict[int, Ints] | None) -> None:
    """An op of the update belongs to its one parameter; one over all has a unit for each place in its lists."""
    inputs, outputs = (
        ragged.values[ragged.start[op] : ragged.start[op + 1]] for ragged in (graph.op_inputs, graph.op_outputs)
    )
    width = len(outputs)
    if width == 0 or len(inputs) % width:
        raise IrregularError("an update over lists of different lengths")
    table = unit[inputs].reshape(-1, width)
    column = table.max(axis=0)
    known = column > _UNKNOWN
    agrees = np.where(table > _UNKNOWN, table, column) == column
    require(bool(agrees.all()), "an update that mixes units")
    if not known.all():
        if columns is None or width not in columns:
            return
        column = columns[width]
    if columns is not None:
        columns[width] = column
    unit[inputs] = np.tile(column, len(inputs) // width)
    unit[outputs] = column
    op_unit[op] = column[0] if width == 1 else OUTSIDE


def _number_ops(graph: Graph, unit: Ints, tensor_unit: Ints, n_copies: int) -> Items:
    source, copy = runs_spread(unit == MIDDLE, n_copies, backward=graph.op_phase == Phase.BACKWARD)
    roles = roles_of(unit, graph.op_phase, graph.op_name * 2 + adds_from_outside(graph, tensor_unit))
    return number_items(unit, source, copy, roles, np.zeros(graph.n_ops, dtype=bool), n_copies)


def _number_tensors(graph: Graph, ops: Items, unit: Ints) -> Items:
    """First what was there before the step, then what the ops make, in their order."""
    is_made = np.zeros(graph.n_tensors, dtype=bool)
    is_made[graph.op_outputs.values] = True
    there = np.flatnonzero(~is_made)
    rows, copies = runs_spread(unit[there] == MIDDLE, ops.n_copies)
    of_op, made_copy = _spread_lists(graph.op_outputs, ops, unit)
    made = graph.op_outputs.values[of_op.values]
    source, copy = np.concatenate([there[rows], made]), np.concatenate([copies, made_copy])
    roles = _tensor_roles(graph, ops, unit, there)
    return number_items(unit, source, copy, roles, _common(graph, ops.unit, unit), ops.n_copies)


def _tensor_roles(graph: Graph, ops: Items, unit: Ints, there: Ints) -> tuple[Ints, Ints]:
    """What ops at the same place make; of what was there before the step, by its order."""
    found = []
    before = roles_of(unit[there], np.zeros_like(there), graph.tensor_dtype[there])
    lengths = graph.op_outputs.lengths
    for which in (0, 1):
        role = np.full(graph.n_tensors, -1, dtype=np.int64)
        rows = np.flatnonzero(before[which] >= 0)
        role[there[rows]] = there[before[which][rows]]
        op = np.flatnonzero(ops.in_middle[which] >= 0)
        like = ops.in_middle[which][op]
        op, like = op[lengths[op] == lengths[like]], like[lengths[op] == lengths[like]]
        _, one = gather_rows(graph.op_outputs.start, op)
        _, other = gather_rows(graph.op_outputs.start, like)
        role[graph.op_outputs.values[one]] = graph.op_outputs.values[other]
        found.append(role)
    return found[0], found[1]


def _common(graph: Graph, op_unit: Ints, unit: Ints) -> Flags:
    """What the first unit makes and the last one reads, or the other way round, is no neighbour's."""
    reader, read = np.repeat(np.arange(graph.n_ops), graph.op_inputs.lengths), graph.op_inputs.values
    is_far = (op_unit[reader] + unit[read] == FIRST + LAST) & (op_unit[reader] != unit[read])
    is_far &= (op_unit[reader] != MIDDLE) & (op_unit[reader] >= 0) & (unit[read] >= 0)
    common = np.zeros(graph.n_tensors, dtype=bool)
    common[read[is_far]] = True
    return common


def _spread_lists(lists: Ragged, ops: Items, unit: Ints) -> tuple[Ragged, Ints]:
    """Where in the old lists the tensors of each new op are, and their copies: lists over all parameters get longer."""
    is_long = np.zeros(len(lists), dtype=bool)
    is_list = np.repeat(ops.unit == OUTSIDE, lists.lengths) & (unit[lists.values] == MIDDLE)
    is_long[np.repeat(np.arange(len(lists)), lists.lengths)[is_list]] = True
    lengths = np.where(is_long[ops.source], 0, lists.lengths[ops.source])
    spread = {op: runs_spread(unit[_row(lists, op)] == MIDDLE, ops.n_copies) for op in np.flatnonzero(is_long).tolist()}
    for op, (rows, _) in spread.items():
        lengths[ops.new[op]] = len(rows)
    start = np.zeros(len(ops.source) + 1, dtype=np.int64)
    np.cumsum(lengths, out=start[1:])
    values, copies = np.zeros(start[-1], dtype=np.int64), np.zeros(start[-1], dtype=np.int64)
    short = np.repeat(~is_long[ops.source], lengths)
    within = np.arange(start[-1]) - np.repeat(start[:-1], lengths)
    old = np.repeat(lists.start[ops.source], lengths) + within
    values[short] = old[short]
    copies[short] = np.repeat(ops.copy, lengths)[short]
    for op, (rows, copy) in spread.items():
        place = slice(start[ops.new[op]], start[ops.new[op] + 1])
        values[place], copies[place] = lists.start[op] + rows, copy
    return Ragged(start, values), copies


def _row(lists: Ragged, number: int) -> Ints:
    return lists.values[lists.start[number] : lists.start[number + 1]]


def _number_storages(graph: Graph, tensors: Items) -> Items:
    """In the order of the tensors that own them."""
    owner = graph.storage_owner
    unit = tensors.unit[owner]
    is_owner = np.zeros(graph.n_tensors, dtype=bool)
    is_owner[owner] = True
    rows = np.flatnonzero(is_owner[tensors.source])
    source, copy = graph.tensor_storage[tensors.source[rows]], tensors.copy[rows]
    in_middle = tuple(np.where(role[owner] >= 0, graph.tensor_storage[role[owner]], -1) for role in tensors.in_middle)
    is_common = tensors.is_common[owner]
    return number_items(unit, source, copy, (in_middle[0], in_middle[1]), is_common, tensors.n_copies)


def _rewritten(graph: Graph, ops: Items, tensors: Items, storages: Items, modules: Items) -> Graph:
    op, tensor, storage = ops.source, tensors.source, storages.source
    op_unit, storage_unit = ops.unit[op], storages.unit[storage]
    dim_start, _ = gather_rows(graph.dim_start, tensor)
    stride_start, stride_rows = gather_rows(graph.stride_start, tensor)
    dim_rows = gather_rows(graph.dim_start, tensor)[1]
    return replace(
        graph,
        op_name=graph.op_name[op],
        op_attribute=graph.op_attribute[op],
        op_phase=graph.op_phase[op],
        op_module=_modules_of(graph, ops, modules),
        op_forward=ops.resolve(graph.op_forward[op], op_unit, ops.copy),
        op_recomputed=graph.op_recomputed[op],
        op_inputs=_new_lists(graph.op_inputs, ops, tensors),
        op_outputs=_new_lists(graph.op_outputs, ops, tensors),
        tensor_dtype=graph.tensor_dtype[tensor],
        tensor_storage=storages.resolve(graph.tensor_storage[tensor], tensors.unit[tensor], tensors.copy),
        dim_start=dim_start,
        dim_base=graph.dim_base[dim_rows],
        dim_slope=graph.dim_slope[dim_rows],
        stride_start=stride_start,
        stride_base=graph.stride_base[stride_rows],
        stride_slope=graph.stride_slope[stride_rows],
        storage_owner=tensors.resolve(graph.storage_owner[storage], storage_unit, storages.copy),
        storage_alloc=ops.resolve(graph.storage_alloc[storage], storage_unit, storages.copy),
        storage_free=_freed(graph, ops, storages),
        storage_kind=graph.storage_kind[storage],
    )


def _freed(graph: Graph, ops: Items, storages: Items) -> Ints:
    """The op before which each storage is freed; where that has nothing like it, the op after the one before."""
    with_last = with_end(ops, np.append(ops.new, len(ops.source)))  # "never" is an op behind the last
    free, unit = graph.storage_free[storages.source], storages.unit[storages.source]
    at = with_last.unit[free]
    has_role = np.where(at == FIRST, with_last.in_middle[0][free], with_last.in_middle[1][free]) >= 0
    is_after = (unit == MIDDLE) & ((at == FIRST) | (at == LAST)) & ~has_role
    return with_last.resolve(free - is_after, unit, storages.copy) + is_after


def _modules_of(graph: Graph, ops: Items, modules: Items) -> Ints:
    """An op outside may be attributed to a module of the middle only if the module is not copied with it."""
    unit = np.where(ops.unit[ops.source] == OUTSIDE, modules.unit[graph.op_module[ops.source]], ops.unit[ops.source])
    return modules.resolve(graph.op_module[ops.source], unit, ops.copy)


def _new_lists(lists: Ragged, ops: Items, tensors: Items) -> Ragged:
    places, copies = _spread_lists(lists, ops, tensors.unit)
    old = lists.values[places.values]
    unit = np.repeat(ops.unit[ops.source], places.lengths)
    is_long = (unit == OUTSIDE) & (tensors.unit[old] == MIDDLE)
    roles = roles_by_neighbours(lists, ops, tensors)[places.values]
    values = tensors.resolve(old, np.where(is_long, MIDDLE, unit), copies, roles)
    return Ragged(places.start, values)
