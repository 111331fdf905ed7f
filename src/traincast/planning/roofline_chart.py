"""A roofline as a chart: ceilings as lines, ops as dots that are as large as their share of the step."""

from __future__ import annotations

from collections import defaultdict

from traincast.planning.roofline import Ceiling, Point, Roofline
from traincast.report.chart import Chart, Series
from traincast.units import show_flop_per_s, show_percent, show_ratio

_MOST_KINDS = 4  # by colour; the rest are one
_LEAST_X, _LARGEST_X = 0.05, 2.0  # of the ceilings: never narrower than to this, and this many times the ridge


def roofline_chart(roofline: Roofline, title: str) -> Chart:
    """Log by log. Kinds with most of the step have a colour each."""
    share: dict[str, float] = defaultdict(float)
    for point in roofline.points:
        share[point.kind] += point.step_fraction
    named = sorted(share, key=lambda kind: -share[kind])[:_MOST_KINDS]
    by_name: dict[str, list[Point]] = {name: [] for name in named}
    for point in roofline.points:
        by_name.setdefault(point.kind if point.kind in named else "others", []).append(point)
    largest = max((point.step_fraction for point in roofline.points), default=1.0)
    ceilings = [_line(ceiling, roofline) for ceiling in roofline.ceilings if ceiling.flop_per_s is not None]
    return Chart(
        title=title,
        kind="line",
        series=(*ceilings, *(_dots(name, points, largest) for name, points in by_name.items() if points)),
        x_label="flop a byte",
        y_label="rate",
        y_show="flop_per_s",
        log_x=True,
        log_y=True,
    )


def _line(ceiling: Ceiling, roofline: Roofline) -> Series:
    """Up with the memory's rate to the ridge, then flat."""
    peak = ceiling.flop_per_s or 0.0
    memory = next(each.bytes_per_s for each in roofline.ceilings if each.bytes_per_s is not None)
    assert memory is not None
    ridge = peak / memory
    seen = [point.flop_per_byte for point in roofline.points]
    low = min([_LEAST_X, *seen])
    high = max([_LARGEST_X * ridge, *seen])
    x = [low, ridge, high]
    y = [low * memory, peak, peak]
    told = [f"{ceiling.name}: {show_flop_per_s(peak)}, ridge at {show_ratio(ridge)} flop a byte"] * 3
    return Series(name=ceiling.name, x=x, y=y, text=told)


def _dots(name: str, points: list[Point], largest: float) -> Series:
    return Series(
        name=name,
        x=[point.flop_per_byte for point in points],
        y=[point.flop_per_s for point in points],
        text=[
            f"{point.name} of {point.module}, {point.phase}: {show_percent(point.step_fraction)} of the step, "
            f"{show_flop_per_s(point.flop_per_s)} at {show_ratio(point.flop_per_byte)} flop a byte, {point.bound_by}"
            for point in points
        ],
        sizes=[point.step_fraction / largest for point in points],
        is_dots=True,
    )
