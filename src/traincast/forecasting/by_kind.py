"""What a forecast expects the device to work, by phase and kind of op."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traincast.forecasting.device_times import device_times, op_shares
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
    groups: dict[tuple[str, str], int] = {}
    phases = graph.op_phase.tolist()
    group_of = np.array([_group(*op, groups) for op in zip(phases, op_kinds(graph), strict=True)], dtype=np.int64)
    n_times = op_shares(known, question)
    columns = (known.times.seconds[0], known.times.compute_s[0], op_flop(graph, micro)[0], op_bytes(graph, micro)[0])
    sums = [np.bincount(group_of, weights=n_times * column, minlength=1 + len(groups)) for column in columns]
    found: dict[str, dict[str, KindTime]] = defaultdict(dict)
    for (phase, kind), group in groups.items():
        found[phase][kind] = KindTime(*(float(each[group]) for each in sums))
    return dict(found)


_PHASES = {int(phase): phase.name.lower() for phase in Phase}
_NO_GROUP = 0


def _group(phase: int, kind: OpKind, groups: dict[tuple[str, str], int]) -> int:
    """The number of an op's group, which is a new one where there was none like it."""
    if kind in (OpKind.VIEW, OpKind.ALLOCATION):
        return _NO_GROUP
    told = OpKind.OPTIMIZER if phase == Phase.OPTIMIZER else kind
    return groups.setdefault((_PHASES[phase], told.value), 1 + len(groups))


def by_kind(work: WorkByKind) -> dict[str, KindTime]:
    """The same without phases."""
    found: dict[str, KindTime] = defaultdict(KindTime)
    for kinds in work.values():
        for kind, time in kinds.items():
            found[kind] += time
    return dict(found)
