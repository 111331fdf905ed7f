"""What a forecast expects the device to work, by phase and kind of op."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traincast.forecasting.device_times import device_times
from traincast.forecasting.question import Question
from traincast.trace.flop import op_flop
from traincast.trace.graph import Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.traffic import op_bytes


@dataclass(frozen=True, slots=True)
class KindTime:
    """Ops of one kind in one update: seconds of the device, what of them more FLOP/s would shrink, and their work."""

    seconds: float = 0.0
    compute_s: float = 0.0
    n_flop: float = 0.0
    n_bytes: float = 0.0

    def __add__(self, other: KindTime) -> KindTime:
        return KindTime(
            self.seconds + other.seconds,
            self.compute_s + other.compute_s,
            self.n_flop + other.n_flop,
            self.n_bytes + other.n_bytes,
        )


WorkByKind = Mapping[str, Mapping[str, KindTime]]  # phase -> kind -> what it takes


def predicted_by_kind(question: Question) -> WorkByKind:
    """Of one device. All ops of an update count as 'optimizer', whatever they are made of; views take no device."""
    micro = np.array([question.micro_batch_size])
    known = device_times(question, micro)
    graph = known.graph
    flop, moved = op_flop(graph, micro)[0], op_bytes(graph, micro)[0]
    found: dict[str, dict[str, KindTime]] = defaultdict(lambda: defaultdict(KindTime))
    for op, kind in enumerate(op_kinds(graph)):
        if kind in (OpKind.VIEW, OpKind.ALLOCATION):
            continue
        phase = Phase(int(graph.op_phase[op]))
        is_update = phase == Phase.OPTIMIZER
        n_times = 1 if is_update else question.accumulation_steps
        own = KindTime(
            n_times * float(known.times.seconds[0, op]),
            n_times * float(known.times.compute_s[0, op]),
            n_times * float(flop[op]),
            n_times * float(moved[op]),
        )
        found[phase.name.lower()][OpKind.OPTIMIZER.value if is_update else kind.value] += own
    return {phase: dict(kinds) for phase, kinds in found.items()}


def by_kind(work: WorkByKind) -> dict[str, KindTime]:
    """The same without phases."""
    found: dict[str, KindTime] = defaultdict(KindTime)
    for kinds in work.values():
        for kind, time in kinds.items():
            found[kind] += time
    return dict(found)
