"""The devices that jobs share: nodes of one or several types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from traincast.errors import InputError
from traincast.hardware.link_table import find_link
from traincast.hardware.place_text import read_place, whole_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """Nodes in a row: how many devices each has, and of which type.

    Types are names and nothing more: how fast a type is stands in the jobs' own tables. Links between nodes matter
    only to jobs whose speed is forecast.
    """

    devices: tuple[int, ...]
    kinds: tuple[str, ...]
    name: str
    links: tuple[str, ...] = ()  # what joins each node to the others, in words; none: not said
    types: tuple[str, ...] = field(init=False)  # each once, as they come

    def __post_init__(self) -> None:
        if self.links and len(self.links) != len(self.devices):
            raise InputError(f"'{self.name}' has {len(self.devices)} nodes but {len(self.links)} links.")
        if len(self.devices) != len(self.kinds):
            raise InputError(f"'{self.name}' has {len(self.devices)} nodes but {len(self.kinds)} types.")
        if not self.devices or min(self.devices) < 1:
            raise InputError(f"'{self.name}' has a node without devices: each needs at least 1.")
        object.__setattr__(self, "types", tuple(dict.fromkeys(self.kinds)))

    @property
    def n_nodes(self) -> int:
        return len(self.devices)

    @property
    def n_devices(self) -> int:
        return sum(self.devices)

    def n_devices_of(self, kind: str) -> int:
        """Devices of a type."""
        return sum(n for n, own in zip(self.devices, self.kinds, strict=True) if own == kind)

    def node_sizes(self, kind: str) -> list[int]:
        """Devices of each node of a type, the largest first."""
        return sorted((n for n, own in zip(self.devices, self.kinds, strict=True) if own == kind), reverse=True)

    def fewest_nodes(self, kind: str, n_devices: int) -> tuple[int, ...]:
        """The shape of so many devices of a type on the fewest nodes: full ones, then what is left."""
        shape: list[int] = []
        missing = n_devices
        for size in self.node_sizes(kind):
            if not missing:
                break
            shape.append(min(size, missing))
            missing -= shape[-1]
        assert not missing, "no more is asked for than there is"
        return tuple(shape)

    def link_of(self, kind: str) -> str:
        """What joins the nodes of a type; empty where it is not said."""
        found = {link for link, own in zip(self.links, self.kinds, strict=False) if own == kind}
        if len(found) > 1:
            named = " and ".join(sorted(link or "none" for link in found))
            raise InputError(f"'{self.name}' joins nodes of {kind} by two links ({named}): name one for all of them.")
        return found.pop() if found else ""


def find_machines(text: str) -> Machines:
    """Machines in words: '16x4xT4' (nodes x devices x type), '4xT4' (one node), '8x4xT4+2x8xV100' (two types).

    A link after an @, as in '16x4xT4@50Gb/s', matters only to jobs whose speed is forecast.
    """
    devices: list[int] = []
    kinds: list[str] = []
    links: list[str] = []
    for part in text.split("+"):
        place = read_place(part)
        if place.parts or len(place.counts) > 2 or not place.name[:1].isalpha() or len(place.name.split()) > 1:
            raise InputError(
                f"'{text}' is not a cluster: write nodes x devices x type, as in 16x4xT4, and + between several types."
            )
        if place.link is not None:
            find_link(place.link)  # raises for what is none, though plain jobs do not ask for its speed
        nodes, each = ("1", "1", *place.counts)[-2:]
        n_nodes = whole_number(nodes, "nodes", text)
        devices += [whole_number(each, "devices per node", text)] * n_nodes
        links += [place.link or ""] * n_nodes
        kinds += [place.name] * n_nodes
    return Machines(devices=tuple(devices), kinds=tuple(kinds), links=tuple(links), name=text)


def shape_of(counts: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Devices on each node, without which node it is."""
    return tuple(n for _, n in counts)
