"""What a profiler saw of a training run: seconds of one step by phase, by kind of work and by op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Work = Mapping[str, Mapping[str, float]]  # phase -> kind of work -> seconds of a step
WORK_PHASES = ("forward", "loss", "backward", "optimizer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledOp:
    """An op by name and phase. Seconds and calls are those of one step."""

    name: str
    phase: str
    n_calls: float
    host_s: float  # on the host, without what it calls
    device_s: float  # on the GPU, of the kernels that it launched itself; 0 on a CPU
    shapes: tuple[str, ...] = ()  # distinct shapes of its inputs, where they were recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledRun:
    """The mean step of a run. `phases` add up to `step_s`; without a mark between them, 'forward' holds the loss too.

    `work` is what the device worked in each phase, by kind: on a CPU the ops that reach a kernel with all they call, on
    a GPU its kernels. What is left of the step is the host's: dispatch and Python, or a GPU that waits for them.
    """

    source: str
    device_kind: str  # "cpu" | "gpu"
    n_steps: int
    step_s: float
    phases: Mapping[str, float]
    work: Work
    ops: tuple[ProfiledOp, ...]
    input_wait_s: float = 0.0  # the device has nothing to do while the loop waits for its loader
    copy_s: float = 0.0  # of inputs to the device
    communication_s: float = 0.0  # collectives run
    exposed_communication_s: float = 0.0  # ... and nothing else does
    notes: tuple[str, ...] = ()

    @property
    def work_s(self) -> float:
        """What the device worked, collectives aside."""
        return sum(seconds for kinds in self.work.values() for seconds in kinds.values())

    @property
    def host_s(self) -> float:
        """What neither work nor input nor communication explains."""
        told_s = self.work_s + self.input_wait_s + self.copy_s + self.exposed_communication_s
        return max(self.step_s - told_s, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """JSON in base units."""
        return {
            "source": self.source,
            "device_kind": self.device_kind,
            "n_steps": self.n_steps,
            "step_s": self.step_s,
            "phases_s": dict(self.phases),
            "work_s": {phase: dict(kinds) for phase, kinds in self.work.items()},
            "host_s": self.host_s,
            "input_wait_s": self.input_wait_s,
            "copy_s": self.copy_s,
            "communication_s": self.communication_s,
            "exposed_communication_s": self.exposed_communication_s,
            "ops": [
                {
                    "name": op.name,
                    "phase": op.phase,
                    "n_calls": op.n_calls,
                    "host_s": op.host_s,
                    "device_s": op.device_s,
                    "shapes": list(op.shapes),
                }
                for op in self.ops
            ],
            "notes": list(self.notes),
        }
