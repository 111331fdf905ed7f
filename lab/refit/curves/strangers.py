"""What to expect of the end of a run whose learning rate nobody tells: `UnknownRate`, from all published curves.

Every family of a source counts the same, and every source does, however many runs it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from lab.accuracy.law_curves import MLPERF, StrangerCurve, evenly, stranger_curves
from lab.refit.curves.runs import Run
from traincast.curves.points import FEWEST, Points, clean
from traincast.curves.unknown_rate import LEAST_NOISE, LEAST_SD, Scale, UnknownRate
from traincast.curves.weighed import outlook_of
from traincast.lognormal import P90_SDS

Floats = NDArray[np.float64]

SHARES = (0.2, 0.4, 0.6, 0.8)
OF_FAMILY, OF_SOURCE = 12, 80  # curves at most
_LEVEL = 0.91  # of errors to one side that a scale holds; a tenth of all are then beyond it on sources left out
_RIDGE = 0.03
_LEAST_OFF = 1e-4
_USUAL_ERROR_FALL, _USUAL_ERROR_NOISE, _PULL = 0.35, 0.025, 0.02
# Taken, not fitted: the median source ends 0.8 % below its laws, language models whose rate comes down 1 to 3 %.
_LOSS_FALL, _LOSS_PART = 0.026, 0.5
NO_SCALE = Scale(intercept=0.0, per_log_sd=0.0, per_log_noise=0.0, per_log_horizon=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run from one share of it: where its path ends, where it ended, and what tells how far these may be apart."""

    source: str
    family: str
    share: float
    is_error: bool
    sd: float
    noise: float
    horizon: float
    to_come: float
    moves: float
    log_off: float  # of the true end over that of the path


def cases_of(data: Path, runs: Sequence[Run], processes: int = 2) -> list[Case]:
    strangers = [
        curve
        for source, curves in stranger_curves(data).items()
        if source != MLPERF
        for curve in evenly(curves, of_family=OF_FAMILY, of_all=OF_SOURCE)
    ]
    with ProcessPoolExecutor(processes) as pool:
        found = [*pool.map(_of_stranger, strangers, chunksize=8), *pool.map(_of_run, runs, chunksize=8)]
    return [case for cases in found for case in cases]


def _of_stranger(curve: StrangerCurve) -> list[Case]:
    is_error = curve.is_rising or curve.kind == "error"
    made = partial(Case, source=curve.source, family=curve.family, is_error=is_error)
    return _cases(made, curve.steps, _falling(curve.values) if curve.is_rising else curve.values)


def _of_run(run: Run) -> list[Case]:
    made = partial(Case, source=run.source, family=run.dataset, is_error=run.is_accuracy)
    return _cases(made, run.steps, run.falling)


def _falling(values: Floats) -> Floats:
    """What accuracies lack to 1 or 100."""
    top = 1.0 if values.max() <= 1.0 else 100.0
    return np.maximum(top - values, 1e-4 * top)


def _cases(made: Callable[..., Case], steps: Floats, values: Floats) -> list[Case]:
    return [case for share in SHARES if values.min() > 0 and (case := _case(made, steps, values, share)) is not None]


def _case(made: Callable[..., Case], steps: Floats, values: Floats, share: float) -> Case | None:
    seen = steps <= share * steps[-1]
    if seen.sum() < FEWEST or steps[seen][-1] <= 0:
        return None
    points: Points = clean(steps[seen], values[seen])
    outlook, end = outlook_of(points), np.array([steps[-1]])
    path = float(outlook.path(end)[0])
    final = float(np.mean(values[-max(1, len(values) // 50) :]))
    return made(
        share=share,
        sd=float(outlook.laws.at(end)[1][0]),
        noise=outlook.noise,
        horizon=float(np.log(end[0] / points.last_step)),
        to_come=1.0 - points.last_step / float(end[0]),
        moves=path - outlook.now,
        log_off=float(np.log(final)) - path,
    )


def fit_unknown_rate(cases: Sequence[Case]) -> UnknownRate:
    """The falls first, then how far runs are off what these make of their paths."""
    weight = _weights(cases)
    is_error = np.array([case.is_error for case in cases])
    error_fall, error_noise = _fall_of_errors([case for case in cases if case.is_error], weight[is_error])
    falls = UnknownRate(
        loss_fall=_LOSS_FALL,
        loss_part=_LOSS_PART,
        error_fall=error_fall,
        error_noise=error_noise,
        below=NO_SCALE,
        above=NO_SCALE,
    )
    rest = np.array([case.log_off + _fall(falls, case) for case in cases])
    return replace(falls, below=_scale(cases, -rest, weight), above=_scale(cases, rest, weight))


def _fall(told: UnknownRate, case: Case) -> float:
    return told.fall(case.noise, to_come=case.to_come, moves=case.moves, is_error=case.is_error)


def _weights(cases: Sequence[Case]) -> Floats:
    of_family = Counter((case.source, case.family, case.share) for case in cases)
    families = Counter((source, share) for source, _, share in of_family)
    return np.array([1 / of_family[c.source, c.family, c.share] / families[c.source, c.share] for c in cases])


def _fall_of_errors(errors: Sequence[Case], weight: Floats) -> tuple[float, float]:
    """The least mean error on a grid, drawn towards usual numbers."""

    def badness(fall: float, noise: float) -> float:
        told = UnknownRate(
            loss_fall=0.0, loss_part=0.0, error_fall=fall, error_noise=noise, below=NO_SCALE, above=NO_SCALE
        )
        off = [abs(case.log_off + _fall(told, case)) for case in errors]
        pull = abs(np.log(fall / _USUAL_ERROR_FALL)) + abs(np.log(noise / _USUAL_ERROR_NOISE))
        return float(np.average(np.minimum(off, 1.0), weights=weight) + _PULL * pull)

    grid = product(np.geomspace(0.1, 0.8, 13).tolist(), np.geomspace(0.006, 0.1, 13).tolist())
    return min(grid, key=lambda numbers: badness(*numbers))


def _scale(cases: Sequence[Case], off: Floats, weight: Floats) -> Scale:
    """A line of logarithms that holds so many of the errors to one side: quantile regression, drawn towards none."""
    columns = np.log([[case.sd + LEAST_SD, case.noise + LEAST_NOISE, max(case.horizon, 1e-3)] for case in cases])
    centre, spread = columns.mean(axis=0), columns.std(axis=0)
    table = np.column_stack([np.ones(len(cases)), (columns - centre) / spread])
    n, m = table.shape
    pulled = np.r_[0.0, np.full(m - 1, _RIDGE * weight.sum())]
    goal = np.r_[pulled, pulled, _LEVEL * weight, (1 - _LEVEL) * weight]
    equal = csr_matrix(np.hstack([table, -table, np.eye(n), -np.eye(n)]))
    solved = linprog(goal, A_eq=equal, b_eq=np.log(np.maximum(off, _LEAST_OFF)), bounds=(0, None), method="highs")
    line = solved.x[:m] - solved.x[m : 2 * m]
    slopes = line[1:] / spread
    # Of a standard deviation, of which nine of ten are within 1.28 to that side.
    intercept = float(line[0] - slopes @ centre - np.log(P90_SDS))
    return Scale(
        intercept=intercept,
        per_log_sd=float(slopes[0]),
        per_log_noise=float(slopes[1]),
        per_log_horizon=float(slopes[2]),
    )
