"""What is asked of a forecast: a training run on one device or many, checked once."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError, ParameterError
from traincast.hardware.cluster import Cluster
from traincast.hardware.device import Device
from traincast.hardware.host import Host
from traincast.kernels.method import Method
from traincast.kernels.predictor import Traincast
from traincast.memory.shares import Shares
from traincast.scaling.blocks import attention_outputs
from traincast.scaling.held_memory import shares_of
from traincast.scaling.split import ModelSplit, check_devices, check_kind, check_model, find_schedule
from traincast.scaling.strategy import DDP, Strategy
from traincast.trace.check import check_batch_size
from traincast.trace.graph import Graph
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.lower import lower
from traincast.trace.rewrite.training import as_trained
from traincast.trace.settings import COMPILE_MODES, Settings, check_choice
from traincast.trace.trace import Trace

if TYPE_CHECKING:
    from traincast.hardware.run_place import RunPlace

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
    compile_mode: str = "default"  # of torch.compile
    accumulation_steps: int = 1
    cluster: Cluster | None = None  # None: one device alone
    strategy: Strategy = DDP
    tensor_parallel: int = 1  # devices that share every block of a transformer
    pipeline_parallel: int = 1  # stages that share its blocks
    context_parallel: int = 1  # devices that share every sequence
    context_kind: str = "ring"
    pipeline_schedule: str = "1f1b"
    n_samples: int | None = None
    n_epochs: int = 1
    n_tokens: int | None = None  # where the run was asked in tokens: samples and epochs are the same length in words
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
        _check_passes(self.batch_size, self.accumulation_steps)
        if self.is_inference:
            self._check_inference()
        check_choice("compile_mode", self.compile_mode, COMPILE_MODES)
        if self.compile_mode != "default" and not self.compiled:
            raise ParameterError(
                "compile_mode", self.compile_mode, "it is a mode of torch.compile: ask for compiled code"
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

    def _check_inference(self) -> None:
        """Devices that predict side by side exchange nothing; other ways to share a model are not modelled."""
        if self.n_devices > 1 and self.strategy.kind != "ddp":
            raise InputError(
                f"Inference is modelled with a whole model on every device (strategy 'ddp'), not with "
                f"'{self.strategy.name}'."
            )
        if self.split.n_devices > 1:
            raise InputError("Inference is modelled with a whole model on every device: leave tensor and pipeline out.")

    def _check_split(self) -> None:
        _check_count("tensor_parallel", self.tensor_parallel)
        _check_count("pipeline_parallel", self.pipeline_parallel)
        _check_count("context_parallel", self.context_parallel)
        self._check_shards()
        if self.split.n_devices == 1:
            return
        if self.strategy.kind not in ("ddp", "sharded"):
            raise InputError(
                "Tensor, pipeline and context parallelism go with ddp, zero1 to zero3, fsdp and hsdp:N, not with the "
                f"strategy '{self.strategy.name}'."
            )
        check_devices(self.split, self.cluster)
        check_model(self.split, self.graph, self.trace.name)

    def _check_shards(self) -> None:
        n_shards = self.strategy.n_shards
        if n_shards and self.n_peers % n_shards:
            raise InputError(
                f"The strategy '{self.strategy.name}' needs groups of {n_shards} devices with the same weights, and "
                f"there are {self.n_peers}: choose a number that divides {self.n_peers}."
            )

    @property
    def is_inference(self) -> bool:
        return self.trace.mode == "inference"

    @property
    def update_name(self) -> str:
        """What follows the passes of a step: the optimizer's update, or nothing."""
        return "inference" if self.is_inference else self.settings.optimizer

    @property
    def n_devices(self) -> int:
        return 1 if self.cluster is None else self.cluster.n_devices

    @cached_property
    def split(self) -> ModelSplit:
        """How one replica of the model is divided among devices."""
        return ModelSplit(
            tensor=self.tensor_parallel,
            pipeline=self.pipeline_parallel,
            context=self.context_parallel,
            context_kind=check_kind(self.context_kind),
            schedule=find_schedule(self.pipeline_schedule),
            overlaps=self.has_transformer_engine,
        )

    @property
    def has_transformer_engine(self) -> bool:
        """Megatron runs its layers where attention is fused; before, it wrote attention out."""
        return self.settings.stack == "megatron" and OpKind.ATTENTION in op_kinds(self.graph)

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
    def n_peers(self) -> int:
        """Devices that have the same part of the weights and reduce its gradients: of all replicas and contexts."""
        return self.n_replicas * self.context_parallel

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
    def trained_trace(self) -> Trace:
        """The step as the settings have it trained, with what runs again."""
        return as_trained(self.trace, self.run_settings)

    @property
    def tokens_per_batch(self) -> int | None:
        """Of one update of all devices; None of a model that reads no tokens."""
        each = self.trace.tokens_per_sample
        return None if each is None else each * self.batch_size

    @property
    def shares(self) -> Shares:
        """What a device has of the state of its part of the model."""
        return shares_of(
            self.strategy,
            self.n_peers,
            has_masters=self.run_settings.keeps_masters,
            accumulates=self.accumulation_steps > 1 or self.settings.stack == "megatron",
        )

    @cached_property
    def graph(self) -> Graph:
        """What the device runs, op by op."""
        return lower(self.trace, target="cpu" if self.device.kind == "cpu" else "cuda", settings=self.run_settings)

    @cached_property
    def run_settings(self) -> Settings:
        """With what the strategy and the stack decide where the user does not."""
        return self.settings.resolved(is_sharded=self.strategy.kind == "sharded")

    @property
    def timed_graph(self) -> Graph:
        """The same as it is timed: what a compiler joins is one op. Memory is told of the ops before that."""
        if not self.compiled:
            return self.graph
        from traincast.trace.lowering.fuse import fuse  # what Inductor would plan is loaded by those who ask for it

        return fuse(self.graph)

    @cached_property
    def timed_method(self) -> Method:
        """Compiled images may lie in another layout than those of the user: the compiler turns them on GPUs.

        Transformer Engine, which Megatron calls, takes the attention kernels of the vendor for each generation.
        """
        if isinstance(self.method, Traincast) and self.settings.stack == "megatron" and self.device.kind == "gpu":
            return replace(self.method, attention="tuned")
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
        if not self.has_cuda_graphs:
            return replace(self.host, forward_dispatch_s=kernel_s, backward_dispatch_s=kernel_s, view_dispatch_s=0.0)
        call_s = self.host.call_s + kernel_s  # the forward graph; that of backward is launched while it runs
        return replace(self.host, forward_dispatch_s=0.0, backward_dispatch_s=0.0, view_dispatch_s=0.0, call_s=call_s)

    @property
    def has_cuda_graphs(self) -> bool:
        """Whether a pass is launched at once, and no kernel waits for the host."""
        return self.compiled and self.compile_mode != "default" and self.device.kind == "gpu"

    @property
    def compilation(self) -> str:
        """How it is compiled, in words; empty where it is not."""
        mode = "" if self.compile_mode == "default" else f" ({self.compile_mode})"
        return f"compiled{mode}" if self.compiled else ""


def check_before_capture(places: Iterable[RunPlace], batch_size: int, options: Mapping[str, Any]) -> None:
    """What can be refused before there is a model, whose capture may take long. A question checks all of it again."""
    check_batch_size(batch_size)
    _check_passes(batch_size, options["accumulation_steps"])
    parallel = ("tensor_parallel", "pipeline_parallel", "context_parallel")
    split = ModelSplit(*(options.get(name, 1) for name in parallel))
    for place in places:
        if split.n_devices > 1:
            check_devices(split, place.cluster)
        if options["precision"] is not None:
            place.device.peak(options["precision"])


def _check_passes(batch_size: int, n_passes: int) -> None:
    if batch_size % n_passes:
        raise InputError(
            f"A batch of {batch_size:,} cannot be split evenly into {n_passes:,} accumulation steps: choose a batch "
            f"size that {n_passes:,} divides."
        )


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
