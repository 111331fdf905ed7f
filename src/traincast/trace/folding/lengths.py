"""A step for every sequence length: each dimension is a square in the length, as it is a line in the batch size.

    dimension = (b0 + b1 L + b2 L^2) + (s0 + s1 L + s2 L^2) * batch

with whole numbers that were read off steps at three lengths and held against a fourth. Ops, tensors, storages and
lifetimes are the same at every length. At one length it is an ordinary graph.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from traincast.trace.graph import Graph, Ints, Ragged

N_TERMS = 3  # of 1, the length, its square
_SIZES = ("dim_base", "dim_slope", "stride_base", "stride_slope")
_TAG = "length"  # of an attribute: ["length", a, b, c] stands for a + b L + c L^2


class NoPolynomialError(Exception):
    """Steps at several lengths are not one step. Not for users: `IrregularError`'s sibling."""


@dataclass(frozen=True, eq=False, slots=True)
class LengthTerms:
    """What of a graph depends on the length: one row a term, one column a number of the graph."""

    dim_base: Ints
    dim_slope: Ints
    stride_base: Ints
    stride_slope: Ints
    attributes: tuple[str, ...]

    def sizes_at(self, length: int) -> dict[str, Ints]:
        powers = np.array([1, length, length * length], dtype=np.int64)
        return {name: powers @ getattr(self, name) for name in _SIZES}

    def attributes_at(self, length: int) -> tuple[str, ...]:
        return tuple(_attribute_at(text, length) for text in self.attributes)

    @property
    def depends_on_length(self) -> bool:
        return any(bool(getattr(self, name)[1:].any()) for name in _SIZES)


def graph_at(graph: Graph, terms: LengthTerms, length: int) -> Graph:
    """The step at one length."""
    return with_sizes(graph, terms.sizes_at(length), terms.attributes_at(length))


def with_sizes(graph: Graph, sizes: Mapping[str, Ints], attributes: tuple[str, ...]) -> Graph:
    """The same structure with these numbers."""
    return replace(
        graph,
        attributes=attributes,
        dim_base=sizes["dim_base"],
        dim_slope=sizes["dim_slope"],
        stride_base=sizes["stride_base"],
        stride_slope=sizes["stride_slope"],
    )


def fit_lengths(graphs: Mapping[int, Graph]) -> tuple[Graph, LengthTerms]:
    """One step, and its terms, from steps at several lengths: the first three give them, the others check them."""
    lengths = sorted(graphs)
    first = graphs[lengths[0]]
    for length in lengths[1:]:
        _same_structure(first, graphs[length], length)
    sizes = {name: _fit([getattr(graphs[length], name) for length in lengths], lengths) for name in _SIZES}
    texts = [tuple(graphs[length].attributes[n] for length in lengths) for n in range(len(first.attributes))]
    if any(not np.array_equal(graph.op_attribute, first.op_attribute) for graph in graphs.values()):
        texts, first = _joined_attributes([graphs[length] for length in lengths])
    return first, LengthTerms(**sizes, attributes=tuple(_join(row, lengths) for row in texts))


def constant_terms(graph: Graph) -> LengthTerms:
    """Of a step that has no length."""
    sizes = {name: np.pad(getattr(graph, name)[None, :], ((0, N_TERMS - 1), (0, 0))) for name in _SIZES}
    return LengthTerms(**sizes, attributes=graph.attributes)


def _same_structure(one: Graph, other: Graph, length: int) -> None:
    for field in fields(Graph):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if field.name in (*_SIZES, "attributes", "op_attribute"):
            continue
        if isinstance(left, Ragged):
            same = np.array_equal(left.start, right.start) and np.array_equal(left.values, right.values)
        else:
            same = np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right
        if not same:
            raise NoPolynomialError(f"{field.name} depends on the length (at {length})")


def _fit(rows: list[Ints], lengths: list[int]) -> Ints:
    if len({len(row) for row in rows}) > 1:
        raise NoPolynomialError("the number of dimensions depends on the length")
    values = np.array(rows, dtype=np.int64)
    powers = np.vander(np.array(lengths), N_TERMS, increasing=True)
    terms = np.round(np.linalg.inv(powers[:N_TERMS].astype(float)) @ values[:N_TERMS]).astype(np.int64)
    if not np.array_equal(powers @ terms, values):
        raise NoPolynomialError("a dimension is no square in the length")
    return terms


def _joined_attributes(graphs: list[Graph]) -> tuple[list[tuple[str, ...]], Graph]:
    """Arguments that are alike at one length need not be alike at another."""
    table: dict[tuple[str, ...], int] = {}
    columns = [[graph.attributes[number] for number in graph.op_attribute.tolist()] for graph in graphs]
    rows = [table.setdefault(row, len(table)) for row in zip(*columns, strict=True)]
    first = replace(graphs[0], op_attribute=np.array(rows, dtype=np.int64), attributes=tuple(row[0] for row in table))
    return list(table), first


def _join(texts: tuple[str, ...], lengths: list[int]) -> str:
    if len(set(texts)) == 1:
        return texts[0]
    return json.dumps(_merge([json.loads(text) for text in texts], lengths), sort_keys=True)


def _merge(values: list[Any], lengths: list[int]) -> Any:
    first = values[0]
    if all(value == first for value in values):
        return first
    if all(isinstance(value, dict) and value.keys() == first.keys() for value in values):
        return {key: _merge([value[key] for value in values], lengths) for key in first}
    if all(isinstance(value, list) and len(value) == len(first) for value in values):
        return [_merge(list(items), lengths) for items in zip(*values, strict=True)]
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return [_TAG, *_fit([np.array([value]) for value in values], lengths)[:, 0].tolist()]
    raise NoPolynomialError("an argument depends on the length")


def _attribute_at(text: str, length: int) -> str:
    if f'"{_TAG}"' not in text:
        return text
    return json.dumps(_evaluated(json.loads(text), length), sort_keys=True)


def _evaluated(value: Any, length: int) -> Any:
    if isinstance(value, dict):
        return {key: _evaluated(item, length) for key, item in value.items()}
    if isinstance(value, list):
        if len(value) == 1 + N_TERMS and value[0] == _TAG:
            return value[1] + value[2] * length + value[3] * length * length
        return [_evaluated(item, length) for item in value]
    return value
