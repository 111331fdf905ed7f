"""How fast a run goes, from the clock in its log: seconds of a step, without the time in which it idle.

Evaluations and checkpoints come again and again, so they belong to the pace. What comes once does not: compiling in the
first steps, a machine that was away, a restart with the steps that it repeats. That is counted as downtime.
Steps may become slower or faster on the way (longer sequences, larger batches), so late intervals count more; pauses
are rare, so all of them count alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.logs.log import Log, Series

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MOST_ROWS = 20_000
# An interval with a pause in it takes longer than its steps usually take, by this many times at least and at most:
_LEAST_LONG, _LONG = 0.5, 5.0
_SPREADS = 6.0  # in between: how much intervals usually differ, times this
_FEW = 2.0  # and more, where there are few of them
_SAME = 0.2  # of the logarithm: two paces that are one
_FIRST = 1.2  # the same for the first interval, and for the first after a restart: they may hold a compilation
_ALIKE = 2.0  # pauses whose lengths differ by less than this factor are of one kind
_OFTEN = 3  # pauses of one kind come again; two do if they came at equal distances
_MEMORY = 0.2  # of the steps so far, after which an interval counts 1/e
_N_BLOCKS = 12
_LEAST_LOG_SD = 0.01
_AHEAD = 0.6  # how much of the drift that was seen is still to come
_SHORT = 0.1  # of the time that the run worked: a pause that came once but may be one of many
_LOG_SD_OF_ONE = 0.2  # where only one interval has no pause
_FEWEST = 2  # intervals: the first one may be anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds of one step, how sure they are, and what was left out of them."""

    step_s: float
    log_sd: float
    downtime_s: float
    n_pauses: int
    at_step: float  # the last step with a time
    row_s: float  # usual time from one row to the next


@dataclass(frozen=True, eq=False, slots=True)
class _Intervals:
    """From row to row: the steps in between and the time that they took."""

    starts: Floats
    n_steps: Floats
    took_s: Floats
    usual_s: float  # of one step without a pause

    @property
    def ratio(self) -> Floats:
        return self.took_s / (self.n_steps * self.usual_s)

    @property
    def excess_s(self) -> Floats:
        return self.took_s - self.n_steps * self.usual_s

    def has(self, places: Floats) -> Bools:
        """Which of them hold one of these steps: after their first row, up to their last."""
        after = np.searchsorted(places, self.starts, side="right")
        return np.searchsorted(places, self.starts + self.n_steps, side="right") > after


def clock_of(log: Log) -> Series | None:
    """The series with the most rows that have a time."""
    timed = [(one, int(np.isfinite(one.seconds).sum())) for one in log.series if one.seconds is not None]
    return max((pair for pair in timed if pair[1]), key=lambda pair: pair[1], default=(None, 0))[0]


def pace_of(log: Log) -> Pace | None:
    """The pace of a run by the series with the most rows that have a time."""
    clock = clock_of(log)
    if clock is None:
        return None
    evaluated = [one.steps for one in log.series if one.split != "train" and len(one) < 0.5 * len(clock)]
    assert clock.seconds is not None
    return find_pace(
        clock.steps,
        clock.seconds,
        log.restarts,
        evaluations=np.unique(np.concatenate(evaluated)) if evaluated else None,
    )


def find_pace(
    steps: Floats, seconds: Floats, restarts: Sequence[float] = (), *, evaluations: Floats | None = None
) -> Pace | None:
    """From rows in the order of their steps; None where less than three have a time.

    `restarts` are the first steps after the log went back. `evaluations` are steps at which the model was evaluated:
    a pause there comes again, also if it was seen only once.
    """
    is_timed = np.isfinite(seconds) & np.isfinite(steps)
    between = _intervals(steps[is_timed], seconds[is_timed])
    if between is None:
        return None
    n_steps, took_s = between.n_steps, between.took_s
    evaluated = between.has(np.sort(evaluations)) if evaluations is not None else np.zeros(len(n_steps), bool)
    is_restart = between.has(np.sort(np.array(restarts, float)))
    is_once, is_again = _kinds(between, is_restart, evaluated)
    if is_once.all():
        return None
    works, step_s = ~is_once, _step_s(between, is_once, is_again)
    lost_s = took_s[is_once] - step_s * n_steps[is_once]
    excess_s = between.excess_s[is_once & ~is_restart]
    doubtful_s = float(excess_s[excess_s < _SHORT * took_s[works].sum()].sum())
    return Pace(
        step_s=step_s,
        log_sd=_log_sd(n_steps[works], took_s[works], doubtful_s),
        downtime_s=max(float(lost_s.sum()), 0.0),
        n_pauses=int(is_once.sum()),
        at_step=float(steps[is_timed][-1]),
        row_s=float(np.median(took_s)),
    )


def _intervals(places: Floats, clock: Floats) -> _Intervals | None:
    """Between rows at which step and clock went on: a clock of whole seconds stands still for some rows."""
    if len(places) <= _FEWEST:
        return None
    stride = 1 + len(places) // _MOST_ROWS
    places, clock = places[::-1][::stride][::-1], clock[::-1][::stride][::-1]  # from the newest row, which counts most
    goes_on = np.r_[True, (np.diff(clock) > 0) & (np.diff(places) > 0)]
    places, clock = places[goes_on], clock[goes_on]
    n_steps, took_s = np.diff(places), np.diff(clock)
    if len(n_steps) < _FEWEST or not (n_steps > 0).all():
        return None
    return _Intervals(places[:-1], n_steps, took_s, _usual(took_s / n_steps, n_steps))


