"""What a transfer looks like: parameters over depth, the curve beside others, and the error of curves by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from traincast.convergence.transfer.fits import Fit
from traincast.convergence.transfer.transferred import Transferred
from traincast.report.chart import Chart, Series

Law = Callable[[NDArray[np.float64]], NDArray[np.float64]]  # loss by step
_N_STEPS = 60


def parameter_chart(fits: Sequence[Fit], predicted: Sequence[Transferred], quantity: str) -> Chart:
    """Means of what ran by family, and p10, median and p90 of predictions for one family, over depth."""
    series = [_means(fits, family, quantity) for family in sorted({fit.family for fit in fits})]
    estimates = [(each.n_layers, each.estimates[quantity]) for each in sorted(predicted, key=lambda one: one.n_layers)]
    family = predicted[0].family
    for name, level in (("median", "value"), ("p10", "low"), ("p90", "high")):
        depths = [float(depth) for depth, _ in estimates]
        values = [getattr(estimate, level) for _, estimate in estimates]
        series.append(Series(name=f"{family} transferred, {name}".strip(), x=depths, y=values))
    return Chart(
        title=f"{quantity} by depth",
        kind="line",
        series=tuple(series),
        x_label="layers",
        y_label=quantity,
        x_show="integer",
        log_y=True,
    )


def curve_chart(transferred: Transferred, others: Mapping[str, Law]) -> Chart:
    """The transferred curve with its band, and others at the same steps: real, fitted, another method's."""
    steps = _steps(transferred)
    low, high = transferred.curve.interval(steps)
    rows = {
        "transferred, median": transferred.curve.predict(steps),
        "transferred, p10": low,
        "transferred, p90": high,
        **{name: law(steps) for name, law in others.items()},
    }
    return _by_step(f"Loss of {transferred.n_layers} layers before it runs", "loss", steps, rows)


def error_chart(transferred: Transferred, real: Law, others: Mapping[str, Law]) -> Chart:
    """(predicted - real) / real at each step."""
    steps = _steps(transferred)
    truth = real(steps)
    rows = {"transferred": transferred.curve.predict(steps), **{name: law(steps) for name, law in others.items()}}
    errors = {name: np.asarray(values) / truth - 1 for name, values in rows.items()}
    return _by_step("Error of the curve by step", "error of the loss", steps, errors, is_error=True)


def _means(fits: Sequence[Fit], family: str, quantity: str) -> Series:
    by_depth: dict[int, list[float]] = {}
    for fit in fits:
        if fit.family == family and getattr(fit, quantity):
            by_depth.setdefault(fit.n_layers, []).append(math.log(getattr(fit, quantity)))
    depths = sorted(by_depth)
    means = [math.exp(sum(by_depth[depth]) / len(by_depth[depth])) for depth in depths]
    return Series(name=f"{family} as fitted".strip(), x=[float(depth) for depth in depths], y=means)


def _steps(transferred: Transferred) -> NDArray[np.float64]:
    return np.geomspace(transferred.curve.first_step, transferred.curve.last_step, _N_STEPS)


def _by_step(
    title: str,
    y_label: str,
    steps: NDArray[np.float64],
    rows: Mapping[str, object],
    *,
    is_error: bool = False,
) -> Chart:
    series = tuple(Series(name=name, x=steps.tolist(), y=np.asarray(row).tolist()) for name, row in rows.items())
    return Chart(
        title=title,
        kind="line",
        series=series,
        x_label="step",
        y_label=y_label,
        x_show="integer",
        y_show="percent" if is_error else "ratio",
        log_x=True,
        log_y=not is_error,
    )
