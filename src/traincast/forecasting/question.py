"""What is asked of a forecast: a training run on one device or many, checked once."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace

from traincast.errors import InputError
from traincast.hardware.cluster import Cluster
from traincast.hardware.device import Device
from traincast.hardware.host import Host
from traincast.kernels.method import Method
from traincast.scaling.strategy import DDP, Strategy
from traincast.trace.check import check_batch_size
from traincast.trace.graph import Graph
from traincast.trace.lowering.fuse import fuse
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """A training run. The batch is that of one update of all devices; `accumulation_steps` passes share it evenly."""

    trace: Trace
    device: Device
    batch_size: int
    settings: Settings
    method: Method
    host: Host
    compiled: bool = False  # chains of pointwise ops run as one kernel each
    accumulation_steps: int = 1
    cluster: Cluster | None = None  # None: one device alone
    strategy: Strategy = DDP
    n_samples: int | None = None
    n_epochs: int = 1
    input_samples_per_s: float | None = None
    price_usd_per_hour: float | None = None  # of a device; None: that of the cluster's machines, if it is known
    warnings: tuple[str, ...] = ()  # what was assumed while the names were looked up

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        self.device.peak(self.settings.precision)  # raises where the rate is not known
        _check_count("accumulation_steps", self.accumulation_steps)
        if self.n_samples is not None:
            _check_count("n_samples", self.n_samples)
        _check_count("n_epochs", self.n_epochs)
        if self.input_samples_per_s is not None:
            _check_positive("input_samples_per_s", self.input_samples_per_s)
        if self.price_usd_per_hour is not None:
            _check_positive("price_usd_per_hour", self.price_usd_per_hour)
        if self.batch_size % self.accumulation_steps:
            raise InputError(
                f"A batch of {self.batch_size:,} cannot be shared evenly by {self.accumulation_steps:,} accumulation "
                f"steps: choose a batch size that {self.accumulation_steps:,} divides."
            )
        n_passes = self.n_devices * self.accumulation_steps
        if self.batch_size < n_passes:
            times = f" in {self.accumulation_steps:,} passes each" if self.accumulation_steps > 1 else ""
            raise InputError(
                f"A batch of {self.batch_size:,} leaves some of {self.n_devices:,} devices{times} without a sample: "
                f"choose at least {n_passes:,}."
            )

    @property
    def n_devices(self) -> int:
        return 1 if self.cluster is None else self.cluster.n_devices

    @property
    def place(self) -> str:
        """What the run is on, in the user's words."""
        return self.device.name if self.cluster is None else self.cluster.name

    @property
    def micro_batch_size(self) -> int:
        """Samples of one forward and backward pass of one device; of the fullest where shares are not even."""
        return -(-self.batch_size // (self.n_devices * self.accumulation_steps))

    @property
    def is_even(self) -> bool:
        """Whether all devices get equally many samples."""
        return self.batch_size % (self.n_devices * self.accumulation_steps) == 0

    @property
    def run_price_usd_per_hour(self) -> float | None:
        """Of everything that is rented: all devices, or whole machines where only their price is known."""
        if self.price_usd_per_hour is not None:
            return self.n_devices * self.price_usd_per_hour
        return None if self.cluster is None else self.cluster.price_usd_per_hour

    @property
    def layout(self) -> str:
        """How images lie in memory; methods that do not tell layouts apart have the usual one."""
        return str(getattr(self.method, "layout", "nchw"))

    @property
    def graph(self) -> Graph:
        """What the device runs, op by op."""
        return lower(self.trace, target="cpu" if self.device.kind == "cpu" else "cuda", settings=self.settings)

    @property
    def timed_graph(self) -> Graph:
        """The same as it is timed: what a compiler joins is one op. Memory is told of the ops before that."""
        return fuse(self.graph) if self.compiled else self.graph

    @property
    def timed_host(self) -> Host:
        """A compiled step calls kernels only: its views were worked out beforehand."""
        return replace(self.host, view_dispatch_s=0.0) if self.compiled else self.host


def _check_count(name: str, value: object) -> None:
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or int(value) < 1:  # type: ignore[call-overload]
        raise InputError(f"{name} cannot be {value!r}: give a whole number of at least 1.")


def _check_positive(name: str, value: object) -> None:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(float(value)) or float(value) <= 0:  # type: ignore[arg-type]
        raise InputError(f"{name} cannot be {value!r}: give a number above 0.")
