"""What a forecast of a curve has to beat: the last value, Optimus' law, a power law. Values fall and are above 0."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import curve_fit

Law = Callable[[ArrayLike], np.ndarray]


def optimus(steps: np.ndarray, values: np.ndarray) -> Law:
    """SciPy's bounded fit of 1 / (b0 k + b1) + b2."""
    start = (1e-3, 1.0 / max(values[0], 1e-3), 0.0)
    a, b, c = curve_fit(
        lambda k, a, b, c: 1 / (a * k + b) + c, steps, values, start, bounds=(0, np.inf), maxfev=20_000
    )[0]
    return lambda k: 1 / (a * np.asarray(k) + b) + c


def power(steps: np.ndarray, values: np.ndarray) -> Law:
    """SciPy's bounded fit of c + a k^-b, without step 0."""
    last = steps[-1]
    ratio, values = steps[steps > 0] / last, values[steps > 0]
    start = (0.8 * values.min(), 0.2 * values[-1], 0.5)
    c, a, b = curve_fit(lambda k, c, a, b: c + a * k**-b, ratio, values, start, bounds=(0, np.inf), maxfev=20_000)[0]
    return lambda k: c + a * (np.asarray(k) / last) ** -b


def last_value(steps: np.ndarray, values: np.ndarray) -> Law:
    return lambda k: np.full(np.shape(k), values[-1])


LAWS = {"last": last_value, "optimus": optimus, "power": power}


def simple_laws(steps: np.ndarray, values: np.ndarray) -> dict[str, Law]:
    """Where one cannot be fitted, the last value stands for it: what a user would fall back to."""
    found = {}
    for name, law in LAWS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[name] = law(steps, values)
            except (RuntimeError, ValueError):
                found[name] = last_value(steps, values)
    return found
