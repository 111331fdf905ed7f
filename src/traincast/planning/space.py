"""What is searched: one run, and everything about it that may be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from traincast.errors import InputError
from traincast.forecasting.question import Question
from traincast.hardware.catalog import find_device
from traincast.hardware.cluster import Cluster, check_count
from traincast.hardware.device import Device
from traincast.hardware.host import Host
from traincast.hardware.link import Link
from traincast.hardware.machines import Machine
from traincast.kernels.method import Method
from traincast.scaling.strategy import DDP, Strategy
from traincast.trace.check import check_batch_size
from traincast.trace.settings import FORECAST_PRECISIONS, Settings
from traincast.trace.trace import Trace

MOST_PASSES = 1024
_MOST_DEVICES = 16_384
_REDUCED = ("amp-bf16", "amp-fp16")  # of these a device's first is tried: both take equally long where it has both


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Run:
    """What stays the same in every plan."""

    trace: Trace
    settings: Settings  # with a precision that the search replaces
    method: Method
    host: Host
    compiled: bool = False
    compile_mode: str = "default"
    input_samples_per_s: float | None = None
    warnings: tuple[str, ...] = ()

    def question(
        self,
        device: Device,
        precision: str,
        batch_size: int,
        *,
        cluster: Cluster | None = None,
        strategy: Strategy = DDP,
        n_passes: int = 1,
    ) -> Question:
        return Question(
            trace=self.trace,
            device=device,
            batch_size=batch_size,
            settings=replace(self.settings, precision=precision),
            method=self.method,
            host=self.host,
            compiled=self.compiled,
            compile_mode=self.compile_mode,
            accumulation_steps=n_passes,
            cluster=cluster,
            strategy=strategy,
            input_samples_per_s=self.input_samples_per_s,
            warnings=self.warnings,
        )


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Space:
    """What may be chosen. Without precisions a device is tried in those that it has units for."""

    offers: tuple[Machine, ...]
    batch_sizes: tuple[int, ...]
    precisions: tuple[str, ...] = ()
    strategies: tuple[Strategy, ...] = (DDP,)
    fallback: Strategy | None = None  # also tried where another strategy needs several passes, or does not fit
    max_devices: int = 64
    max_nodes: int = 8
    devices_file: str | Path | None = None

    def __post_init__(self) -> None:
        if not (self.offers and self.batch_sizes and self.strategies):
            raise InputError("A plan needs at least one offer, one batch size and one strategy to choose from.")
        for batch_size in self.batch_sizes:
            check_batch_size(batch_size)
        check_count(self.max_devices, "The largest number of devices")
        check_count(self.max_nodes, "The largest number of machines")
        if max(self.max_devices, self.max_nodes) > _MOST_DEVICES:
            raise InputError(
                f"A plan has at most {_MOST_DEVICES:,} devices, not {max(self.max_devices, self.max_nodes):,}."
            )

    @property
    def all_strategies(self) -> tuple[Strategy, ...]:
        return self.strategies if self.fallback is None else (*self.strategies, self.fallback)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MachineGroup:
    """Machines that take equally long, whatever they cost: the same devices in the same number, joined alike."""

    device: Device
    cluster: Cluster  # of the first offer
    offers: list[int] = field(default_factory=list)  # numbers in Space.offers

    @property
    def n_devices(self) -> int:
        return self.cluster.n_devices

    @property
    def n_nodes(self) -> int:
        return self.cluster.n_nodes


def places_of(space: Space) -> list[MachineGroup]:
    """1, 2, 4 ... machines of every offer, as far as its network is known and the devices are not too many."""
    found: dict[tuple[object, ...], MachineGroup] = {}
    for number, offer in enumerate(space.offers):
        device = find_device(offer.device, devices_file=space.devices_file)
        for n_nodes in _node_counts(offer, space):
            key = _key(offer, device, n_nodes)
            if key not in found:
                cluster = offer.cluster(n_nodes, devices_file=space.devices_file)
                found[key] = MachineGroup(device=device, cluster=cluster)
            found[key].offers.append(number)
    return list(found.values())


def _node_counts(offer: Machine, space: Space) -> Iterable[int]:
    most = min(space.max_devices // offer.n_devices, space.max_nodes if offer.network is not None else 1)
    n_nodes = 1
    while n_nodes <= most:
        yield n_nodes
        n_nodes *= 2


def _key(offer: Machine, device: Device, n_nodes: int) -> tuple[object, ...]:
    """A link that nothing passes makes no difference."""
    inside = _rate(offer.inside) if offer.n_devices > 1 else None
    return (device.name, offer.n_devices, n_nodes, inside, _rate(offer.network) if n_nodes > 1 else None)


def _rate(link: Link | None) -> tuple[float, float] | None:
    return None if link is None else (link.latency_s, link.sustained_bytes_per_s)


def precisions_for(device: Device, asked: Sequence[str]) -> tuple[str, ...]:
    """Those that were asked for, if the device's rate is known; else fp32 and what its units speed up."""
    if asked:
        return tuple(name for name in asked if _is_known(device, name))
    found = ["fp32"] if _is_known(device, "fp32") else []
    if _is_known(device, "tf32") and not device.peak("tf32").is_fallback:
        found.append("tf32")
    for name in _REDUCED:
        if _is_known(device, name) and not device.peak(name).is_fallback:
            return (*found, name)
    return tuple(found)


def _is_known(device: Device, precision: str) -> bool:
    try:
        device.peak(precision)
    except InputError:
        if precision not in FORECAST_PRECISIONS:
            raise
        return False
    return True
