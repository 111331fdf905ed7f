"""A model whose blocks and sequence length are not spelled out: a few kilobytes, and any of its traces in milliseconds.

A `FoldedTrace` holds a step with three units of each stack of blocks (`repeats`) for every sequence length (`lengths`).
`at` gives the ordinary trace of one length with all blocks. Its lowering is done on the short step, at the lengths that
give its terms, and is written out afterwards; that two units in the middle come out as lowering them would make them
is checked, and where they do not, the whole step is lowered instead.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from traincast.trace.folding.lengths import LengthTerms, NoPolynomialError, fit_lengths, graph_at
from traincast.trace.folding.repeat_graph import repeat_graph
from traincast.trace.folding.repeat_trace import modules_of, repeat_trace
from traincast.trace.folding.same import differences
from traincast.trace.folding.units import IrregularError, Stack, gather_rows
from traincast.trace.graph import Graph, Ints
from traincast.trace.structure import Known, Structure, note_structure, note_template, only_ops
from traincast.trace.trace import Trace

# Three give the terms, the fourth checks them. None is a size that a model has otherwise.
LENGTHS = (6, 10, 14, 22)


@dataclass(frozen=True, eq=False, slots=True)
class Sizes:
    """A graph whose numbers are looked up among those of the short step."""

    graph: Graph
    dim_rows: Ints
    stride_rows: Ints

    def at(self, sizes: dict[str, Ints], attributes: tuple[str, ...]) -> Graph:
        return replace(
            self.graph,
            attributes=attributes,
            dim_base=sizes["dim_base"][self.dim_rows],
            dim_slope=sizes["dim_slope"][self.dim_rows],
            stride_base=sizes["stride_base"][self.stride_rows],
            stride_slope=sizes["stride_slope"][self.stride_rows],
        )

    def only(self, ops: Ints) -> Sizes:
        graph, tensors = only_ops(self.graph, ops)
        dims = self.graph.dim_lists.picked(tensors).values
        strides = self.graph.stride_lists.picked(tensors).values
        return Sizes(graph, self.dim_rows[dims], self.stride_rows[strides])


@dataclass(frozen=True, eq=False, slots=True)
class LongGraph:
    """A step with all its blocks for every length."""

    terms: LengthTerms  # of the short step
    structure: Structure
    whole: Sizes
    moving: Sizes

    def at(self, length: int) -> Graph:
        sizes, attributes = self.terms.sizes_at(length), self.terms.attributes_at(length)
        graph = self.whole.at(sizes, attributes)
        moving = self.moving.at(sizes, attributes)
        note_template(moving, self.moving.graph)
        note_structure(graph, Known(self.structure, moving))
        return graph


@dataclass(frozen=True, eq=False)
class FoldedTrace:
    """A model by its short trace: `copies` says how often each stack has its middle unit."""

    short: Trace
    terms: LengthTerms
    stacks: tuple[Stack, ...]
    copies: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lowered", {})

    def at(self, length: int) -> Trace:
        """The ordinary trace: one length, all blocks, any batch size."""
        trace = replace(self._long, graph=self._long_graph.at(length))
        _FOLDS[trace] = (self, length)
        return trace

    def short_at(self, length: int, copies: tuple[int, ...] | None = None) -> Trace:
        """The trace of one length with as many middle units as asked, one of each stack by default."""
        trace = replace(self.short, graph=graph_at(self.short.graph, self.terms, length))
        for stack, n_copies in zip(self.stacks, copies or (), strict=False):
            trace, _ = repeat_trace(trace, stack, n_copies)
        return trace

    def changed(self, change: Callable[[Trace], Trace]) -> FoldedTrace:
        """Another model, made of this one by a rule that works on each block alone. Raises where it does not."""
        made = {length: change(self.short_at(length)) for length in LENGTHS}
        graph, terms = fit_lengths({length: trace.graph for length, trace in made.items()})
        other = FoldedTrace(replace(made[LENGTHS[0]], graph=graph), terms, self.stacks, self.copies)
        twice = (2,) * len(self.stacks)
        whole = change(self.short_at(LENGTHS[0], twice))
        wrong = differences(other.short_at(LENGTHS[0], twice).graph, whole.graph)
        if wrong:
            raise IrregularError(f"blocks differ in {', '.join(wrong)}")
        return other

    def lowered(self, length: int, how: Hashable, make: Callable[[Trace], Graph]) -> Graph | None:
        """What `make` makes of the trace at a length, by way of the short one; None where that cannot be."""
        known: dict[Hashable, LongGraph | None] = self._lowered  # type: ignore[attr-defined]
        if how not in known:
            try:
                known[how] = self._lower(make)
            except (IrregularError, NoPolynomialError):
                known[how] = None
        long = known[how]
        return None if long is None else long.at(length)

    def _lower(self, make: Callable[[Trace], Graph]) -> LongGraph:
        short, terms = fit_lengths({length: make(self.short_at(length)) for length in LENGTHS})
        twice = (2,) * len(self.stacks)
        guess = self._spread(graph_at(short, terms, LENGTHS[0]), terms, twice).structure.graph
        wrong = differences(guess, make(self.short_at(LENGTHS[0], twice)))
        if wrong:
            raise IrregularError(f"blocks differ in {', '.join(wrong)}")
        return self._spread(short, terms, self.copies)

    @cached_property
    def _long(self) -> Trace:
        trace = self.short
        for stack, n_copies in zip(self.stacks, self.copies, strict=True):
            trace, _ = repeat_trace(trace, stack, n_copies)
        return trace

    @cached_property
    def _long_graph(self) -> LongGraph:
        return self._spread(self.short.graph, self.terms, self.copies)

    def _spread(self, graph: Graph, terms: LengthTerms, copies: tuple[int, ...]) -> LongGraph:
        """The long graph of a short one that has the modules of this model."""
        op_of, tensor_of = np.arange(graph.n_ops), np.arange(graph.n_tensors)
        classes = _classes(graph, terms)
        long, trace = graph, self.short
        for stack, n_copies in zip(self.stacks, copies, strict=True):
            modules = modules_of(trace, stack, n_copies)
            done = repeat_graph(long, modules.units, modules.items, n_copies)
            long, op_of, tensor_of = done.graph, op_of[done.ops.source], tensor_of[done.tensors.source]
            trace = replace(trace, modules=modules.modules)
        class_of = _longer_lists_apart(classes[op_of], op_of, graph, long)
        _, dim_rows = gather_rows(graph.dim_start, tensor_of)
        _, stride_rows = gather_rows(graph.stride_start, tensor_of)
        whole = Sizes(long, dim_rows, stride_rows)
        first, n_fixed, class_of = _fixed_first(whole, terms, class_of)
        fixed = whole.only(first[:n_fixed]).at(*_at_any_length(terms))
        return LongGraph(terms, Structure(long, class_of, fixed), whole, whole.only(first[n_fixed:]))


def _at_any_length(terms: LengthTerms) -> tuple[dict[str, Ints], tuple[str, ...]]:
    return terms.sizes_at(LENGTHS[0]), terms.attributes_at(LENGTHS[0])


def _fixed_first(whole: Sizes, terms: LengthTerms, class_of: Ints) -> tuple[Ints, int, Ints]:
    """The first op of each class, classes without a length before all others; their number; the class of each op."""
    _, first, class_of = np.unique(class_of, return_index=True, return_inverse=True)
    graph = whole.graph
    has_length = np.array(['"length"' in text for text in terms.attributes], dtype=bool)[graph.op_attribute[first]]
    moves = ((terms.dim_base[1:] != 0) | (terms.dim_slope[1:] != 0)).any(axis=0)[whole.dim_rows]
    tensor_moves = np.zeros(graph.n_tensors, dtype=bool)
    np.logical_or.at(tensor_moves, np.repeat(np.arange(graph.n_tensors), np.diff(graph.dim_start)), moves)
    for lists in (graph.op_inputs.picked(first), graph.op_outputs.picked(first)):
        np.logical_or.at(has_length, np.repeat(np.arange(len(first)), lists.lengths), tensor_moves[lists.values])
    order = np.argsort(has_length, kind="stable")
    rank = np.zeros(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return first[order], int(np.sum(~has_length)), rank[class_of]


def _longer_lists_apart(class_of: Ints, op_of: Ints, short: Graph, long: Graph) -> Ints:
    """Ops whose lists grew with the blocks are like no other."""
    grew = long.op_inputs.lengths != short.op_inputs.lengths[op_of]
    result = class_of.copy()
    rows = np.flatnonzero(grew)
    result[rows] = class_of.max(initial=0) + 1 + np.arange(len(rows))
    return result


def _classes(graph: Graph, terms: LengthTerms) -> Ints:
    """Ops of the same name, arguments and shapes, at every length."""
    dims = np.concatenate([terms.dim_base, terms.dim_slope]).T.tolist()
    strides = np.concatenate([terms.stride_base, terms.stride_slope]).T.tolist()
    dim_start, stride_start, dtype = graph.dim_start.tolist(), graph.stride_start.tolist(), graph.tensor_dtype.tolist()
    shapes: dict[object, int] = {}
    shape_of = [
        shapes.setdefault(
            (
                dtype[t],
                tuple(map(tuple, dims[dim_start[t] : dim_start[t + 1]])),
                tuple(map(tuple, strides[stride_start[t] : stride_start[t + 1]])),
            ),
            len(shapes),
        )
        for t in range(graph.n_tensors)
    ]
    known: dict[object, int] = {}
    found = []
    storage = graph.tensor_storage.tolist()
    rows = zip(
        graph.op_name.tolist(),
        graph.op_attribute.tolist(),
        graph.op_inputs.rows(),
        graph.op_outputs.rows(),
        strict=True,
    )
    for name, attribute, inputs, outputs in rows:
        places = {tensor: place for place, tensor in reversed(list(enumerate(inputs)))}
        sources = [storage[tensor] for tensor in inputs]
        in_place = tuple(sources.index(storage[t]) if storage[t] in sources else -1 for t in outputs)
        shape = (tuple(shape_of[t] for t in inputs), tuple(shape_of[t] for t in outputs))
        key = (name, attribute, shape, tuple(places[t] for t in inputs), in_place)
        found.append(known.setdefault(key, len(known)))
    return np.array(found, dtype=np.int64)


_FOLDS: weakref.WeakKeyDictionary[Trace, tuple[FoldedTrace, int]] = weakref.WeakKeyDictionary()


def fold_of(trace: Trace) -> tuple[FoldedTrace, int] | None:
    """The folded trace that a trace was made of, and its length; None of a trace that was captured as it is."""
    return _FOLDS.get(trace)
