"""The kernels of a compiled step and the memory that each of them touches."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from traincast.trace.graph import Graph
from traincast.trace.lowering.inductor.buffers import buffers_of
from traincast.trace.lowering.inductor.flow import Value, flow_of
from traincast.trace.lowering.inductor.groups import Group, Scheduler
from traincast.trace.lowering.inductor.nodes import PROBE_BATCH, nodes_of


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one group reads and writes, each tensor once. `op` is the op of the graph that it stands for."""

    op: int
    reads: list[int]
    writes: list[int]
    is_extern: bool
    is_reduction: bool
    ops: tuple[int, ...]


def compiled_kernels(graph: Graph) -> list[Kernel]:
    """All of them, in running order."""
    return _Traffic(graph).kernels()


class _Traffic:
    def __init__(self, graph: Graph) -> None:
        self.storage = graph.tensor_storage.tolist()
        self.nodes = nodes_of(graph)
        self.flow = flow_of(graph, self.nodes)
        self.buffers = buffers_of(graph, self.nodes, self.flow)
        self.groups = Scheduler(self.nodes, self.flow, self.buffers, self.storage).groups()
        self.group_of = {number: place for place, group in enumerate(self.groups) for number in group.nodes}
        self.loaded_by: dict[Value, set[int]] = defaultdict(set)  # groups
        for number, place in self.group_of.items():
            for value in self.buffers.loads[number]:
                self.loaded_by[value].add(place)
        self.numel = graph.numel(np.array([PROBE_BATCH]))[0].tolist()
        self.owner = graph.storage_owner.tolist()

    def kernels(self) -> list[Kernel]:
        return [self._kernel(place, group) for place, group in enumerate(self.groups)]

    def _kernel(self, place: int, group: Group) -> Kernel:
        last = self.nodes[group.nodes[-1]]
        ops = tuple(dict.fromkeys(self.nodes[number].op for number in group.nodes))
        if group.is_extern:
            return Kernel(last.op, list(last.reads), list(last.writes), True, False, ops)
        reads = [
            tensor
            for number in group.nodes
            for value, tensor in self.buffers.loads[number].items()
            if self.group_of.get(value[1], -1) != place
        ]
        writes = [
            tensor
            for number in group.nodes
            for tensor in self.nodes[number].writes
            if self._is_needed((self.storage[tensor], number), place)
        ]
        return Kernel(last.op, self._touched(reads), self._touched(writes or last.writes), False, group.depth > 1, ops)

    def _is_needed(self, value: Value, place: int) -> bool:
        """Whether another kernel loads it, or nobody ever does: then it is a result of the step."""
        readers = self.flow.readers.get(value, ())
        if not readers:
            return self.flow.last_writer[value[0]] == value[1] and self.buffers.lasts[value[0]]
        return bool(self.loaded_by[value] - {place}) or (
            self.flow.last_writer[value[0]] == value[1] and self.buffers.kept[value[0]]
        )

    def _touched(self, tensors: list[int] | tuple[int, ...]) -> list[int]:
        """One tensor for the views of a storage that cover it; its parts where they do not."""
        by_storage: dict[int, list[int]] = defaultdict(list)
        for tensor in dict.fromkeys(tensors):
            by_storage[self.storage[tensor]].append(tensor)
        touched: list[int] = []
        for storage, views in by_storage.items():
            covered = sum(self.numel[view] for view in views)
            is_whole = len(views) > 1 and covered > self.numel[self.owner[storage]]
            touched += [max(views, key=self.numel.__getitem__)] if is_whole else views
        return touched
