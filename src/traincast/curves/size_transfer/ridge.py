"""What a plain regression says, to compare with: kernel ridge of raw numbers, as a course report of 2022 did it.

Linear kernel, penalty 1, features (size, a number for the hardware), no intercept, targets as they are. It is neither
scaled nor logarithmic, and treats names of hardware as amounts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from traincast.curves.size_transfer.fits import Fit


def codes_of(fits: Sequence[Fit]) -> dict[str, float]:
    """0, 1, 2, ... for the hardware, in the order of the rows."""
    return {gpu: float(place) for place, gpu in enumerate(dict.fromkeys(fit.gpu for fit in fits))}


def ridge(seen: Sequence[Fit], asked: tuple[int, str], quantity: str, codes: Mapping[str, float]) -> float | None:
    """A quantity of a model of that size on that hardware; None where no row has it."""
    known = [fit for fit in seen if getattr(fit, quantity) is not None]
    if not known:
        return None
    rows = np.array([[fit.n_layers, codes[fit.gpu]] for fit in known])
    values = np.array([getattr(fit, quantity) for fit in known])
    weights = np.linalg.solve(rows @ rows.T + np.eye(len(rows)), values)
    return float(np.array([asked[0], codes[asked[1]]]) @ rows.T @ weights)
