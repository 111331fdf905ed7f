"""A trace of torch.profiler (Kineto) as a profiled run: .json or .json.gz, of a CPU or a GPU."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError
from traincast.records.imports.chrome_file import events_of, parse_json, read_text
from traincast.records.imports.events import DeviceEvent, Events, HostEvent, parse_events
from traincast.records.imports.intervals import Intervals, difference, intersection, length, union
from traincast.records.imports.phases import (
    COMMUNICATION,
    COPY,
    INPUT,
    STEP_MARK,
    Labels,
    carve,
    cover,
    label_events,
    loop_threads,
    sums,
)
from traincast.records.op_names import is_communication, kind_of_kernel, kind_of_op
from traincast.records.profiled_run import WORK_PHASES, ProfiledOp, ProfiledRun

_MOST_SHAPES = 20  # distinct ones that are kept of an op


def read_kineto(path: str | Path) -> ProfiledRun:
    """The run that a trace file tells of."""
    path = Path(path)
    return profiled_run(events_of(parse_json(read_text(path), path), path), source=str(path))


def profiled_run(raw: Iterable[dict[str, Any]], *, source: str) -> ProfiledRun:
    """The run of a list of trace events. Linear in their number, but for sorting."""
    events = parse_events(raw)
    if not any(event.is_op for event in events.host) and not events.device:
        raise FileFormatError(
            f"'{source}' has no ops: a trace of torch.profiler with activities=[ProfilerActivity.CPU] has."
        )
    return (_gpu_run if events.device else _cpu_run)(_Loop.of(events, source), source)


@dataclass(slots=True)
class _Loop:
    """The training loop in a trace: its events with their labels, and its steps."""

    events: Events
    labels: Labels
    in_loop: list[bool]  # of every host event: whether its thread is one of the loop's
    steps: Intervals
    notes: list[str]

    @classmethod
    def of(cls, events: Events, source: str) -> _Loop:
        host, threads = events.host, loop_threads(events.host)
        in_loop = [event.thread in threads for event in host]
        labels, notes = label_events(host), []
        steps = sorted((one.start_s, one.end_s) for one in host if not one.is_op and one.name.startswith(STEP_MARK))
        if not steps:
            steps = _steps_by_updates(events, in_loop, labels)
            if not steps:
                raise FileFormatError(f"'{source}' has no step: none of its events takes any time.")
            how = f"its {len(steps)} updates" if len(steps) > 1 else "it as one step"
            notes.append(f"The trace does not mark steps (profiler.step() would): we counted {how}.")
        return cls(events, labels, in_loop, steps, notes)

    def loader_waits(self) -> Intervals:
        """When the loop waits for its data loader."""
        return union(
            (event.start_s, event.end_s)
            for event, phase, is_in in zip(self.events.host, self.labels.phase, self.in_loop, strict=True)
            if is_in and phase == INPUT and not event.is_op
        )

    def places(self, window: tuple[float, float]) -> list[int]:
        """Host events of the loop that start in the window."""
        low, high = window
        return [
            place
            for place, (event, is_in) in enumerate(zip(self.events.host, self.in_loop, strict=True))
            if is_in and low <= event.start_s < high
        ]


def _steps_by_updates(events: Events, in_loop: list[bool], labels: Labels) -> Intervals:
    """Without marks a step ends with its update; a trace without updates is one step."""
    spans = [(event.start_s, event.end_s) for event in events.device]
    for event, is_in, is_outermost in zip(events.host, in_loop, labels.is_outermost, strict=True):
        if is_in and is_outermost:
            spans.append((event.start_s, event.end_s))
    start_s, end_s = min(start for start, _ in spans), max(end for _, end in spans)
    updates = [event.end_s for event in events.host if not event.is_op and event.name.startswith("Optimizer.step#")]
    ends = [*sorted(updates)[:-1], end_s]
    return [(low, high) for low, high in zip([start_s, *ends[:-1]], ends, strict=True) if high > low]


def _cpu_run(loop: _Loop, source: str) -> ProfiledRun:
    host, labels = loop.events.host, loop.labels
    n_steps, window = len(loop.steps), (loop.steps[0][0], loop.steps[-1][1])
    places = loop.places(window)
    work: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    busy: Intervals = []
    for place in places:
        event, phase = host[place], labels.phase[place]
        kind = kind_of_op(event.name) if labels.owner[place] == place else None
        if kind is None or kind == COMMUNICATION:
            continue
        busy.append((event.start_s, event.end_s))
        if phase in WORK_PHASES:
            work[phase][kind] += (event.end_s - event.start_s) / n_steps
    sent = union((event.start_s, event.end_s) for event in host if is_communication(event.name))
    sent = intersection(sent, [window])
    exposed = difference(sent, union(busy))
    outer = ((host[at].start_s, host[at].end_s, labels.phase[at]) for at in places if labels.is_outermost[at])
    phases = sums(carve(cover(window, outer), exposed, COMMUNICATION), n_steps)
    return ProfiledRun(
        source=source,
        device_kind="cpu",
        n_steps=n_steps,
        step_s=(window[1] - window[0]) / n_steps,
        phases=phases,
        work={phase: dict(work[phase]) for phase in WORK_PHASES if phase in work},
        ops=_ops(loop, places, [], n_steps),
        input_wait_s=phases.get(INPUT, 0.0),
        communication_s=length(sent) / n_steps,
        exposed_communication_s=length(exposed) / n_steps,
        notes=tuple(loop.notes),
    )


def _gpu_run(loop: _Loop, source: str) -> ProfiledRun:
    """Seconds are the GPU's: what it runs, and what it waits for."""
    device = _one_device(loop)
    n_steps, window, host_window = _gpu_window(loop, device)
    inside = [event for event in device if window[0] <= event.start_s < window[1]]
    labelled = _device_phases(loop, inside)
    work: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for event, phase, kind in labelled:
        if kind != COMMUNICATION and phase in WORK_PHASES:
            work[phase][kind] += (event.end_s - event.start_s) / n_steps
    spans = [(event.start_s, event.end_s, phase) for event, phase, kind in labelled if kind != COMMUNICATION]
    busy = union((start, end) for start, end, _ in spans)
    sent = union((event.start_s, event.end_s) for event, _, kind in labelled if kind == COMMUNICATION)
    exposed = difference(intersection(sent, [window]), busy)
    idle = difference([window], union([*busy, *sent]))
    waits = intersection(idle, loop.loader_waits())
    phases = sums(carve(carve(cover(window, spans), exposed, COMMUNICATION), waits, INPUT), n_steps)
    return ProfiledRun(
        source=source,
        device_kind="gpu",
        n_steps=n_steps,
        step_s=(window[1] - window[0]) / n_steps,
        phases=phases,
        work={phase: dict(work[phase]) for phase in WORK_PHASES if phase in work},
        ops=_ops(loop, loop.places(host_window), inside, n_steps),
        input_wait_s=length(waits) / n_steps,
        copy_s=sum(event.end_s - event.start_s for event, phase, _ in labelled if phase == COPY) / n_steps,
        communication_s=length(sent) / n_steps,
        exposed_communication_s=length(exposed) / n_steps,
        notes=tuple(loop.notes),
    )


