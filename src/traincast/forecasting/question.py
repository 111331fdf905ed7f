"""What is asked of a forecast: a training run on one device or many, checked once."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from functools import cached_property

from traincast.errors import InputError, ParameterError
from traincast.hardware.cluster import Cluster
from traincast.hardware.device import Device
from traincast.hardware.host import Host
from traincast.kernels.method import Method
from traincast.kernels.predictor import Traincast
from traincast.scaling.blocks import attention_outputs
from traincast.scaling.model_parallel import ModelSplit, check_devices, check_model
from traincast.scaling.strategy import DDP, Strategy
from traincast.trace.check import check_batch_size
from traincast.trace.graph import Graph
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace

_LARGEST_COUNT = 10**15  # nobody means more

# A kernel that compiled code launches, over an eager op: 16 us in three measured steps that the host binds
# (docs/compiled.md), of which we guess 8 us for the op.
_COMPILED_DISPATCH = 2.0

# Between instances of one placement group (AWS, "Amazon EC2 instance network bandwidth", read 2026-11-16).
_LARGEST_FLOW_BYTES_PER_S = 10e9 / 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """A training run. The batch is that of one update of all devices; `accumulation_steps` passes share it evenly."""

    trace: Trace
    device: Device
    batch_size: int
    settings: Settings
    method: Method
    host: Host
    compiled: bool = False  # the model, not the optimizer, under torch.compile
    accumulation_steps: int = 1
    cluster: Cluster | None = None  # None: one device alone
    strategy: Strategy = DDP
    tensor_parallel: int = 1  # devices that share every block of a transformer
    pipeline_parallel: int = 1  # stages that share its blocks
    n_samples: int | None = None
    n_epochs: int = 1
    input_samples_per_s: float | None = None
    price_usd_per_hour: float | None = None  # of a device; None: that of the cluster's machines, if it is known
    warnings: tuple[str, ...] = ()  # what was assumed while the names were looked up

    def __post_init__(self) -> None:
        check_batch_size(self.batch_size)
        self.device.peak_flop_per_s(self.settings.precision)  # raises where the rate is not known
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
        self._check_split()
        n_passes = self.n_replicas * self.accumulation_steps
        if self.batch_size < n_passes:
            who = "devices" if self.split.n_devices == 1 else "replicas"
            times = f" in {self.accumulation_steps:,} passes each" if self.accumulation_steps > 1 else ""
            raise InputError(
                f"A batch of {self.batch_size:,} leaves some of {self.n_replicas:,} {who}{times} without a sample: "
                f"choose at least {n_passes:,}."
            )

    def _check_split(self) -> None:
        _check_count("tensor_parallel", self.tensor_parallel)
        _check_count("pipeline_parallel", self.pipeline_parallel)
        if self.split.n_devices == 1:
            return
        if self.strategy.kind != "ddp":
            raise InputError(
                f"Tensor and pipeline parallelism go with the strategy 'ddp' only, not with '{self.strategy.name}'."
            )
        check_devices(self.split, self.cluster)
        check_model(self.split, self.graph, self.trace.name)

    @property
    def n_devices(self) -> int:
        return 1 if self.cluster is None else self.cluster.n_devices

    @cached_property
    def split(self) -> ModelSplit:
        """How one replica of the model is divided among devices."""
        return ModelSplit(self.tensor_parallel, self.pipeline_parallel)

    @property
    def stage_fraction(self) -> float:
        """What the fullest stage has of the model."""
        return 1.0 if self.pipeline_parallel == 1 else self.split.stage_fraction(len(attention_outputs(self.graph)))

    @property
    def held_fraction(self) -> float:
        """What a device has of the weights, gradients and optimizer state of its replica."""
        return self.stage_fraction / self.tensor_parallel

    @property
    def n_replicas(self) -> int:
        """Copies of the model that share the batch: one a device, unless several devices share a copy."""
        return self.n_devices // self.split.n_devices

    @property
    def place(self) -> str:
        """What the run is on, in the user's words."""
        return self.device.name if self.cluster is None else self.cluster.name

    @property
    def micro_batch_size(self) -> int:
        """Samples of one forward and backward pass of one replica; of the fullest where shares are not even."""
        return -(-self.batch_size // (self.n_replicas * self.accumulation_steps))

    @property
    def has_limited_flows(self) -> bool:
        """Whether nodes are joined by TCP that is faster than what clouds grant to one flow."""
        cluster = self.cluster
        if cluster is None or cluster.n_nodes == 1 or cluster.between is None:
            return False
        return cluster.between.is_tcp and cluster.between.bytes_per_s > _LARGEST_FLOW_BYTES_PER_S

    @property
    def is_even(self) -> bool:
        """Whether all replicas get equally many samples."""
        return self.batch_size % (self.n_replicas * self.accumulation_steps) == 0

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

    @cached_property
    def graph(self) -> Graph:
        """What the device runs, op by op."""
        return lower(self.trace, target="cpu" if self.device.kind == "cpu" else "cuda", settings=self.settings)

    @property
    def timed_graph(self) -> Graph:
        """The same as it is timed: what a compiler joins is one op. Memory is told of the ops before that."""
        if not self.compiled:
            return self.graph
        from traincast.trace.lowering.fuse import fuse  # what Inductor would plan is loaded by those who ask for it

        return fuse(self.graph)

    @cached_property
    def timed_method(self) -> Method:
        """Compiled images may lie in another layout than those of the user: the compiler turns them on GPUs."""
        may_be_turned = self.layout == "nchw" and self.compiled and self.device.kind != "cpu"
        if not (may_be_turned and isinstance(self.method, Traincast)):
            return self.method
        from traincast.trace.lowering.inductor.layout import runs_channels_last

        return replace(self.method, layout="nhwc") if runs_channels_last(self.graph) else self.method

    @property
    def timed_host(self) -> Host:
        """A compiled step calls kernels only, all but the optimizer's from the Python code that was generated."""
        if not self.compiled:
            return self.host
        kernel_s = _COMPILED_DISPATCH * self.host.forward_dispatch_s
        return replace(self.host, forward_dispatch_s=kernel_s, backward_dispatch_s=kernel_s, view_dispatch_s=0.0)


def _check_count(name: str, value: object) -> None:
    is_whole = type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))
    if not is_whole or int(value) < 1:  # type: ignore[call-overload]
        raise ParameterError(name, value, "give a whole number of at least 1")
    if int(value) > _LARGEST_COUNT:  # type: ignore[call-overload]
        raise InputError(f"{name} is out of range: give a whole number from 1 to {_LARGEST_COUNT:,}.")


def _check_positive(name: str, value: object) -> None:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(float(value)) or float(value) <= 0:  # type: ignore[arg-type]
        raise ParameterError(name, value, "give a number above 0")
