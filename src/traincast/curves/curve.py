"""A learning curve as an ensemble: curves that all fit what was logged, with how likely each is.

Whatever is asked of it is asked of every member, and the answers' 10th, 50th and 90th percentile are given. So an
interval of the final loss and one of the step that reaches a target come from the same curves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traincast.errors import InputError
from traincast.logs import argument_checks

Floats = NDArray[np.float64]
LEVELS = (0.1, 0.5, 0.9)
_FURTHEST = 100.0  # times the last step that was logged: beyond it no curve is asked
_GRID = 400


class Members(Protocol):
    """Equally long rows of values: one row a member, one column a step."""

    def values(self, steps: Floats) -> Floats: ...


@dataclass(frozen=True, eq=False, slots=True)
class Rescaled:
    """Members of a law that was fitted to something else: what an accuracy lacks to its top, a reward as a share."""

    members: Members
    scale: float
    offset: float
    most: float = np.inf  # of what was fitted: no accuracy lacks more than all of it

    def values(self, steps: Floats) -> Floats:
        return self.offset + self.scale * np.minimum(self.members.values(steps), self.most)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Curve:
    """What `fit_curve` gives. Steps are in the unit in which they were logged: steps, epochs or tokens."""

    family: str
    members: Members
    weights: Floats  # of the members; they sum to 1
    first_step: float
    last_step: float  # that was fitted
    total_steps: float | None = None
    is_rising: bool = False  # an accuracy
    parameters: Mapping[str, float] = field(default_factory=dict)  # of the likeliest member
    warnings: tuple[str, ...] = ()

    def predict(self, step: ArrayLike) -> float | Floats:
        """The median at a step, or at each of several."""
        found = self._quantiles(step)[1]
        return float(found[0]) if np.ndim(step) == 0 else found

    def interval(self, step: ArrayLike) -> tuple[float, float] | tuple[Floats, Floats]:
        """p10 and p90 at a step, or at each of several: of the curve itself, without the noise of single batches."""
        low, _, high = self._quantiles(step)
        return (float(low[0]), float(high[0])) if np.ndim(step) == 0 else (low, high)

    def steps_to(self, target: float) -> float:
        """The step at which the curve first is as good as the target; infinite where it does not get there."""
        return float(self.quantiles_of(self.crossings(target))[1])

    def interval_to(self, target: float) -> tuple[float, float]:
        """p10 and p90 of that step; infinite where so many members do not get there."""
        low, _, high = self.quantiles_of(self.crossings(target))
        return float(low), float(high)

    def probability_of(self, target: float, by_step: float | None = None) -> float:
        """That the target is reached, by a step or by the end of the run (without one: ever)."""
        return self.share_within(self.crossings(target), by_step)

    def share_within(self, reached: Floats, by_step: float | None = None) -> float:
        """Of what `crossings` gave: how much of it is reached by a step, or by the end of the run."""
        limit = argument_checks.number("A step", by_step) if by_step is not None else self.total_steps
        if limit is not None and np.isnan(limit):
            raise InputError("A step should be a number, not nan.")
        is_there = np.isfinite(reached) if limit is None else reached <= limit
        return float(np.clip(self.weights[is_there].sum(), 0.0, 1.0))

    def quantiles_of(self, reached: Floats) -> Floats:
        """p10, median and p90 of what `crossings` gave."""
        return weighted_quantiles(reached[:, None], self.weights, LEVELS)[:, 0]

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook

        places = {"last logged": self.last_step, "end": self.total_steps or 2 * self.last_step}
        rows = [
            (f"{name}: {step:,.6g}", *(f"{float(value):.4g}" for value in self._quantiles(step)[[1, 0, 2], 0]))
            for name, step in places.items()
        ]
        return to_notebook(f"Curve ({self.family})", rows, header=("step", "p50", "p10", "p90"), notes=self.warnings)

    def _quantiles(self, step: ArrayLike) -> Floats:
        steps = argument_checks.floats("A step", step if np.ndim(step) else [step])
        if not np.isfinite(steps).all() or (steps < 0).any():
            raise InputError(f"A step should be a finite number of at least 0, not {steps.min():g}.")
        return weighted_quantiles(self.members.values(steps), self.weights, LEVELS)

    def crossings(self, target: float) -> Floats:
        """Of every member the first step that reaches the target: between two places of a grid, on their line.

        The grid goes to the end of the run where that is known, and far beyond what was logged where it is not.
        """
        wanted = argument_checks.number("A target", target)
        if not np.isfinite(wanted):
            raise InputError(f"A target should be a finite number, not {wanted:g}.")
        end = self.total_steps or _FURTHEST * self.last_step
        first = max(self.first_step, 1e-6 * end)
        grid = np.union1d(np.geomspace(first, end, _GRID), np.linspace(first, end, _GRID))
        values = self.members.values(grid)
        beyond = values - wanted if self.is_rising else wanted - values
        is_there = beyond >= 0
        place = np.argmax(is_there, axis=1)
        rows = np.arange(len(values))
        after = beyond[rows, place]
        before = beyond[rows, np.maximum(place - 1, 0)]
        share = np.divide(-before, after - before, out=np.zeros_like(after), where=after > before)
        between = grid[np.maximum(place - 1, 0)] + np.clip(share, 0.0, 1.0) * (
            grid[place] - grid[np.maximum(place - 1, 0)]
        )
        return np.where(is_there.any(axis=1), np.where(place == 0, grid[0], between), np.inf)


def weighted_quantiles(values: Floats, weights: Floats, levels: tuple[float, ...]) -> Floats:
    """Of each column: one row a level. Between two members the line is taken, unless one of them is infinite."""
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    mass = weights[order]
    middle = np.cumsum(mass, axis=0) - 0.5 * mass
    found = np.empty((len(levels), values.shape[1]))
    for column in range(values.shape[1]):
        own = ranked[:, column]
        if np.isinf(own[-1]):
            place = np.minimum(np.searchsorted(np.cumsum(mass[:, column]), levels), len(own) - 1)
            found[:, column] = own[place]
        else:
            # Halves, because the difference of two huge values is beyond what a float holds.
            found[:, column] = 2.0 * np.interp(levels, middle[:, column], 0.5 * own)
    return found