def _one_device(loop: _Loop) -> list[DeviceEvent]:
    """Of a process that drives several GPUs, the one that works most."""
    busy: dict[Any, float] = defaultdict(float)
    for event in loop.events.device:
        busy[event.device] += event.end_s - event.start_s
    chosen = max(busy, key=lambda name: busy[name])
    if len(busy) > 1:
        loop.notes.append(f"The trace has {len(busy)} GPUs: this is GPU {chosen}, the busiest.")
    return [event for event in loop.events.device if event.device == chosen]


def _gpu_window(loop: _Loop, device: list[DeviceEvent]) -> tuple[int, tuple[float, float], tuple[float, float]]:
    """Steps, their window on the GPU, and the one on the host.

    The GPU runs behind the host: for it a step ends where the first kernel of the next begins. So the last step only
    tells where the one before ends, unless it is the only one.
    """
    host, starts = loop.events.host, [start for start, _ in loop.steps]
    first: dict[int, float] = {}
    for event in device:  # by start, so that the first of a step comes first
        at = host[event.launcher].start_s if event.launcher >= 0 else math.nan
        step = bisect_right(starts, at) - 1
        if step >= 0 and at < loop.steps[step][1]:
            first.setdefault(step, event.start_s)
    firsts = [first[step] for step in sorted(first)]
    if len(firsts) > 1 and len(firsts) == len(starts):
        return len(firsts) - 1, (firsts[0], firsts[-1]), (starts[0], starts[-1])
    low, high = starts[0], max(loop.steps[-1][1], max(event.end_s for event in device))
    return len(starts), (low, high), (low, high)


def _device_phases(loop: _Loop, device: list[DeviceEvent]) -> list[tuple[DeviceEvent, str, str]]:
    """Every device event with its phase and kind; one without a launcher is in the phase of the one before."""
    host, labels = loop.events.host, loop.labels
    found: list[tuple[DeviceEvent, str, str]] = []
    last = WORK_PHASES[0]
    for event in device:
        at = event.launcher
        phase = labels.phase[at] if at >= 0 else last
        owner = labels.owner[at] if at >= 0 else -1
        kind = (kind_of_op(host[owner].name) if owner >= 0 else None) or kind_of_kernel(event.name)
        if is_communication(event.name):
            kind = COMMUNICATION
        elif event.is_copy_in and phase in (INPUT, "forward"):
            phase = COPY
        last = phase if phase in WORK_PHASES else last
        found.append((event, phase, kind))
    return found


def _ops(loop: _Loop, places: list[int], device: list[DeviceEvent], n_steps: int) -> tuple[ProfiledOp, ...]:
    """By name and phase, the longest first."""
    host, labels = loop.events.host, loop.labels
    calls: dict[tuple[str, str], int] = defaultdict(int)
    host_s: dict[tuple[str, str], float] = defaultdict(float)
    device_s: dict[tuple[str, str], float] = defaultdict(float)
    shapes: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for place in places:
        event = host[place]
        if not event.is_op:
            continue
        key = (event.name, labels.phase[place])
        calls[key] += 1
        host_s[key] += event.self_s
        if event.shapes and len(shapes[key]) < _MOST_SHAPES:
            shapes[key][event.shapes] = None
    for one in device:
        launcher: HostEvent | None = host[one.launcher] if one.launcher >= 0 else None
        is_known = launcher is not None and launcher.is_op
        key = (launcher.name, labels.phase[one.launcher]) if launcher is not None and is_known else (one.name, "other")
        device_s[key] += one.end_s - one.start_s
        calls[key] += not is_known
    found = [
        ProfiledOp(
            name=name,
            phase=phase,
            n_calls=calls[name, phase] / n_steps,
            host_s=host_s[name, phase] / n_steps,
            device_s=device_s[name, phase] / n_steps,
            shapes=tuple(shapes[name, phase]),
        )
        for name, phase in {**calls, **device_s}
    ]
    return tuple(sorted(found, key=lambda op: (-op.device_s, -op.host_s, op.name, op.phase)))
