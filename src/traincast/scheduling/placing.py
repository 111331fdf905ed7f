"""From how many devices to which: placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from traincast.errors import InputError
from traincast.scheduling.decision import Placement, State

Grant = tuple[str, int]  # type of device, how many


def place(state: State, grants: Mapping[int, Grant]) -> dict[int, Placement]:
    """Who has as many devices as before stays; the others come in the order of `grants`, each on the emptiest nodes.

    The rule of Pollux' simulator: the node with the most free devices first, the first of equals.
    """
    placements, free = kept_placements(state, grants)
    for job, (kind, n) in grants.items():
        if job not in placements and n:
            placements[job] = emptiest_first(free, n, nodes_of(state, kind))
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


def emptiest_first(free: list[int], n_devices: int, nodes: Sequence[int]) -> Placement:
    """Takes them from `free`."""
    taken: list[tuple[int, int]] = []
    missing = n_devices
    while missing:
        node = max(nodes, key=free.__getitem__)
        n = min(free[node], missing)
        assert n > 0, "a policy gave out more devices than there are"
        taken.append((node, n))
        free[node] -= n
        missing -= n
    return tuple(taken)


def tightest_first(free: list[int], n_devices: int, nodes: Sequence[int]) -> Placement:
    """The fewest nodes, and of these the fullest: full nodes first, then the node where the rest leaves least free.

    Takes them from `free`.
    """
    taken: list[tuple[int, int]] = []
    missing = n_devices
    while missing:
        fitting = [node for node in nodes if free[node] >= missing]
        node = min(fitting, key=free.__getitem__) if fitting else max(nodes, key=free.__getitem__)
        n = min(free[node], missing)
        assert n > 0, "a policy gave out more devices than there are"
        taken.append((node, n))
        free[node] -= n
        missing -= n
    return tuple(taken)


def only_kind(state: State, policy: str) -> str:
    """The type of all devices, for policies that know but one."""
    kinds = state.machines.types
    if len(kinds) > 1:
        raise InputError(
            f"'{policy}' divides devices of one type, and '{state.machines.name}' has {len(kinds)}: 'gavel', 'fifo', "
            "'srtf', 'tiresias' and 'drf' know several."
        )
    return kinds[0]
