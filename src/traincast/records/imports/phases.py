"""Which part of a step each moment belongs to, told by what the profiler marks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traincast.records.imports.events import HostEvent, Thread
from traincast.records.imports.intervals import Intervals
from traincast.records.op_names import kind_of_op
from traincast.records.profiled_run import WORK_PHASES

INPUT, COPY, COMMUNICATION, OTHER = "input", "copy", "communication", "other"
STEP_MARK = "ProfilerStep"
_LOADER, _BACKWARD = "enumerate(DataLoader)", "autograd::engine::evaluate_function"
_REDUCER = "reducer::"  # of DDP: when all buckets are reduced it copies them back, still within backward()
_OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")
OUR_MARK = "traincast::"  # traincast::forward and so on: what our own profiled steps write

Span = tuple[float, float, str]  # start, end, phase


@dataclass(slots=True)
class Labels:
    """Of every host event: its phase, the place of the op that its time counts for (-1: none), if it is outermost."""

    phase: list[str]
    owner: list[int]
    is_outermost: list[bool]


def label_events(host: Sequence[HostEvent]) -> Labels:
    """Callers come before what they call, so one pass is enough."""
    phase: list[str] = []
    owner: list[int] = []
    is_outermost: list[bool] = []
    encloses: list[bool] = []  # an annotation that tells no phase, such as a step or a user's own
    for place, event in enumerate(host):
        parent = event.parent
        own_phase = _marked_phase(event)
        inherited = phase[parent] if parent >= 0 else WORK_PHASES[0]
        phase.append(own_phase or inherited)
        above = owner[parent] if parent >= 0 else -1
        owner.append(above if above >= 0 else place if event.is_op and kind_of_op(event.name) else -1)
        is_open = parent < 0 or encloses[parent]
        tells = event.is_op or own_phase is not None
        encloses.append(is_open and not tells)
        is_outermost.append(is_open and tells)
    return Labels(phase, owner, is_outermost)


def _marked_phase(event: HostEvent) -> str | None:
    name = event.name
    if name.startswith(_BACKWARD) or _REDUCER in name:
        return "backward"
    if event.is_op:
        return None
    if name.startswith(_OPTIMIZER):
        return "optimizer"
    if name.startswith(_LOADER):
        return INPUT
    plain = name.removeprefix(OUR_MARK).strip("# ").lower()  # "## forward ##" is a custom of PyTorch's own tests
    return plain if plain in WORK_PHASES else None


def loop_threads(host: Sequence[HostEvent]) -> set[Thread]:
    """The thread of the training loop, and those of autograd: on a GPU, backward has a thread of its own."""
    marked = {event.thread for event in host if not event.is_op and event.name.startswith((STEP_MARK, *_OPTIMIZER))}
    if not marked:
        busy: dict[Thread, float] = defaultdict(float)
        for event in host:
            busy[event.thread] += event.self_s if event.is_op else 0.0
        marked = {max(busy, key=lambda thread: busy[thread])} if busy else set()
    processes = {process for process, _ in marked}
    return marked | {
        event.thread for event in host if event.name.startswith(_BACKWARD) and event.thread[0] in processes
    }


def cover(window: tuple[float, float], segments: Iterable[Span]) -> list[Span]:
    """Every moment of the window with a phase. A gap counts for what it leads to: the host prepares it.

    Before a wait for input or its copy a loop does what no mark tells (logging, metrics): that is 'other'.
    """
    cursor, end_s = window
    spans: list[Span] = []
    last = OTHER
    for start, end, phase in sorted(segments):
        start, end = max(start, cursor), min(end, end_s)
        if end <= start:
            continue
        if start > cursor:
            spans.append((cursor, start, OTHER if phase in (INPUT, COPY) else phase))
        spans.append((start, end, phase))
        cursor, last = end, phase
    if cursor < end_s:
        spans.append((cursor, end_s, last))
    return spans


def carve(spans: Sequence[Span], intervals: Intervals, phase: str) -> list[Span]:
    """The same moments, with those of `intervals` given to `phase`. Both are ascending and free of overlaps."""
    carved: list[Span] = []
    place = 0
    for start, end, own in spans:
        cursor = start
        while place < len(intervals) and intervals[place][1] <= start:
            place += 1
        ahead = place
        while ahead < len(intervals) and intervals[ahead][0] < end:
            low, high = max(intervals[ahead][0], cursor), min(intervals[ahead][1], end)
            if low > cursor:
                carved.append((cursor, low, own))
            if high > low:
                carved.append((low, high, phase))
            cursor, ahead = max(cursor, high), ahead + 1
        if end > cursor:
            carved.append((cursor, end, own))
    return carved


def sums(spans: Iterable[Span], n_steps: int) -> dict[str, float]:
    """Seconds of a step by phase, in the order of a step."""
    found: dict[str, float] = defaultdict(float)
    for start, end, phase in spans:
        found[phase] += (end - start) / n_steps
    order = (INPUT, COPY, *WORK_PHASES, COMMUNICATION, OTHER)
    return {phase: found[phase] for phase in order if phase in found}
