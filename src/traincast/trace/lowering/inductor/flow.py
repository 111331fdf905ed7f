"""Who reads what whom: the data flow between nodes, through views and in-place writes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from traincast.trace.graph import Graph
from traincast.trace.lowering.inductor.nodes import Node, Part

Value = tuple[int, int]  # the storage and the node that wrote it; -1: it was there before the step


@dataclass(frozen=True, eq=False, slots=True)
class Flow:
    reads: list[list[tuple[int, Value]]]  # of each node: the tensor it reads and the value that is in it
    readers: dict[Value, list[int]]
    last_writer: dict[int, int]  # of each storage


def flow_of(graph: Graph, nodes: list[Node]) -> Flow:
    storage = graph.tensor_storage.tolist()
    writer: dict[int, int] = {}
    readers: dict[Value, list[int]] = defaultdict(list)
    reads: list[list[tuple[int, Value]]] = []
    for number, node in enumerate(nodes):
        own: list[tuple[int, Value]] = []
        if node.part == Part.OPTIMIZER:  # all that it reads outlives the step and is in memory
            reads.append(own)
            continue
        for tensor in dict.fromkeys(node.reads):
            value = (storage[tensor], writer.get(storage[tensor], -1))
            own.append((tensor, value))
            known = readers[value]
            if not known or known[-1] != number:
                known.append(number)
        reads.append(own)
        for tensor in node.writes:
            writer[storage[tensor]] = number
    return Flow(reads, readers, writer)
