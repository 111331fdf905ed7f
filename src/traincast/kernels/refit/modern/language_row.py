"""One measured training step of a language model, and the question that a user would ask about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from traincast.kernels.refit.modern.architecture import Architecture
from traincast.kernels.refit.modern.devices import known_device
from traincast.kernels.refit.modern.kernel_row import NO_DEVICE

_NODE = 8  # devices of a node in every file


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """How a run is spread over its devices."""

    strategy: str = "ddp"
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    context_parallel: int = 1

    @property
    def devices_per_replica(self) -> int:
        return self.tensor_parallel * self.pipeline_parallel * self.context_parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRow:
    """A line of a run file. `not_asked` says why the code cannot be asked, `assumed` what was taken for granted."""

    file: str
    source: str
    device: str  # as the file writes it
    n_gpus: int
    between: str  # the link from node to node, as clusters are written: "1600Gb/s"
    model: str
    architecture: Architecture | None
    precision: str
    global_batch: int
    accumulation_steps: int
    recompute: str  # none, full, or as the file says
    attention: str  # fused or eager
    is_compiled: bool
    sharding: Sharding
    parts: tuple[str, ...]  # of a forecast that the time is of; none: the whole step
    step_s: float
    not_asked: str = ""
    assumed: tuple[str, ...] = ()
    memory_bytes: float | None = None
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def device_name(self) -> str | None:
        """In the device table; None while it has no such device."""
        return known_device(self.device)

    @property
    def reason(self) -> str:
        """Why no forecast can be asked for; empty where it can."""
        return self.not_asked or ("" if self.device_name else f"{NO_DEVICE}: {self.device}")

    @property
    def asked_precision(self) -> str:
        """Sixteen bits are asked as bf16, which runs as fast as fp16 wherever both were measured."""
        return "bf16" if self.precision.startswith(("bf16", "fp16")) else self.precision

    @property
    def trace_name(self) -> str:
        """Of the file that benchmarks/capture_language_models.py writes, without suffix."""
        assert self.architecture is not None
        marks = ["eager"] * (self.attention == "eager") + ["recomputed"] * (self.recompute == "full")
        return "--".join(["lm", self.architecture.name, str(self.architecture.seqlen), *marks])

    @property
    def place(self) -> str:
        """The devices as a user writes them."""
        if self.n_gpus == 1:
            return str(self.device_name)
        if self.n_gpus <= _NODE:
            return f"{self.n_gpus}x{self.device_name}"
        return f"{self.n_gpus // _NODE}x{_NODE}x{self.device_name}@{self.between}"

    @property
    def n_tokens(self) -> int:
        """Of one step."""
        assert self.architecture is not None
        return self.global_batch * self.architecture.seqlen

    @property
    def flop_per_gpu(self) -> float:
        """Of one step as MFU is usually counted, recomputation left out."""
        assert self.architecture is not None
        return self.n_tokens * self.architecture.flop_per_token / self.n_gpus
