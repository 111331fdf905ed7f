"""What a valid trace and a valid question about it are, in code."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from traincast.errors import FileFormatError, InputError
from traincast.trace.dtypes import DTYPES, ITEM_BYTES
from traincast.trace.flop import op_flop
from traincast.trace.graph import Graph, Ints, Phase, StorageKind
from traincast.trace.op_rules import ops_out_of_form
from traincast.trace.order import broken_orders
from traincast.trace.settings import MODES

if TYPE_CHECKING:
    from traincast.trace.trace import Module, Parameter, Trace

MAX_BATCH_SIZE = 10**7  # above it int64 products of large layers could overflow, and nobody means it
_LONGEST = 2**39
_MOST_BYTES_A_SAMPLE = 2.0**53  # of all storages of a step: 8 PiB
_FLOP_BATCHES = np.array([1, 2, 97])
_MOST_NAMES = 3  # of ops in one sentence


def check_batch_size(batch_size: object) -> int:
    """The batch size as an int, or one sentence why not."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, numbers.Integral):
        raise InputError(f"batch size {batch_size!r} is not a whole number: give one from 1 to {MAX_BATCH_SIZE:,}.")
    if not 1 <= int(batch_size) <= MAX_BATCH_SIZE:
        raise InputError(
            f"batch size {int(batch_size):,} is out of range: give a whole number from 1 to {MAX_BATCH_SIZE:,}."
        )
    return int(batch_size)


def check_graph(graph: Graph, *, where: str) -> None:
    """Raises when an index points outside its table or the order of events cannot be: a file that is not ours."""
    n_ops, n_tensors, n_storages = graph.n_ops, graph.n_tensors, graph.n_storages
    n_dims, n_strides = len(graph.dim_base), len(graph.stride_base)
    rules = {
        "op names": _within(graph.op_name, len(graph.names), n_ops),
        "op attributes": _within(graph.op_attribute, len(graph.attributes), n_ops),
        "op phases": _within(graph.op_phase, len(Phase), n_ops),
        "forward ops": _within(graph.op_forward + 1, n_ops + 1, n_ops),
        "recomputed flags": _within(graph.op_recomputed, 2, n_ops),
        "op inputs": _within(graph.op_inputs.values, n_tensors)
        and _offsets(graph.op_inputs.start, n_ops, len(graph.op_inputs.values)),
        "op outputs": _within(graph.op_outputs.values, n_tensors)
        and _offsets(graph.op_outputs.start, n_ops, len(graph.op_outputs.values)),
        "tensor dtypes": _within(graph.tensor_dtype, len(DTYPES), n_tensors),
        "tensor storages": _within(graph.tensor_storage, n_storages, n_tensors),
        "dimensions": _offsets(graph.dim_start, n_tensors, n_dims)
        and len(graph.dim_slope) == n_dims
        and all(_are_sizes(part) for part in (graph.dim_base, graph.dim_slope)),
        "strides": _offsets(graph.stride_start, n_tensors, n_strides) and _are_strides(graph),
        "storage owners": _within(graph.storage_owner, n_tensors, n_storages),
        "storage kinds": _within(graph.storage_kind, len(StorageKind), n_storages),
        "lifetimes": _within(graph.storage_alloc + 1, n_ops + 1, n_storages)
        and _within(graph.storage_free, n_ops + 1, n_storages)
        and bool(np.all(graph.storage_free >= graph.storage_alloc)),  # alike: it lives for no time at all
    }
    _raise_broken([name for name, holds in rules.items() if not holds], where)


def _raise_broken(parts: Sequence[str], where: str) -> None:
    if parts:
        raise FileFormatError(f"{where} is damaged: its {', '.join(parts)} do not fit together. Save the trace again.")


def _within(values: Ints, limit: int, length: int | None = None) -> bool:
    if length is not None and len(values) != length:
        return False
    return bool(np.all((values >= 0) & (values < limit)))


def _are_sizes(values: Ints) -> bool:
    """No tensor has a longer side, and times the largest batch it is still an int64."""
    return bool(np.all((values >= -_LONGEST) & (values <= _LONGEST)))


