"""What a transfer looks like: parameters over depth, the curve beside others, and the error of curves by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from traincast.curves.size_transfer.fits import Fit
from traincast.curves.size_transfer.held_out import Law
from traincast.curves.size_transfer.transferred import Transferred
from traincast.report.chart import Chart, Series

Floats = NDArray[np.float64]
Points = tuple[Floats, Floats]  # steps, and what was logged at them
_N_STEPS = 60
_MOST_DOTS = 120
_BAND = "transferred, p10 to p90"


def parameter_chart(fits: Sequence[Fit], predicted: Sequence[Transferred], quantity: str) -> Chart:
    """Means of what ran by family as dots, and predictions for one family with their band, by size."""
    found = sorted(predicted, key=lambda one: one.n_layers)
    family, size_name = found[0].family, found[0].size_name
    estimates = [one.estimates[quantity] for one in found]
    band = Series(
        name=f"{family} {_BAND}".strip(),
        x=[float(one.n_layers) for one in found],
        y=[one.value for one in estimates],
        low=[one.low for one in estimates],
        high=[one.high for one in estimates],
    )
    means = (_means(fits, name, quantity) for name in sorted({fit.family for fit in fits}))
    return Chart(
        title=f"{quantity} by {'depth' if size_name == 'layers' else size_name}",
        kind="line",
        series=(band, *means),
        x_label=size_name,
        y_label=quantity,
        x_show="integer",
        log_x=True,
        log_y=True,
    )


def curve_chart(
    transferred: Transferred,
    others: Mapping[str, Law],
    *,
    logged: Mapping[str, Points] | None = None,
    unit: str = "step",
) -> Chart:
    """The transferred curve with its band, others at the same steps (fitted, another method's), and real points."""
    steps = _steps(transferred)
    lines = {name: law(steps) for name, law in others.items()}
    dots = tuple(_dots(name, *points) for name, points in (logged or {}).items())
    title = f"Loss of {transferred.sized} before it runs"
    return _by_step(title, "loss", (*dots, _banded(transferred, steps), *_lines(lines, steps)), unit=unit)


def error_chart(transferred: Transferred, real: Law, others: Mapping[str, Law], *, unit: str = "step") -> Chart:
    """(predicted - real) / real at each step."""
    steps = _steps(transferred)
    truth = real(steps)
    errors = {name: law(steps) / truth - 1 for name, law in others.items()}
    series = (_banded(transferred, steps, truth), *_lines(errors, steps))
    return _by_step(f"Error against the fitted curve by {unit}", "error of the loss", series, unit=unit, is_error=True)


def _banded(transferred: Transferred, steps: Floats, truth: Floats | None = None) -> Series:
    low, high = transferred.curve.interval(steps)
    rows = [np.asarray(row) for row in (transferred.curve.predict(steps), low, high)]
    middle, least, most = rows if truth is None else [row / truth - 1 for row in rows]
    return Series(name=_BAND, x=steps.tolist(), y=middle.tolist(), low=least.tolist(), high=most.tolist())


def _lines(rows: Mapping[str, Floats], steps: Floats) -> tuple[Series, ...]:
    return tuple(Series(name=name, x=steps.tolist(), y=row.tolist()) for name, row in rows.items())


def _dots(name: str, steps: Floats, values: Floats) -> Series:
    """Medians of neighbours that are evenly apart on a logarithmic axis, so that noise does not hide the curves."""
    is_there = (steps > 0) & (values > 0)
    steps, values = steps[is_there], values[is_there]
    edges = np.searchsorted(steps, np.geomspace(steps[0], steps[-1], _MOST_DOTS)[1:-1])
    parts = [part for part in np.split(np.arange(len(steps)), np.unique(edges)) if len(part)]
    x, y = ([float(np.median(each[part])) for part in parts] for each in (steps, values))
    return Series(name=name, x=x, y=y, is_dots=True)


def _means(fits: Sequence[Fit], family: str, quantity: str) -> Series:
    by_depth: dict[int, list[float]] = {}
    for fit in fits:
        if fit.family == family and getattr(fit, quantity):
            by_depth.setdefault(fit.n_layers, []).append(math.log(getattr(fit, quantity)))
    depths = sorted(by_depth)
    means = [math.exp(sum(by_depth[depth]) / len(by_depth[depth])) for depth in depths]
    name = f"{family} as fitted".strip()
    return Series(name=name, x=[float(depth) for depth in depths], y=means, is_dots=True)


def _steps(transferred: Transferred) -> Floats:
    return np.geomspace(transferred.curve.first_step, transferred.curve.last_step, _N_STEPS)


def _by_step(title: str, y_label: str, series: tuple[Series, ...], *, unit: str, is_error: bool = False) -> Chart:
    return Chart(
        title=title,
        kind="line",
        series=series,
        x_label=unit,
        y_label=y_label,
        x_show="integer",
        y_show="percent" if is_error else "ratio",
        log_x=True,
        log_y=not is_error,
    )
