"""What makes an Optimus fit degenerate: parameters that the log does not hold, found and named."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traincast.curves.optimus_lines import Floats
from traincast.curves.optimus_members import fitted, is_singular
from traincast.curves.optimus_solver import OptimusFit, ScaledPoints

_LEAST_GAIN = 9.0  # over a constant, in variances of one independent point: three standard errors
_N_EARLY = 3  # steps
_EARLY_SHARE = 0.9  # of the fall


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    sentences: tuple[str, ...]
    has_no_fall: (
        bool  # that the log would show: the curve is a constant, might as well be, or is one after its first steps
    )
    is_degenerate: bool  # some parameter has no meaning; b2 = 0 alone has one


def find_trouble(points: ScaledPoints, fit: OptimusFit, products: Floats, gain: float) -> Trouble:
    """`products` are those of the law's derivatives; `gain` is what the curve explains better than a constant does."""
    steps = _distinct_ends(points.x)
    curve = fitted(replace(points, x=steps), fit)
    fall = float(curve[0] - curve[-1])
    early = float(curve[0] - curve[min(_N_EARLY, len(steps)) - 1])
    is_flat = fit.b0 == 0.0 or gain < _LEAST_GAIN
    is_early = len(steps) > _N_EARLY and early > _EARLY_SHARE * fall and not is_flat
    degenerate: list[str] = []
    if points.mean <= 0:
        degenerate.append(
            "The losses are not above 0 on average, so the law, which has no loss below 0, cannot follow them."
        )
    if fit.b0 == 0.0:
        degenerate.append("The losses do not fall: b0 is at its bound, 0, and the fitted curve is a constant.")
    elif is_flat:
        degenerate.append(
            f"The fitted fall of {fall * points.loss_unit:.3g} is smaller than the noise: b0 = {fit.b0:.3g} is "
            "meaningless, and a constant fits as well."
        )
    if is_early:
        until = float(steps[_N_EARLY - 1]) * points.step_unit
        degenerate.append(
            f"The fitted fall is over by step {until:g}: b0 = {fit.b0:.3g} rests on the first {_N_EARLY} logged steps "
            "alone."
        )
    if fit.b1 == 0.0:
        degenerate.append("b1 is at its bound of 0: the fitted loss is infinite at step 0.")
    free = np.flatnonzero([fit.b0 > 0, fit.b1 > 0, fit.b2 > 0])
    if not is_flat and is_singular(products[np.ix_(free, free)]):
        degenerate.append("The logged steps do not determine b0, b1 and b2: their covariance is singular.")
    mild = (
        ["b2 is at its bound of 0: the fitted curve keeps falling towards 0."] if fit.b2 == 0.0 and fit.b0 > 0 else []
    )
    return Trouble(sentences=(*degenerate, *mild), has_no_fall=is_flat or is_early, is_degenerate=bool(degenerate))


def _distinct_ends(x: Floats) -> Floats:
    """The first few different steps and the last one."""
    found = [float(x[0])]
    for _ in range(_N_EARLY):
        place = int(np.searchsorted(x, found[-1], side="right"))
        if place == len(x):
            break
        found.append(float(x[place]))
    return np.array(found if found[-1] == x[-1] else [*found, float(x[-1])])