def _are_strides(graph: Graph) -> bool:
    """One a dimension, or none."""
    n_strides = np.diff(graph.stride_start)
    has_all = bool(np.all((n_strides == 0) | (n_strides == np.diff(graph.dim_start))))
    return has_all and len(graph.stride_slope) == len(graph.stride_base)


def _offsets(start: Ints, n_rows: int, n_values: int) -> bool:
    if len(start) != n_rows + 1 or start[0] != 0 or start[-1] != n_values:
        return False
    return bool(np.all(np.diff(start) >= 0))


def check_trace(trace: Trace, *, where: str) -> None:
    """Raises when the parts of a trace beside its graph do not fit it."""
    graph = trace.graph
    check_graph(graph, where=where)
    n_tensors = graph.n_tensors
    rules = {
        "mode": trace.mode in MODES,
        "ops": graph.n_ops > 0,
        "root": len(trace.modules) > 0,
        "op modules": _within(graph.op_module, len(trace.modules), graph.n_ops),
        "calls": _within(trace.op_call + 1, len(trace.call_functions) + 1, graph.n_ops),
        "gradients": _within(trace.gradient_of.ravel(), n_tensors),
        "modules": all(_is_module(module, n_tensors) for module in trace.modules),
        "parameters": all(_is_parameter(parameter, n_tensors) for parameter in trace.parameters),
        "names": all(_is_text(name) for name in _texts(trace)),
        "attributes": all(isinstance(value, dict) for value in graph.parsed_attributes),
    }
    _raise_broken([name for name, holds in rules.items() if not holds], where)


def check_step(graph: Graph, *, where: str) -> None:
    """Raises when a graph, whose indices are right, is no step that could run: nobody who reads it looks again."""
    _raise_broken([] if _has_sizes(graph) else ["dimensions"], where)
    _raise_broken(broken_orders(graph), where)
    names = list(dict.fromkeys(ops_out_of_form(graph)))[:_MOST_NAMES]
    _raise_broken([f"ops {name}" for name in names], where)
    with np.errstate(over="ignore", invalid="ignore"):
        flop = op_flop(graph, _FLOP_BATCHES)
    _raise_broken([] if bool(np.all((flop >= 0) & np.isfinite(flop))) else ["flop"], where)


def _has_sizes(graph: Graph) -> bool:
    """Whether every dimension is one and grows with the batch, and one sample's storages can be counted."""
    first = graph.dim_base + graph.dim_slope
    if not bool(np.all((graph.dim_slope >= 0) & (first >= 0))):
        return False
    numel = np.ones(graph.n_tensors)
    np.multiply.at(numel, np.repeat(np.arange(graph.n_tensors), np.diff(graph.dim_start)), first.astype(np.float64))
    owner = graph.storage_owner
    return bool((numel * ITEM_BYTES[graph.tensor_dtype]).max(initial=0.0) < _MOST_BYTES_A_SAMPLE) and bool(
        (numel[owner] * ITEM_BYTES[graph.tensor_dtype[owner]]).sum() < _MOST_BYTES_A_SAMPLE
    )


def _texts(trace: Trace) -> Iterator[object]:
    """Everything in words that somebody may be shown."""
    yield trace.name
    yield from (*trace.graph.names, *trace.graph.attributes, *trace.call_functions)
    yield from (*trace.assumptions, *trace.uncosted_ops, *trace.provenance, *trace.provenance.values())


def _is_text(value: object) -> bool:
    """JSON can hold half a character (a lone surrogate), which no page and no terminal can show."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _is_tensor(number: object, n_tensors: int, *, smallest: int = 0) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and smallest <= number < n_tensors


def _is_module(module: Module, n_tensors: int) -> bool:
    ends = all(_is_tensor(tensor, n_tensors, smallest=-1) for tensor in (module.input, module.output))
    owns = all(_is_tensor(tensor, n_tensors) for tensor in module.parameters)
    return _is_text(module.path) and _is_text(module.kind) and ends and owns


def _is_parameter(parameter: Parameter, n_tensors: int) -> bool:
    has_gradient = _is_tensor(parameter.gradient, n_tensors, smallest=-1)
    return _is_text(parameter.name) and _is_tensor(parameter.tensor, n_tensors) and has_gradient
