"""Where a step goes: ops that repeat in equal blocks as one row, and modules opened where most of the time is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from traincast.forecasting.device_times import device_times
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
    an op writes which is no product, so that it has a place in a roofline.
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
    found: dict[tuple[str, str, str, str], Work] = defaultdict(Work)
    for key, work in _ops(question):
        found[key] = found[key] + work
    groups = [
        OpGroup(name=name, kind=kind, phase=phase, module=module, work=work)
        for (name, kind, phase, module), work in found.items()
    ]
    return tuple(sorted(groups, key=lambda group: -group.work.seconds))


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


def _ops(question: Question) -> Iterable[tuple[tuple[str, str, str, str], Work]]:
    micro = np.array([question.micro_batch_size])
    known = device_times(question, micro)
    graph, times = known.graph, known.times
    flop, moved = op_flop(graph, micro)[0], op_bytes(graph, micro)[0]
    seconds, compute_s = times.seconds[0], times.compute_s[0]
    wait_s = _waits(known.timeline.finished_s[0], seconds)
    written = _elements_written(graph, question.micro_batch_size)
    patterns = [pattern_of(module.path) for module in question.trace.modules]
    launch_s = _launch_s(question)
    for op, kind in enumerate(op_kinds(graph)):
        if kind in (OpKind.VIEW, OpKind.ALLOCATION) and not wait_s[op]:
            continue
        phase = Phase(int(graph.op_phase[op]))
        n_times = 1 if phase == Phase.OPTIMIZER else question.accumulation_steps
        own_s, own_flop = float(seconds[op]), float(flop[op])
        launched_s = own_s if own_s < 2 * launch_s else 0.0
        computed_s = 0.0 if launched_s else float(compute_s[op])
        work = Work(
            n_ops=n_times,
            by_bound_s=(
                n_times * computed_s,
                n_times * (own_s - computed_s - launched_s),
                n_times * launched_s,
                n_times * float(wait_s[op]),
            ),
            n_flop=n_times * own_flop,
            n_drawn_flop=n_times * (own_flop or float(written[op])),
            n_bytes=n_times * float(moved[op]),
        )
        module = UPDATE if phase == Phase.OPTIMIZER else patterns[graph.op_module[op]]
        name = graph.name_of(op).removeprefix("aten.").removeprefix("traincast.")
        yield (name, kind.value, phase.name.lower(), module), work


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


def _elements_written(graph: Graph, batch_size: int) -> Floats:
    numel = graph.numel(np.array([batch_size]))[0].astype(np.float64)
    return np.array([sum(numel[tensor] for tensor in outputs) for outputs in graph.op_outputs.rows()])
