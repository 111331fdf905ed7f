"""From how many devices to which: placements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from traincast.errors import InputError
from traincast.scheduling.decision import Placement, State

Grant = tuple[str, int]  # type of device, how many
Choose = Callable[[list[int], int, Sequence[int]], int]  # free on each node, how many are missing, nodes: the next one


def place(state: State, grants: Mapping[int, Grant]) -> dict[int, Placement]:
    """Who has as many devices as before stays; the others come in the order of `grants`, each on the emptiest nodes.

    The rule of Pollux' simulator: the node with the most free devices first, the first of equals.
    """
    placements, free = kept_placements(state, grants)
    for job, (kind, n) in grants.items():
        if job not in placements and n:
            placements[job] = _take(free, n, nodes_of(state, kind), _emptiest)
    return placements


def place_tightly(state: State, grants: Mapping[int, Grant]) -> dict[int, Placement]:
    """Who keeps its count stays; of the others the largest choose first, each on the fewest and fullest nodes."""
    placements, free = kept_placements(state, grants)
    for job in sorted((job for job in grants if job not in placements), key=lambda job: -grants[job][1]):
        kind, n = grants[job]
        placements[job] = _take(free, n, nodes_of(state, kind), _tightest)
    return placements


def place_evenly(state: State, grants: Mapping[int, Grant]) -> dict[int, Placement]:
    """Who keeps its count stays; then small jobs first, each on the fewest nodes, as evenly as can be."""
    placements, free = kept_placements(state, grants)
    for job in sorted((job for job in grants if job not in placements), key=lambda job: grants[job][1]):
        kind, n = grants[job]
        placements[job] = evenly_on_fewest(free, n, nodes_of(state, kind))
    return placements


def kept_placements(state: State, grants: Mapping[int, Grant]) -> tuple[dict[int, Placement], list[int]]:
    """Of the jobs that run now, those whose number and type of devices stay; and what that leaves free on each node."""
    kept: dict[int, Placement] = {}
    free = list(state.free)
    kinds = state.machines.kinds
    for job, placement in state.placed.items():
        granted = grants.get(job)
        if granted is not None and granted[1] == state.held[job] and granted[0] == kinds[placement[0][0]]:
            kept[job] = placement
        else:
            for node, n in placement:
                free[node] += n
    return kept, free


def nodes_of(state: State, kind: str) -> Sequence[int]:
    """Nodes of a type."""
    if len(state.machines.types) == 1:
        return range(state.machines.n_nodes)
    return [node for node, own in enumerate(state.machines.kinds) if own == kind]


def devices_of_types(state: State) -> dict[str, int]:
    """Devices of each type that work now."""
    there = dict.fromkeys(state.machines.types, 0)
    for kind, n in zip(state.machines.kinds, state.capacity, strict=True):
        there[kind] += n
    return there


def _emptiest(free: list[int], missing: int, nodes: Sequence[int]) -> int:
    return max(nodes, key=free.__getitem__)


def _tightest(free: list[int], missing: int, nodes: Sequence[int]) -> int:
    """Full nodes first, then the node where the rest leaves least free."""
    fitting = [node for node in nodes if free[node] >= missing]
    return min(fitting, key=free.__getitem__) if fitting else max(nodes, key=free.__getitem__)


def _take(free: list[int], n_devices: int, nodes: Sequence[int], choose: Choose) -> Placement:
    """Node after node, from `free`."""
    taken: list[tuple[int, int]] = []
    missing = n_devices
    while missing:
        node = choose(free, missing, nodes)
        n = min(free[node], missing)
        assert n > 0, "a policy assigned more devices than there are"
        taken.append((node, n))
        free[node] -= n
        missing -= n
    return tuple(taken)


def evenly_on_fewest(free: list[int], n_places: int, nodes: Sequence[int]) -> Placement:
    """The smallest number of nodes that can hold them, the emptiest; takes the places from `free`."""
    order = sorted(nodes, key=lambda node: -free[node])
    n_nodes, held = 0, 0
    while held < n_places:
        assert n_nodes < len(order), "a policy assigned more devices than there are"
        held += free[order[n_nodes]]
        n_nodes += 1
    taken = []
    missing = n_places
    for position, node in enumerate(reversed(order[:n_nodes])):  # the fullest first: what it lacks the others give
        n = min(free[node], missing // (n_nodes - position))
        free[node] -= n
        missing -= n
        taken.append((node, n))
    assert missing == 0
    return tuple((node, n) for node, n in taken if n)


def only_kind(state: State, policy: str) -> str:
    """The type of all devices, for policies that know but one."""
    kinds = state.machines.types
    if len(kinds) > 1:
        raise InputError(
            f"'{policy}' schedules devices of a single type, but '{state.machines.name}' has {len(kinds)}: "
            "'gavel', 'fifo', 'srtf', 'tiresias' and 'drf' support several."
        )
    return kinds[0]
