"""The blocks of a model: modules that repeat, known by their place (`layers.0`, `h.11`, `encoder.block.3`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from traincast.trace.graph import Graph, Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.once import once_per_graph
from traincast.trace.trace import Module, Trace

_NUMBERED = re.compile(
    r"(^|\.)(encoder_layer_|decoder_layer_)?[0-9]+$"
)  # as torchvision names its blocks, or by number


@dataclass(frozen=True, slots=True)
class Block:
    """A block that runs, and the ops of one of its forward passes."""

    path: str
    ops: tuple[int, ...]


def blocks_of(trace: Trace) -> tuple[Block, ...]:
    """The blocks of a model in the order in which they run; none where nothing repeats."""
    paths = block_paths(trace)
    block_of = [_owner(module.path, paths) for module in trace.modules]
    found: list[tuple[str, list[int]]] = []
    forward = np.flatnonzero((trace.graph.op_phase == Phase.FORWARD) & (trace.graph.op_recomputed == 0))
    latest = ""
    for op in forward.tolist():
        path = block_of[trace.graph.op_module[op]]
        if path and path != latest:
            found.append((path, []))
        if path:
            found[-1][1].append(op)
        latest = path
    return tuple(Block(path, tuple(ops)) for path, ops in found)


def block_paths(trace: Trace) -> tuple[str, ...]:
    """Elements of the outermost containers that hold several modules of one class, each with modules of its own.

    Where an element holds a container whose elements attend (the stages of a Swin transformer), the inner ones are
    the blocks.
    """
    containers = _containers(trace.modules)
    if not containers:
        return ()
    attends = [trace.modules[module].path for module in _attention_modules(trace)]
    found: list[str] = []
    for container in sorted(containers, key=lambda path: (path.count("."), path)):
        elements = containers[container]
        if any(_is_within(container, path) for path in found):
            continue
        inner = [path for path in containers if _is_within(path, container) and path != container]
        is_stage = any(_attends_inside(attends, element, inner) for element in elements)
        if not is_stage:
            found += elements
    return tuple(found)


def _attends_inside(attends: list[str], element: str, inner: list[str]) -> bool:
    """Whether an inner container of an element holds attentions."""
    own = [container for container in inner if _is_within(container, element)]
    return any(_is_within(path, container) for container in own for path in attends)


def _containers(modules: tuple[Module, ...]) -> dict[str, list[str]]:
    """Container -> its elements, where at least two of one class have modules of their own."""
    parents = {module.path.rpartition(".")[0] for module in modules if module.path}
    found: dict[str, list[Module]] = {}
    for module in modules:
        container = _NUMBERED.sub("", module.path)
        if container != module.path and module.path in parents:
            found.setdefault(container, []).append(module)
    return {
        container: [module.path for module in elements]
        for container, elements in found.items()
        if len(elements) > len({module.kind for module in elements})
    }


def _attention_modules(trace: Trace) -> list[int]:
    graph = trace.graph
    return [int(graph.op_module[op]) for op in attention_ops(graph)]


@once_per_graph
def attention_ops(graph: Graph) -> tuple[int, ...]:
    """Ops of the forward pass that attend: one op, or the softmax between two batched products."""
    kinds = op_kinds(graph)
    forward = np.flatnonzero((graph.op_phase == Phase.FORWARD) & (graph.op_recomputed == 0)).tolist()
    fused = tuple(op for op in forward if kinds[op] == OpKind.ATTENTION)
    if fused:
        return fused
    marks = [op for op in forward if kinds[op] in (OpKind.SOFTMAX, OpKind.BATCHED_GEMM)]
    middle = zip(marks, marks[1:], marks[2:], strict=False)
    return tuple(
        op
        for before, op, after in middle
        if [kinds[each] for each in (before, op, after)] == [OpKind.BATCHED_GEMM, OpKind.SOFTMAX, OpKind.BATCHED_GEMM]
    )


def _is_within(path: str, outer: str) -> bool:
    return outer in ("", path) or path.startswith(f"{outer}.")


def _owner(path: str, blocks: tuple[str, ...]) -> str:
    return next((block for block in blocks if _is_within(path, block)), "")
