"""What graphs share that differ in the sizes of their tensors alone, and which of their ops are alike.

A step of 126 equal blocks at a new sequence length is asked about again and again. What follows from its structure is
found once for all lengths, and what follows from sizes once for each *class* of ops: those with the same name,
arguments and shapes. A class stands in a small graph by its first op; most of the update, whose sizes are those of the
parameters at every length, stands in a graph that stays.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from traincast.trace.graph import Floats, Graph, Ints

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False, slots=True)
class Structure:
    """A graph that stands for all of its structure, and the class of each op: those of `fixed` come first."""

    graph: Graph
    class_of: Ints
    fixed: Graph  # one op a class whose sizes are the same at every length


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """What is known of one graph: its structure, and one op of each class whose sizes differ from length to length."""

    structure: Structure
    moving: Graph


_KNOWN: weakref.WeakKeyDictionary[Graph, Known] = weakref.WeakKeyDictionary()


def note_structure(graph: Graph, known: Known) -> None:
    """Notes the structure of a graph, which must be that of `structure.graph` but for sizes."""
    _KNOWN[graph] = known
    note_template(graph, known.structure.graph)


_TEMPLATES: weakref.WeakKeyDictionary[Graph, Graph] = weakref.WeakKeyDictionary()


def note_template(graph: Graph, template: Graph) -> None:
    """Notes that a graph has the structure of another."""
    _TEMPLATES[graph] = template


def known_of(graph: Graph) -> Known | None:
    """None of a graph that stands for itself."""
    return _KNOWN.get(graph)


def by_class(graph: Graph, find: Callable[[Graph], Floats]) -> Floats:
    """What `find` finds for each op (the last axis), looked at once a class."""
    known = _KNOWN.get(graph)
    if known is None:
        return find(graph)
    found: Floats = np.concatenate([find(known.structure.fixed), find(known.moving)], axis=-1)
    return found[..., known.structure.class_of]


def once_per_structure(find: Callable[[Graph], Value]) -> Callable[[Graph], Value]:
    """The same function, which remembers its answer for all graphs of one structure: sizes must not matter to it."""
    answers: weakref.WeakKeyDictionary[Graph, Value] = weakref.WeakKeyDictionary()

    @functools.wraps(find)
    def remembered(graph: Graph) -> Value:
        key = _TEMPLATES.get(graph, graph)
        if key not in answers:
            answers[key] = find(key)
        return answers[key]

    return remembered


def only_ops(graph: Graph, ops: Ints) -> tuple[Graph, Ints]:
    """Some ops by themselves, with the tensors that they touch, and the old numbers of these. It is no step."""
    inputs, outputs = graph.op_inputs.picked(ops), graph.op_outputs.picked(ops)
    tensors = np.unique(np.concatenate([inputs.values, outputs.values]))
    dims, strides = graph.dim_lists.picked(tensors), graph.stride_lists.picked(tensors)
    slim = replace(
        graph,
        op_name=graph.op_name[ops],
        op_attribute=graph.op_attribute[ops],
        op_phase=graph.op_phase[ops],
        op_module=graph.op_module[ops],
        op_forward=np.full(len(ops), -1, dtype=np.int64),
        op_recomputed=graph.op_recomputed[ops],
        op_inputs=replace(inputs, values=np.searchsorted(tensors, inputs.values)),
        op_outputs=replace(outputs, values=np.searchsorted(tensors, outputs.values)),
        tensor_dtype=graph.tensor_dtype[tensors],
        tensor_storage=graph.tensor_storage[tensors],
        dim_start=dims.start,
        dim_base=graph.dim_base[dims.values],
        dim_slope=graph.dim_slope[dims.values],
        stride_start=strides.start,
        stride_base=graph.stride_base[strides.values],
        stride_slope=graph.stride_slope[strides.values],
    )
    return slim, tensors
