"""A step against what its device could do: work by byte, and how fast it is expected to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from traincast.forecasting.question import Question
from traincast.planning.op_groups import OpGroup

_LEAST_SHOWN = 0.0005  # of the step: smaller dots cannot be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """A rate of the datasheet: FLOP/s of some units, or bytes/s of the memory. Only Winograd's algorithms pass it."""

    name: str
    flop_per_s: float | None = None
    bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A group of ops. Where `is_product` is False, flop are elements: those it writes, or those a reduction reads."""

    name: str
    kind: str
    phase: str
    module: str
    flop_per_byte: float
    flop_per_s: float
    step_fraction: float
    bound_by: str
    is_product: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Ceilings of the datasheet, and the ops of a step below them."""

    device: str
    precision: str
    ceilings: tuple[Ceiling, ...]
    points: tuple[Point, ...]
    shown_fraction: float  # of the device's seconds that the points stand for

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def roofline_of(question: Question, groups: Sequence[OpGroup]) -> Roofline:
    """Of the groups that take a visible share of the step."""
    device, precision = question.device, question.settings.precision
    step_s = sum(group.work.seconds for group in groups)
    device_s = sum(group.work.device_s for group in groups)
    shown = [
        group
        for group in groups
        if group.work.n_drawn_flop and group.work.n_bytes and group.work.device_s > _LEAST_SHOWN * step_s
    ]
    peak = device.peak(precision)
    ceilings = [Ceiling(name=f"{peak.used} products", flop_per_s=peak.flop_per_s)]
    vector = device.fp32_flop_per_s
    if vector is not None and vector < peak.flop_per_s:
        ceilings.append(Ceiling(name="fp32 without matrix units", flop_per_s=vector))
    ceilings.append(Ceiling(name="memory", bytes_per_s=device.memory_bytes_per_s))
    return Roofline(
        device=device.name,
        precision=precision,
        ceilings=tuple(ceilings),
        points=tuple(
            Point(
                name=group.name,
                kind=group.kind,
                phase=group.phase,
                module=group.module,
                flop_per_byte=group.work.n_drawn_flop / group.work.n_bytes,
                flop_per_s=group.work.n_drawn_flop / group.work.device_s,
                step_fraction=group.work.seconds / step_s,
                bound_by=group.work.bound_by,
                is_product=group.work.n_flop > 0,
            )
            for group in shown
        ),
        shown_fraction=sum(group.work.device_s for group in shown) / device_s if device_s else 0.0,
    )
