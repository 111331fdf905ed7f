"""Events of a Kineto trace as the rest reads them: host records nested as they called each other, and device work.

Fields as libkineto writes them (output_json.cpp): 'ph' is "X" for an event with a duration, 'ts' and 'dur' are in us,
'cat' tells what it is, 'args' holds 'correlation' (a launch and its kernel have the same) and 'Input Dims'. The field
'External id' of a kernel is its own correlation id in some versions, so kernels are joined to ops through the launch:
the op that was running on the thread that launched it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from traincast.units import MEGA

_OPS, _ANNOTATIONS = ("cpu_op",), ("user_annotation",)
_LAUNCHES = ("cuda_runtime", "cuda_driver", "hip_runtime")
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_NO_PARENT = -1
_CLOCK_S = 1e-9  # of the profiler: what starts within it after another's end was not called by it

Thread = tuple[Any, Any]  # process and thread


@dataclass(slots=True)
class HostEvent:
    """An op or an annotation on a thread of the host. `parent` is the place of the one that called it, or -1."""

    name: str
    start_s: float
    end_s: float
    thread: Thread
    is_op: bool
    shapes: str = ""
    parent: int = _NO_PARENT
    self_s: float = 0.0


@dataclass(slots=True)
class DeviceEvent:
    """A kernel or a copy. `launcher` is the place of the host event that launched it, or -1."""

    name: str
    start_s: float
    end_s: float
    device: Any
    is_copy_in: bool
    launcher: int = _NO_PARENT


@dataclass(slots=True)
class Events:
    """Host events by start, those of a thread before what they call; device events by start."""

    host: list[HostEvent]
    device: list[DeviceEvent]


def parse_events(raw: Iterable[dict[str, Any]]) -> Events:
    """Everything with a duration that tells of an op, an annotation, a launch or the device."""
    host: list[HostEvent] = []
    device: list[DeviceEvent] = []
    launches: list[tuple[Thread, float, Any]] = []
    correlations: list[Any] = []
    origin: float | None = None  # old traces count from 1970: subtracted first, so that no digits are lost
    for event in raw:
        start, duration = _number(event.get("ts")), _number(event.get("dur"))
        if event.get("ph") != "X" or start is None or duration is None:
            continue
        name, category = str(event.get("name", "")), str(event.get("cat", "cpu_op")).lower()
        arguments = event.get("args")
        arguments = arguments if isinstance(arguments, dict) else {}
        origin = start if origin is None else origin
        start_s, thread = (start - origin) / MEGA, (_name(event.get("pid")), _name(event.get("tid")))
        end_s = start_s + max(duration, 0.0) / MEGA
        if category in _OPS or category in _ANNOTATIONS:
            shapes = _shapes(arguments.get("Input Dims", arguments.get("Input dims")))
            host.append(HostEvent(name, start_s, end_s, thread, category in _OPS, shapes))
        elif category in _LAUNCHES:
            launches.append((thread, start_s, _name(arguments.get("correlation"))))
        elif category in _DEVICE:
            is_copy_in = category == "gpu_memcpy" and "htod" in name.lower().replace(" ", "")
            device.append(DeviceEvent(name, start_s, end_s, _name(arguments.get("device", thread[0])), is_copy_in))
            correlations.append(_name(arguments.get("correlation")))
    host.sort(key=lambda one: (one.start_s, -one.end_s))
    _join(device, correlations, _nest(host, launches))
    device.sort(key=lambda one: one.start_s)
    return Events(host, device)


def _nest(host: list[HostEvent], launches: list[tuple[Thread, float, Any]]) -> dict[Any, int]:
    """Sets parents and self times; gives the event that was running when each correlation id was launched."""
    by_thread: dict[Thread, list[tuple[float, int, Any]]] = defaultdict(list)
    for place, event in enumerate(host):
        by_thread[event.thread].append((event.start_s, place, None))
    for thread, start_s, correlation in launches:
        by_thread[thread].append((start_s, _NO_PARENT, correlation))
    launchers: dict[Any, int] = {}
    for moments in by_thread.values():
        moments.sort(key=lambda moment: moment[0])  # stable: events stay in order, launches come after what runs
        stack: list[int] = []
        for start_s, place, correlation in moments:
            while stack and host[stack[-1]].end_s <= start_s + _CLOCK_S:
                stack.pop()
            running = stack[-1] if stack else _NO_PARENT
            if place == _NO_PARENT:
                if correlation is not None:
                    launchers[correlation] = running
                continue
            event = host[place]
            event.parent, event.self_s = running, event.end_s - event.start_s
            if running != _NO_PARENT:
                # Clocks are rounded: a call never outlives its caller.
                event.end_s = min(event.end_s, host[running].end_s)
                event.self_s = event.end_s - event.start_s
                host[running].self_s -= event.self_s
            stack.append(place)
    for event in host:
        event.self_s = max(event.self_s, 0.0)
    return launchers


def _join(device: list[DeviceEvent], correlations: list[Any], launchers: dict[Any, int]) -> None:
    for event, correlation in zip(device, correlations, strict=True):
        event.launcher = launchers.get(correlation, _NO_PARENT)


def _shapes(dims: Any) -> str:
    """[[16, 3], [], [[8], [4]]] reads '16x3, 8, 4': scalars have no shape, and lists of tensors are spelt out."""
    if not isinstance(dims, list) or not dims:
        return ""
    if all(isinstance(size, int) for size in dims):
        return "x".join(str(size) for size in dims)
    return ", ".join(filter(None, (_shapes(dim) for dim in dims)))


def _name(value: Any) -> Any:
    """A number or a word by which events are joined; anything else (a list) is as good as nothing."""
    return value if isinstance(value, str | int | float) else None


def _number(value: Any) -> float | None:
    """A finite number; JSON can hold whole numbers that are larger than any float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
