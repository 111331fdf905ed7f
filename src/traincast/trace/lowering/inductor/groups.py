"""Which buffers are made by one kernel: Inductor's scheduler in short.

A node joins the kernel that makes what it loads, or one that loads the same, if their loops have the same size: both
pointwise over as many elements, or a reduction of rows with what is done to their elements before and to rows or
elements after. Nothing joins a library call (templates that allow it come with mode "max-autotune" only).

Every group has a stage, higher than that of all groups it loads from, so that no two wait for each other. A group
that nobody else has read from yet may still be moved to a later stage; this finds nearly all that Inductor's search
for cycles allows, in one pass over the nodes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush

from traincast.trace.lowering.inductor.buffers import Buffers, is_closed
from traincast.trace.lowering.inductor.flow import Flow, Value
from traincast.trace.lowering.inductor.nodes import Node, Part, Role

_MOST_NODES = 64  # Inductor's max_fusion_size
_RECENT = 4  # of the groups that load the same, so many are tried


@dataclass(eq=False, slots=True)
class Group:
    """Nodes that run as one kernel: loops over `rows` results of `depth` elements."""

    nodes: list[int]
    part: Part
    stage: int
    rows: int
    depth: int
    crosses: bool
    is_extern: bool
    is_closed: bool = False  # nobody can join what it wrote
    is_read: bool = False  # by another group

    @property
    def total(self) -> int:
        return self.rows * self.depth


class Scheduler:
    """One walk over the nodes that have a buffer; `of_node` is the group of each so far."""

    def __init__(self, nodes: list[Node], flow: Flow, buffers: Buffers, storage: list[int]) -> None:
        self.nodes, self.flow, self.buffers, self.storage = nodes, flow, buffers, storage
        self.of_node: dict[int, Group] = {}
        self.loading: dict[Value, list[Group]] = defaultdict(list)

    def groups(self) -> list[Group]:
        """All groups, in an order in which they can run."""
        for number, node in enumerate(self.nodes):
            if self.buffers.is_written[number]:
                self._place(number, node)
        return self._in_running_order()

    def _in_running_order(self) -> list[Group]:
        """Each group as soon as all it loads is there, those first whose last op came first: casts before their use."""
        waits: dict[int, int] = {}
        followers: dict[int, list[Group]] = defaultdict(list)
        ready: list[tuple[int, int, Group]] = []
        for group in {id(group): group for group in self.of_node.values()}.values():
            writers = {writer for number in group.nodes for _, writer in self.buffers.loads[number] if writer >= 0}
            sources = {id(self.of_node[writer]) for writer in writers} - {id(group)}
            waits[id(group)] = len(sources)
            for source in sources:
                followers[source].append(group)
            if not sources:
                heappush(ready, (group.part, group.nodes[-1], group))
        order: list[Group] = []
        while ready:
            done = heappop(ready)[-1]
            order.append(done)
            for group in followers[id(done)]:
                waits[id(group)] -= 1
                if not waits[id(group)]:
                    heappush(ready, (group.part, group.nodes[-1], group))
        return order

    def _place(self, number: int, node: Node) -> None:
        sources = self._sources(number, node)
        group = None if node.role == Role.EXTERN else self._choose(number, node, sources)
        stage = 1 + max((source.stage for source in sources if source is not group), default=-1)
        if group is None:
            is_extern = node.role == Role.EXTERN
            group = Group([number], node.part, stage, node.numel, node.depth, node.crosses, is_extern)
        else:
            group.stage = max(group.stage, stage)
            group.nodes.append(number)
            if node.depth > 1 and group.depth == 1:
                group.rows, group.depth, group.crosses = node.numel, node.depth, node.crosses
        self.of_node[number] = group
        for source in sources:
            if source is not group:
                self._absorb_or_read(group, source)
        group.is_closed |= is_closed(number, self.nodes, self.flow, self.storage)
        if not group.is_extern:
            for value in self.buffers.loads[number]:
                known = self.loading[value]
                if group not in known[-_RECENT:]:
                    known.append(group)

    def _sources(self, number: int, node: Node) -> list[Group]:
        """The groups of the same part that it loads from, latest stage first."""
        found: dict[int, Group] = {}
        for _, writer in self.buffers.loads[number]:
            if writer >= 0 and self.nodes[writer].part == node.part:
                group = self.of_node[writer]
                found[id(group)] = group
        return sorted(found.values(), key=lambda group: -group.stage)

    def _choose(self, number: int, node: Node, sources: list[Group]) -> Group | None:
        if not node.gathers:
            for group in sources:
                if not group.is_closed and self._can_join(group, node, sources):
                    return group
        for value in self.buffers.loads[number]:
            for group in reversed(self.loading[value][-_RECENT:]):
                if group.part == node.part and group not in sources and self._can_join(group, node, sources):
                    return group
        return None

    def _can_join(self, group: Group, node: Node, sources: list[Group]) -> bool:
        """Whether loops agree, and all else that the node loads is there before, or the group can wait for it."""
        if group.is_extern or not group.nodes or len(group.nodes) >= _MOST_NODES or not _same_loops(group, node):
            return False
        needed = 1 + max((source.stage for source in sources if source is not group), default=-1)
        return needed <= group.stage or not group.is_read

    def _absorb_or_read(self, group: Group, source: Group) -> None:
        """A group that nobody else reads becomes part of its reader where loops agree."""
        is_free = not (source.is_extern or source.is_closed or source.is_read or group.is_extern)
        fits = is_free and len(source.nodes) + len(group.nodes) <= _MOST_NODES and _same_groups(group, source)
        if not fits or self.nodes[group.nodes[-1]].gathers:
            source.is_read = True
            return
        for number in source.nodes:
            self.of_node[number] = group
        group.nodes = sorted(group.nodes + source.nodes)
        source.nodes = []
        if source.depth > 1 and group.depth == 1:
            group.rows, group.depth, group.crosses = source.rows, source.depth, source.crosses


def _same_loops(group: Group, node: Node) -> bool:
    """Whether a node can run inside the loops of a group."""
    if group.depth == 1 and node.depth == 1:
        return group.rows == node.numel
    if group.depth == 1:
        return not node.crosses and group.rows in (node.numel, node.numel * node.depth)
    if node.depth == 1:
        return node.numel == group.rows or (node.numel == group.total and not group.crosses)
    return (group.rows, group.depth, group.crosses) == (node.numel, node.depth, node.crosses)


def _same_groups(group: Group, source: Group) -> bool:
    if source.depth == 1:
        return source.rows == group.rows or (source.rows == group.total and not group.crosses)
    if group.depth == 1:
        return not source.crosses and group.rows in (source.rows, source.total)
    return (source.rows, source.depth, source.crosses) == (group.rows, group.depth, group.crosses)
