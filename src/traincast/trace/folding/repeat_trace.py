"""A whole trace with one stack of blocks repeated: its modules, parameters, gradients and calls beside the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traincast.trace.folding.repeat_graph import Repeated, repeat_graph
from traincast.trace.folding.units import (
    FIRST,
    LAST,
    MIDDLE,
    Items,
    Stack,
    number_items,
    runs_spread,
)
from traincast.trace.graph import Ints
from traincast.trace.trace import Module, Parameter, Trace


@dataclass(frozen=True, eq=False, slots=True)
class Modules:
    """The modules of a short trace by unit, and those of the long one."""

    units: Ints
    items: Items
    modules: tuple[Module, ...]  # of the long trace, with the tensors of the short one


def modules_of(trace: Trace, stack: Stack, n_copies: int) -> Modules:
    """How the modules of a trace repeat."""
    units = np.array([stack.unit_of(module.path) for module in trace.modules], dtype=np.int64)
    source, copy = runs_spread(units == MIDDLE, n_copies)
    members = [np.flatnonzero(units == unit) for unit in (FIRST, MIDDLE, LAST)]
    roles = []
    for other in (FIRST, LAST):
        role = np.full(len(units), -1, dtype=np.int64)
        if len(members[other]) == len(members[MIDDLE]):
            role[members[other]] = members[MIDDLE]
        roles.append(role)
    items = number_items(units, source, copy, (roles[0], roles[1]), np.zeros(len(units), dtype=bool), n_copies)
    rows = [
        replace(trace.modules[old], path=_new_path(stack, trace.modules[old].path, n, n_copies))
        for old, n in zip(source.tolist(), copy.tolist(), strict=True)
    ]
    return Modules(units, items, tuple(rows))


def _new_path(stack: Stack, path: str, copy: int, n_copies: int) -> str:
    """Where a module or parameter is in the long trace: blocks behind the middle move back by all copies but one."""
    if stack.unit_of(path) == MIDDLE:
        return stack.moved(path, copy * stack.period)
    block = stack.block_of(path)
    is_behind = block is not None and block >= stack.start + 2 * stack.period
    return stack.moved(path, (n_copies - 1) * stack.period) if is_behind else path


def repeat_trace(trace: Trace, stack: Stack, n_copies: int) -> tuple[Trace, Repeated]:
    """The trace with `n_copies` of its middle unit."""
    modules = modules_of(trace, stack, n_copies)
    done = repeat_graph(trace.graph, modules.units, modules.items, n_copies)
    ops, tensors = done.ops, done.tensors
    op_call, call_functions = _calls(trace, ops)
    gradients = _gradients(trace, tensors)
    return (
        replace(
            trace,
            graph=done.graph,
            modules=_with_tensors(modules, tensors),
            parameters=_parameters(trace, stack, tensors, n_copies),
            gradient_of=gradients,
            op_call=op_call,
            call_functions=call_functions,
        ),
        done,
    )


def _calls(trace: Trace, ops: Items) -> tuple[Ints, tuple[str, ...]]:
    """Calls in the order in which they are first seen."""
    if not trace.call_functions:
        return trace.op_call[ops.source], ()
    call = trace.op_call[ops.source]
    key = np.where(call >= 0, call * ops.n_copies + ops.copy, -1)
    keys, first, new = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(np.where(keys >= 0, first, -1), kind="stable")
    n_none = int(np.sum(keys < 0))
    rank = np.zeros(len(keys), dtype=np.int64)
    rank[order] = np.arange(len(keys)) - n_none
    names = tuple(trace.call_functions[int(keys[number]) // ops.n_copies] for number in order[n_none:].tolist())
    return np.where(call >= 0, rank[new], -1), names


def _gradients(trace: Trace, tensors: Items) -> Ints:
    """Rows (gradient, its tensor): those whose gradient is copied, once a copy."""
    gradient, forward = trace.gradient_of[:, 0], trace.gradient_of[:, 1]
    unit = tensors.unit[gradient]
    rows, copy = runs_spread(unit == MIDDLE, tensors.n_copies)
    left = tensors.resolve(gradient[rows], unit[rows], copy)
    right = tensors.resolve(forward[rows], unit[rows], copy)
    return np.stack([left, right], axis=1)


def _with_tensors(modules: Modules, tensors: Items) -> tuple[Module, ...]:
    items = modules.items
    unit, copy = items.unit[items.source], items.copy
    ends = [
        tensors.resolve(np.array([getattr(module, name) for module in modules.modules], dtype=np.int64), unit, copy)
        for name in ("input", "output")
    ]
    lengths = [len(module.parameters) for module in modules.modules]
    owned = np.array([tensor for module in modules.modules for tensor in module.parameters], dtype=np.int64)
    owned = tensors.resolve(owned, np.repeat(unit, lengths), np.repeat(copy, lengths)).tolist()
    rows, at = [], 0
    for module, first, last, length in zip(modules.modules, ends[0].tolist(), ends[1].tolist(), lengths, strict=True):
        rows.append(Module(module.path, module.kind, first, last, tuple(owned[at : at + length])))
        at += length
    return tuple(rows)


def _parameters(trace: Trace, stack: Stack, tensors: Items, n_copies: int) -> tuple[Parameter, ...]:
    units = np.array([stack.unit_of(parameter.name) for parameter in trace.parameters], dtype=np.int64)
    rows, copy = runs_spread(units == MIDDLE, n_copies)
    old = [trace.parameters[row] for row in rows.tolist()]
    tensor = tensors.resolve(np.array([one.tensor for one in old], dtype=np.int64), units[rows], copy)
    gradient = tensors.resolve(np.array([one.gradient for one in old], dtype=np.int64), units[rows], copy)
    places = zip(old, copy.tolist(), tensor.tolist(), gradient.tolist(), strict=True)
    return tuple(
        Parameter(_new_path(stack, one.name, n, n_copies), place, grad, one.is_trainable)
        for one, n, place, grad in places
    )
