"""Which results are written to memory at all, and what each kernel then loads.

Inductor works a pointwise result out inside every reader, from what it was made of, unless it has to be in memory: a
library reads it, it is read out of order, it leaves the graph, or working it out again and again would load too much.
Reductions and random numbers always get a buffer of their own (torch/_inductor/lowering.py and ir.py). What is written
into a buffer that only its own kernel reads still does not reach memory; `kernels.py` sees to that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.trace.dtypes import ITEM_BYTES
from traincast.trace.graph import Graph, StorageKind
from traincast.trace.lowering.inductor.flow import Flow, Value
from traincast.trace.lowering.inductor.nodes import MOST_CAT_INPUTS, PROBE_BATCH, Node, Part, Role

_MOST_LOADS_READ_TWICE = 4  # Inductor's realize_reads_threshold: of a result with several readers
_MOST_LOADS = 8  # its realize_acc_reads_threshold: of any result
_MOST_AGAIN = 2.1  # bytes loaded to work a result out again, over its own: saving it would write and load them


@dataclass(frozen=True, eq=False, slots=True)
class Buffers:
    """Of each node whether it has a buffer, and what it loads: values, each with the tensor that says how much of it.

    Of each storage whether it `lasts` beyond the step, and whether it is `kept` then: weights and gradients are, and
    of the others what nobody has read.
    """

    is_written: list[bool]
    loads: list[dict[Value, int]]
    lasts: list[bool]
    kept: list[bool]


def buffers_of(graph: Graph, nodes: list[Node], flow: Flow) -> Buffers:
    numel = graph.numel(np.array([PROBE_BATCH]))[0]
    sizes = (numel * ITEM_BYTES[graph.tensor_dtype]).tolist()
    storage = graph.tensor_storage.tolist()
    lasts = graph.storage_free == graph.n_ops
    is_temporary = np.isin(graph.storage_kind, (StorageKind.TEMPORARY, StorageKind.ACTIVATION))
    found = Buffers([], [], lasts.tolist(), (lasts & ~is_temporary).tolist())
    for number, node in enumerate(nodes):
        loads: dict[Value, int] = {}
        for position, (tensor, value) in enumerate(flow.reads[number]):
            writer = value[1]
            if writer >= 0 and node.part != nodes[writer].part:
                _recall(found, nodes, node, (tensor, value), sizes)
            if writer < 0 or found.is_written[writer]:
                loads.setdefault(value, node.writes[0] if node.picks and position == 0 else tensor)
            else:
                for source, amount in found.loads[writer].items():
                    loads.setdefault(source, amount)
        found.loads.append(loads)
        found.is_written.append(_is_written(number, nodes, flow, storage, found))
    return found


def _is_written(number: int, nodes: list[Node], flow: Flow, storage: list[int], found: Buffers) -> bool:
    node, n_loads = nodes[number], len(found.loads[number])
    if (
        node.role != Role.POINTWISE
        or node.is_random
        or n_loads > _MOST_LOADS
        or is_closed(number, nodes, flow, storage)
    ):
        return True
    n_readers = 0
    for tensor in node.writes:
        readers = flow.readers.get((storage[tensor], number), ())
        if flow.last_writer[storage[tensor]] == number and found.kept[storage[tensor]]:
            return True
        for reader in readers:
            other = nodes[reader]
            if other.part == node.part and (other.role == Role.EXTERN or other.gathers):
                return True
        n_readers += sum(nodes[reader].part == node.part for reader in readers)
    return n_readers == 0 or (n_readers > 1 and n_loads > _MOST_LOADS_READ_TWICE)


def is_closed(number: int, nodes: list[Node], flow: Flow, storage: list[int]) -> bool:
    """Whether it is a concatenation that is written piece by piece: a long one, or one that not only loops read."""
    node = nodes[number]
    if not node.n_cat:
        return False
    readers = flow.readers.get((storage[node.writes[0]], number), ())
    return node.n_cat > MOST_CAT_INPUTS or any(nodes[reader].role != Role.POINTWISE for reader in readers)


def _recall(found: Buffers, nodes: list[Node], reader: Node, read: tuple[int, Value], sizes: list[int]) -> None:
    """What backward reads of the forward pass: loaded, worked out again, or saved for it.

    PyTorch looks for the cut through the joint graph that saves the least. In short: a result that is not in memory is
    worked out again if that does not load much more than saving and loading it would move.
    """
    tensor, (_, writer) = read
    if reader.part != Part.BACKWARD or found.is_written[writer]:
        return
    again = sum(sizes[amount] for amount in found.loads[writer].values())
    if reader.role == Role.EXTERN or reader.gathers or again > _MOST_AGAIN * sizes[tensor]:
        found.is_written[writer] = True
