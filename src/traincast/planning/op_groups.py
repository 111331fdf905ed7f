"""Where a step goes: ops that repeat in equal blocks as one row, and modules opened where most of the time is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from traincast.forecasting.device_times import device_times, op_shares
from traincast.forecasting.question import Question
from traincast.kernels.predictor import Traincast
from traincast.trace.flop import op_flop
from traincast.trace.graph import Floats, Graph, Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.traffic import op_bytes

BOUNDS = ("compute", "memory", "launch", "host")
_OPENED = 0.3  # of the step: a module with more is shown by its parts
_ROOT = "(model)"
UPDATE = "(optimizer)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Ops of one update on one device. `by_bound_s` divides their seconds by what makes them take so long.

    'host' is the time that the device waited for their dispatch. `n_drawn_flop` counts one flop for each element that
    an op writes which is no product, and that a reduction reads, so that it has a place in a roofline.
    """

    n_ops: int = 0
    by_bound_s: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    n_flop: float = 0.0
    n_drawn_flop: float = 0.0
    n_bytes: float = 0.0

    def __add__(self, other: Work) -> Work:
        both = zip(self.by_bound_s, other.by_bound_s, strict=True)
        compute, memory, launch, host = (own + more for own, more in both)
        return Work(
            n_ops=self.n_ops + other.n_ops,
            by_bound_s=(compute, memory, launch, host),
            n_flop=self.n_flop + other.n_flop,
            n_drawn_flop=self.n_drawn_flop + other.n_drawn_flop,
            n_bytes=self.n_bytes + other.n_bytes,
        )

    @property
    def seconds(self) -> float:
        return sum(self.by_bound_s)

    @property
    def device_s(self) -> float:
        """Without waiting for the host."""
        return sum(self.by_bound_s[:-1])

    @property
    def bound_by(self) -> str:
        return BOUNDS[int(np.argmax(self.by_bound_s))]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpGroup:
    """Ops of one name and phase in modules of one pattern: 'layer1.*.conv2' stands for all its blocks."""

    name: str
    kind: str
    phase: str
    module: str
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleGroup:
    """Modules of one pattern with everything inside them; the update is a row of its own."""

    module: str
    work: Work


def op_groups(question: Question) -> tuple[OpGroup, ...]:
    """All work of a step, longest first."""
    keys, columns = _ops(question)
    numbers: dict[_Key, int] = {}
    group_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    sums = np.array([np.bincount(group_of, weights=column, minlength=len(numbers)) for column in columns])
    groups = [
        OpGroup(name=name, kind=kind, phase=phase, module=module, work=_work(sums[:, number].tolist()))
        for (name, kind, phase, module), number in numbers.items()
    ]
    return tuple(sorted(groups, key=lambda group: -group.work.seconds))


def _work(column: list[float]) -> Work:
    n_ops, compute_s, memory_s, launch_s, host_s, n_flop, n_drawn_flop, n_bytes = column
    return Work(
        n_ops=round(n_ops),
        by_bound_s=(compute_s, memory_s, launch_s, host_s),
        n_flop=n_flop,
        n_drawn_flop=n_drawn_flop,
        n_bytes=n_bytes,
    )


def module_groups(groups: Iterable[OpGroup]) -> tuple[ModuleGroup, ...]:
    """The same seconds by module, longest first: what holds too much is shown by what it holds."""
    by_path: dict[tuple[str, ...], Work] = defaultdict(Work)
    for group in groups:
        path = (UPDATE,) if group.phase == "optimizer" else tuple(group.module.split("."))
        by_path[path] = by_path[path] + group.work
    step_s = sum(work.seconds for work in by_path.values())
    rows = _opened(by_path, 1, _OPENED * step_s)
    return tuple(sorted(rows, key=lambda row: -row.work.seconds))


def _opened(by_path: dict[tuple[str, ...], Work], depth: int, most_s: float) -> list[ModuleGroup]:
    inside: dict[tuple[str, ...], dict[tuple[str, ...], Work]] = defaultdict(dict)
    for path, work in by_path.items():
        inside[path[:depth]][path] = work
    rows = []
    for head, parts in inside.items():
        total = reduce(Work.__add__, parts.values(), Work())
        has_parts = any(len(path) > depth for path in parts)
        if has_parts and total.seconds > most_s:
            rows += _opened(parts, depth + 1, most_s)
        else:
            rows.append(ModuleGroup(module=".".join(head), work=total))
    return rows


_Key = tuple[str, str, str, str]  # name, kind, phase, module


def _ops(question: Question) -> tuple[list[_Key], Floats]:
    """What ops are called, and one row a number of theirs (as `_work` takes them). Those that nothing waits for go."""
    micro = np.array([question.micro_batch_size])
    known = device_times(question, micro)
    graph, kinds = known.graph, op_kinds(known.graph)
    seconds, flop = known.times.seconds[0], op_flop(graph, micro)[0]
    wait_s = _waits(known.timeline.finished_s[0], seconds)
    n_elements = graph.numel(micro)[0].astype(np.float64)
    is_reduction = np.array([kind == OpKind.REDUCTION for kind in kinds], dtype=bool)
    worked_on = np.where(is_reduction, graph.op_inputs.sums(n_elements), graph.op_outputs.sums(n_elements))
    is_launch = seconds < 2 * _launch_s(question)
    launched_s = np.where(is_launch, seconds, 0.0)
    computed_s = np.where(is_launch, 0.0, known.times.compute_s[0])
    by_bound_s = (computed_s, seconds - computed_s - launched_s, launched_s, wait_s)
    drawn = np.where(flop > 0, flop, worked_on)
    rows = np.array([np.ones(graph.n_ops), *by_bound_s, flop, drawn, op_bytes(graph, micro)[0]])
    rows[0] *= np.where(graph.op_phase == Phase.OPTIMIZER, 1, question.accumulation_steps)
    rows[1:] *= op_shares(known, question)
    is_silent = np.array([kind in (OpKind.VIEW, OpKind.ALLOCATION) for kind in kinds], dtype=bool)
    shown = np.flatnonzero(~is_silent | (wait_s > 0))
    patterns = [pattern_of(module.path) for module in question.trace.modules]
    return [_key(graph, op, kinds[op], patterns) for op in shown.tolist()], rows[:, shown]


def _key(graph: Graph, op: int, kind: OpKind, patterns: list[str]) -> _Key:
    phase = Phase(int(graph.op_phase[op]))
    module = UPDATE if phase == Phase.OPTIMIZER else patterns[graph.op_module[op]]
    name = graph.name_of(op).removeprefix("aten.").removeprefix("traincast.")
    return name, kind.value, phase.name.lower(), module


def pattern_of(path: str) -> str:
    """'h.3.mlp.fc' and 'h.7.mlp.fc' are both 'h.*.mlp.fc'."""
    return ".".join("*" if part.isdigit() else part for part in path.split(".")) or _ROOT


def _waits(finished_s: Floats, seconds: Floats) -> Floats:
    """How long the device had nothing to do before each op."""
    waits: Floats = np.maximum(np.diff(finished_s, prepend=0.0) - seconds, 0.0)
    return waits


def _launch_s(question: Question) -> float:
    """What a kernel takes whatever it does, where the method says so."""
    if not isinstance(question.method, Traincast) or question.device.prices:
        return 0.0
    return float(np.exp(question.method.coefficients["launch_s"]))
