"""Layers timed alone as blocks: the kernels of everything that one call runs, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from traincast.hardware.catalog import find_device
from traincast.kernels.kernels_of import SIZES
from traincast.kernels.layerwise.rows import LayerRows
from traincast.kernels.library_factors import Chip, Factors, library_seconds
from traincast.kernels.library_traits import Traits, traits_of
from traincast.kernels.lone_layer import lone_layer_graph
from traincast.kernels.refit.block import FLAGS, Block, Kernels
from traincast.kernels.refit.layer_rows import is_host, layer_of
from traincast.kernels.table import kernel_table
from traincast.trace.graph import Floats, Graph, Ints

OfCall = Callable[[Graph, int], dict[str, float]]  # what else to find out about the graph of a row


@dataclass(frozen=True, eq=False, slots=True)
class LayerCalls:
    """`op` says which op of its row's call a kernel is; `extra` has one entry a row for each of its columns."""

    block: Block
    op: Ints
    traits: Traits
    extra: dict[str, Floats]

    @property
    def n_ops(self) -> Floats:
        assert self.block.n_dispatched is not None
        return self.block.n_dispatched

    def op_seconds(self, kernel_s: Floats) -> Floats:
        """One row a row, one column an op of the longest call; ops that a row does not have take 0."""
        table = np.zeros((self.block.n_rows, int(self.n_ops.max())))
        table[self.block.row, self.op] = kernel_s  # an op of a lone layer runs one kernel
        return table

    def with_library(self, kernel_s: Floats, factors: Factors, *, launch_s: float) -> Floats:
        """Seconds of every kernel with the libraries that the factors stand for."""
        chips = [Chip.of(find_device(name)) for name in self.block.devices]
        columns = {
            name: np.array([getattr(chip, name) for chip in chips])[self.block.device] for name in Chip.__slots__
        }
        return library_seconds(kernel_s, self.traits, Chip(**columns), factors, launch_s=launch_s)


def build_calls(
    rows: LayerRows,
    devices: Mapping[str, str],
    *,
    name: str,
    numbers: Iterable[int] | None = None,
    of_call: OfCall | None = None,
) -> LayerCalls:
    """Some milliseconds a row. `devices` are the rows of our device table by what the files call a GPU."""
    parts, traits, extra = [], [], []
    for number in range(len(rows)) if numbers is None else numbers:
        graph = lone_layer_graph(*layer_of(rows, number))
        parts.append(_kernels(graph, int(rows.layers.batch[number]), number))
        traits.append(traits_of(graph).select(np.isin(np.arange(graph.n_ops), parts[-1]["op"])))
        extra.append(of_call(graph, number) if of_call else {})
    per_kernel = {key: np.concatenate([part[key] for part in parts]) for key in (*FLAGS, *SIZES, "row", "op")}
    names = tuple(sorted(set(devices.values())))
    of_row = np.array([devices[gpu] for gpu in rows.gpu.tolist()])
    block = Block(
        name=name,
        kernels=Kernels(**{key: per_kernel[key] for key in FLAGS}, sizes={key: per_kernel[key] for key in SIZES}),
        row=per_kernel["row"],
        count=np.ones(len(per_kernel["row"])),
        device=np.searchsorted(names, of_row)[per_kernel["row"]],
        devices=names,
        observed_s=rows.median_s,
        floor_s=np.zeros(len(rows)),
        n_dispatched=np.array([part["n_ops"] for part in parts]),
        tags={"machine": rows.gpu, "device": of_row, "is_host": is_host(rows), "part": _parts(rows)},
    )
    columns = {key: np.array([each[key] for each in extra]) for key in extra[0]}
    return LayerCalls(block, per_kernel["op"], Traits.join(traits), columns)


def _parts(rows: LayerRows) -> Any:
    return np.where(rows.layers.has_backward, "step", "forward")


def _kernels(graph: Graph, batch_size: int, row: int) -> dict[str, Any]:
    """Every kernel of the call, in the order of its ops."""
    table = kernel_table(graph)
    op, place = np.nonzero(table.op_kernels >= 0)
    used = table.op_kernels[op, place]
    sizes = dict(zip(SIZES, table.sizes(np.array([batch_size]))[0][:, used], strict=True))
    flags = {key: getattr(table.kinds, key)[used] for key in FLAGS}
    return sizes | flags | {"row": np.full(len(used), row), "op": op, "n_ops": float(graph.n_ops)}
