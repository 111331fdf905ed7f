"""How one replica of a transformer is divided among devices, and what a division needs.

Tensor parallelism: t devices of a node share every block. Pipeline parallelism: p stages have consecutive blocks.
Context parallelism: c devices share every sequence, each with 1/c of its positions. A replica has t x c x p
devices, numbered node by node: those of a tensor-parallel group first, then of a context-parallel one, then stages,
then replicas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from traincast.errors import InputError, close_names
from traincast.hardware.cluster import Cluster
from traincast.scaling.blocks import attention_outputs
from traincast.trace.graph import Graph

ContextKind = Literal["ring", "ulysses"]
_INTERLEAVED = re.compile(r"interleaved:(?P<n>[0-9]{1,4})")
_SCHEDULES = ("1f1b", "gpipe", "interleaved:V", "zero-bubble")
_ZERO_BUBBLE_IDLE = 1 / 3  # gradients of weights, a third of a slot's work, fill what would be idle


@dataclass(frozen=True, slots=True)
class Schedule:
    """In which order the stages of a pipeline work on micro-batches.

    `gpipe` runs all forward passes, then all backward ones (Huang et al., 2019); `1f1b` begins backward as early as it
    can and holds fewer activations (Narayanan et al., 2021); `interleaved:V` gives each stage V pieces of the model,
    which shortens the bubble V times (same paper); `zero-bubble` is ZB-H1 (Qi et al., 2023).
    """

    name: str = "1f1b"
    n_pieces: int = 1  # of the model on each stage

    def idle_slots(self, n_stages: int) -> float:
        """For how many slots, each a forward and backward pass of one stage, a stage has nothing to do."""
        filled = _ZERO_BUBBLE_IDLE if self.name == "zero-bubble" else 1.0
        return filled * (n_stages - 1) / self.n_pieces

    def n_in_flight(self, n_stages: int, n_micro_batches: int) -> float:
        """Micro-batches whose activations the first stage holds."""
        if self.name == "gpipe":
            return float(n_micro_batches)
        more = (n_stages - 1) / self.n_pieces if self.n_pieces > 1 else 0.0
        return min(n_stages + more, float(n_micro_batches))


def find_schedule(text: str) -> Schedule:
    """'1f1b', 'gpipe', 'interleaved:V' or 'zero-bubble'."""
    name = text.strip().lower()
    pieces = _INTERLEAVED.fullmatch(name)
    if pieces is not None and int(pieces["n"]) >= 2:
        return Schedule(name, int(pieces["n"]))
    if name in ("1f1b", "gpipe", "zero-bubble"):
        return Schedule(name)
    hint = close_names(name, _SCHEDULES)
    raise InputError(
        f"No pipeline schedule named '{text}'.{hint} Known: {', '.join(_SCHEDULES)} (V: pieces on each stage, from 2)."
    )


@dataclass(frozen=True, slots=True)
class ModelSplit:
    """How many devices share a replica: `tensor` those of each block, `pipeline` stages, `context` each sequence.

    With `sequence`, what tensor parallelism leaves whole (norms, dropout, additions) is divided by positions
    (Korthikanti et al., 2022), as Megatron-LM and PyTorch's own plans do today. With `overlaps`, what they exchange
    goes beside the products that read or write it, one part for each device (Transformer Engine's user buffers).
    """

    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    context_kind: ContextKind = "ring"
    schedule: Schedule = Schedule()
    sequence: bool = True
    overlaps: bool = False

    @property
    def n_devices(self) -> int:
        """Of one replica."""
        return self.tensor * self.context * self.pipeline

    def n_slots(self, n_micro_batches: int) -> float:
        return n_micro_batches + self.schedule.idle_slots(self.pipeline)

    def bubble_fraction(self, n_micro_batches: int) -> float:
        """Share of the passes' time in which a stage has nothing to do."""
        return self.schedule.idle_slots(self.pipeline) / self.n_slots(n_micro_batches)

    def stage_fraction(self, n_blocks: int) -> float:
        """What the fullest stage has of the blocks."""
        return -(-n_blocks // self.pipeline) / n_blocks if self.pipeline > 1 else 1.0

    def slowest_stage(self, n_blocks: int, head: float) -> float:
        """What it does of a pass of which the head is a part. Where stages are uneven, the last has fewer blocks."""
        fullest = self.stage_fraction(n_blocks) * (1.0 - head)
        last = (n_blocks // self.pipeline) / n_blocks * (1.0 - head) + head
        return max(fullest, last)


WHOLE = ModelSplit()


def check_devices(split: ModelSplit, cluster: Cluster | None) -> None:
    """Groups must come out even, and a tensor-parallel group stays inside a node."""
    n_devices = 1 if cluster is None else cluster.n_devices
    if n_devices % split.n_devices:
        context = f" x context_parallel {split.context}" if split.context > 1 else ""
        raise InputError(
            f"tensor_parallel {split.tensor} x pipeline_parallel {split.pipeline}{context} = {split.n_devices} "
            f"devices per replica, which does not divide {n_devices:,}: choose a number of devices that "
            f"{split.n_devices} divides."
        )
    if cluster is not None and any(n % split.tensor for n in cluster.placement):
        raise InputError(
            f"tensor_parallel {split.tensor} needs its groups inside a node, but {cluster.name} has nodes of "
            f"{', '.join(str(n) for n in dict.fromkeys(cluster.placement))} devices: choose a number that divides them."
        )


def check_model(split: ModelSplit, graph: Graph, model: str) -> None:
    """Blocks are what is divided."""
    n_blocks = len(attention_outputs(graph))
    if not n_blocks:
        raise InputError(
            f"Tensor, pipeline and context parallelism apply to transformers, but {model} has no attention: leave "
            "tensor_parallel, pipeline_parallel and context_parallel at 1."
        )
    n_pieces = split.pipeline * split.schedule.n_pieces
    if split.pipeline > n_blocks:
        raise InputError(
            f"pipeline_parallel {split.pipeline} leaves some stages without a block: {model} has {n_blocks} blocks."
        )
    if n_pieces > n_blocks:
        raise InputError(
            f"The schedule '{split.schedule.name}' cuts {model} into {n_pieces} pieces, and it has {n_blocks} blocks: "
            f"choose at most {n_blocks // split.pipeline} pieces for each of {split.pipeline} stages."
        )


def check_kind(text: str) -> ContextKind:
    """'ring' or 'ulysses'."""
    name = text.strip().lower()
    for kind in get_args(ContextKind):
        if name == kind:
            return kind
    raise InputError(
        f"No kind of context parallelism named '{text}'. Known: ring (keys and values go around), ulysses (all-to-alls "
        "of heads)."
    )