def _usual(each_s: Floats, n_steps: Floats) -> float:
    """What steps take without a pause: a third of them is faster. Of two or three intervals the fastest."""
    order = np.argsort(each_s)
    sums = np.cumsum(n_steps[order])
    return float(each_s[order][np.searchsorted(sums, sums[-1] / 3 * (1 - 1e-9))])


def _kinds(between: _Intervals, is_restart: Bools, evaluated: Bools) -> tuple[Bools, Bools]:
    """Intervals with a pause that comes once, and with one that comes again. All others are plain."""
    ratio = between.ratio
    begins = np.r_[True, is_restart[:-1]]
    is_long = (ratio > _limit(ratio)) & ~is_restart
    is_begin = begins & (ratio > _FIRST) & ~is_restart
    is_candidate = is_long & ~is_begin & ~_is_level(ratio, is_long)
    is_again = np.zeros(len(ratio), bool)
    candidates = np.flatnonzero(is_candidate)
    logs = np.log(between.excess_s[candidates])
    for one, log_s in zip(candidates, logs, strict=True):
        alike = candidates[np.abs(logs - log_s) < np.log(_ALIKE)]
        is_again[one] = _comes_again(between, alike) or (evaluated[one] and _is_evaluation(one, between, evaluated))
    return is_restart | is_begin | (is_candidate & ~is_again), is_again


def _limit(ratio: Floats) -> float:
    """Times the usual pace above which there is a pause: beyond how much intervals differ anyway."""
    spread = float(np.quantile(np.abs(ratio - 1.0), 0.5, method="lower"))
    return 1.0 + float(np.clip(_SPREADS * spread + _FEW / len(ratio), _LEAST_LONG, _LONG))


def _is_level(ratio: Floats, is_long: Bools) -> Bools:
    """Long intervals that follow each other and take the same: the run became slower, it did not stand still."""
    is_same = (np.abs(np.diff(np.log(ratio))) < _SAME) & is_long[1:] & is_long[:-1]
    return np.r_[False, is_same] | np.r_[is_same, False]


def _comes_again(between: _Intervals, pauses: NDArray[np.int64]) -> bool:
    """Often; or twice at about the same distance, and shorter than the steps in between."""
    if len(pauses) != 2:
        return len(pauses) >= _OFTEN
    places = between.starts[pauses]
    first, second = places[0] - between.starts[0], places[1] - places[0]
    is_short = between.excess_s[pauses].max() < 0.5 * second * between.usual_s
    return bool(0.7 * second < first < 1.3 * second and is_short)


def _is_evaluation(one: np.intp, between: _Intervals, evaluated: Bools) -> bool:
    """Whether a pause with an evaluation in it is as long as evaluations are, or at least not most of the run."""
    excess_s = between.excess_s
    others_s = excess_s[evaluated & (np.arange(len(excess_s)) != one)]
    if len(others_s):
        return bool(excess_s[one] < _LONG * max(float(np.median(others_s)), 0.0))
    return bool(excess_s[one] < 0.25 * (between.took_s.sum() - between.took_s[one]))


def _step_s(between: _Intervals, is_once: Bools, is_again: Bools) -> float:
    """Plain intervals as they are lately, and the pauses that come again spread over all steps."""
    n_steps, took_s = between.n_steps, between.took_s
    is_plain, works = ~is_once & ~is_again, ~is_once
    if not is_plain.any():
        return float(took_s[works].sum() / n_steps[works].sum())
    plain_s = _recent(between, is_plain)
    pauses_s = float((took_s[is_again] - n_steps[is_again] * plain_s).sum())
    return plain_s + max(pauses_s, 0.0) / float(n_steps[works].sum())


def _recent(between: _Intervals, chosen: Bools) -> float:
    """Seconds of a step, of which the last fifth of the run so far counts most."""
    middle = between.starts + 0.5 * between.n_steps
    end = between.starts[-1] + between.n_steps[-1]
    weights = np.exp((middle - end) / (_MEMORY * (end - between.starts[0])))[chosen]
    return float((weights * between.took_s[chosen]).sum() / (weights * between.n_steps[chosen]).sum())


def _log_sd(n_steps: Floats, took_s: Floats, doubtful_s: float) -> float:
    """How far one part of the run is from another, how much of that may go on, and pauses that may come again."""
    blocks = np.array_split(np.arange(len(n_steps)), min(_N_BLOCKS, len(n_steps)))
    paces = np.array([took_s[part].sum() / n_steps[part].sum() for part in blocks])
    drift = _AHEAD * float(np.std(np.log(paces), ddof=1)) if len(paces) > 1 else _LOG_SD_OF_ONE
    doubt = 0.5 * float(np.log1p(doubtful_s / took_s.sum()))
    return max(float(np.hypot(drift, doubt)), _LEAST_LOG_SD) + 0.05 / len(n_steps)
