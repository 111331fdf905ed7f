"""Priors from runs: how far curves fall when the rate comes down.

Every source counts the same, however many runs it has: 50 runs of one script tell little more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lab.refit.curves.runs import Run
from lab.refit.curves.strangers import NO_SCALE, Case, fit_unknown_rate
from traincast.curves.auto import AnnealedLaws, fit_auto
from traincast.curves.curve import Curve
from traincast.curves.points import Points
from traincast.curves.priors import Annealing, Priors
from traincast.curves.unknown_rate import UnknownRate
from traincast.curves.untold import fit_untold
from traincast.lognormal import P90_SDS

Floats = NDArray[np.float64]

SHARES = (0.2, 0.3, 0.4, 0.5, 0.6)
NEXT_SHARES = (0.4, 0.5, 0.6, 0.7, 0.8)
_BEGUN = 0.05  # of `annealed`: what is seen of a drop is no longer foretold
_LEAST_DROP = 0.008
_RIDGE = 0.02
_USUAL_LOG_SD = 0.6
_COVERED = 0.8
_MOST_UNLIKE = 10.0  # a next fall that is less than a tenth of the one before, or a rise, counts as a tenth
# The family without any drop, to see what the rate's fall adds.
NO_DROP = Priors(
    loss=Annealing(intercept=-20.0, per_log_level=0.0, log_sd=0.1),
    error=Annealing(intercept=-20.0, per_log_level=0.0, log_sd=0.1),
    unknown_rate=UnknownRate(
        loss_fall=0.0, loss_part=0.0, error_fall=0.0, error_noise=1.0, below=NO_SCALE, above=NO_SCALE
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """How far below the law a run ended, for the whole fall of its rate, and what could be seen of it before."""

    run: Run
    noise: float
    level: float
    drop: float


def drops_of(runs: Sequence[Run]) -> list[Drop]:
    """Of every run whose rate is known and had not come down yet, at several shares of the run."""
    found = []
    for run in runs:
        rates = run.schedule()
        if rates is None:
            continue
        end, now = np.array([run.end]), np.array([0.0])
        for share in SHARES:
            points = run.until(share)
            if points is None:
                continue
            now[0] = points.last_step
            gained = float(rates.annealed(end)[0] - rates.annealed(now)[0])
            if rates.annealed(now)[0] > _BEGUN or gained < _BEGUN:
                continue
            law = fit_auto(points, schedule=rates, total_steps=run.end, priors=NO_DROP).predict(run.end)
            final = 1.0 - run.final if run.is_accuracy else run.final
            drop = float(np.log(float(law) / max(final, 1e-4))) / gained
            found.append(Drop(run=run, noise=points.noise(), level=max(points.level(), 1e-9), drop=drop))
    return found


def fit_annealing(drops: Sequence[Drop], *, is_error: bool) -> Annealing:
    """Least squares of the logarithm of the drop on that of the level and, of an error, of the noise.

    Sources count the same. The noise of a loss tells how it was logged, of one batch or over an epoch; an accuracy is
    always of a whole set.
    """
    columns = [np.ones(len(drops)), np.log([drop.level for drop in drops])]
    columns += [np.log([drop.noise for drop in drops])] if is_error else []
    sought = np.log(np.maximum([drop.drop for drop in drops], _LEAST_DROP))
    found, log_sd = _line([drop.run.source for drop in drops], columns, sought)
    return Annealing(
        intercept=found[0],
        per_log_level=found[1],
        per_log_noise=found[2] if is_error else 0.0,
        log_sd=max(log_sd, 0.5 * _USUAL_LOG_SD),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NextFall:
    """The logarithm of what a rate's further fall did over what its fall so far had done, for the same fall of it."""

    run: Run
    level: float
    log_ratio: float


def next_falls(runs: Sequence[Run], priors: Priors) -> list[NextFall]:
    """Of every run whose rate is known, had come down and came down further, at several shares of the run."""
    found = []
    for run in runs:
        rates = run.schedule()
        if rates is None:
            continue
        for share in NEXT_SHARES:
            points = run.until(share)
            if points is None:
                continue
            so_far, whole = rates.annealed(np.array([points.last_step, run.end])).tolist()
            if so_far <= _BEGUN or whole - so_far <= _BEGUN:
                continue
            members = fit_run(run, points, priors).members
            assert isinstance(members, AnnealedLaws)
            stays = replace(members, next_drop=np.zeros(len(members.drop)), error=np.zeros(len(members.drop)), top=None)
            law = float(np.median(stays.values(np.array([run.end]))))
            final = 1.0 - run.final if run.is_accuracy else run.final
            drop = float(np.median(members.drop))
            ratio = float(np.log(law / max(final, 1e-4))) / (whole - so_far) / drop
            log_ratio = float(np.log(np.clip(ratio, 1 / _MOST_UNLIKE, _MOST_UNLIKE)))
            found.append(NextFall(run=run, level=max(points.level(), 1e-9), log_ratio=log_ratio))
    return found


def with_next_falls(annealing: Annealing, falls: Sequence[NextFall]) -> Annealing:
    """With how unlike one fall is to the next."""
    if not falls:
        return annealing
    columns = [np.ones(len(falls)), np.log([fall.level for fall in falls])]
    logs = np.array([fall.log_ratio for fall in falls])
    found, log_sd = _line([fall.run.source for fall in falls], columns, logs)
    return replace(annealing, next_intercept=found[0], next_per_log_level=found[1], next_log_sd=log_sd)


def _line(sources: Sequence[str], columns: Sequence[Floats], sought: Floats) -> tuple[list[float], float]:
    """Least squares with slopes pulled towards 0, and the standard deviation whose p10 to p90 hold four of five.

    Sources count the same.
    """
    weight = np.array([1.0 / sources.count(source) for source in sources])
    seen = np.column_stack(columns)
    pull = weight.sum() * np.diag([0.0, *[_RIDGE] * (len(columns) - 1)])
    found = np.linalg.solve(seen.T @ (seen * weight[:, None]) + pull, seen.T @ (sought * weight))
    off = np.abs(seen @ found - sought)
    order = np.argsort(off)
    place = np.searchsorted(np.cumsum(weight[order]) / weight.sum(), _COVERED)
    return found.tolist(), float(off[order][place]) / P90_SDS


def fit_priors(drops: Sequence[Drop], runs: Sequence[Run], cases: Sequence[Case], provenance: str = "") -> Priors:
    """From all drops of these runs, then from falls that came after others; `cases` are of runs of unknown rates.

    Nothing is fitted to how often p10 to p90 hold: that is looked at on runs left out.
    """
    first = Priors(
        loss=fit_annealing([drop for drop in drops if not drop.run.is_accuracy], is_error=False),
        error=fit_annealing([drop for drop in drops if drop.run.is_accuracy], is_error=True),
        unknown_rate=fit_unknown_rate(cases),
        provenance=provenance,
    )
    falls = next_falls(runs, first)
    return replace(
        first,
        loss=with_next_falls(first.loss, [fall for fall in falls if not fall.run.is_accuracy]),
        error=with_next_falls(first.error, [fall for fall in falls if fall.run.is_accuracy]),
    )


def forecast_of(run: Run, share: float, priors: Priors) -> tuple[float, float, float] | None:
    """p10, median and p90 of the final value from a share of the run, as a user would ask: length and rate known."""
    points = run.until(share)
    if points is None:
        return None
    curve = fit_run(run, points, priors)
    low, high = curve.interval(run.end)
    return float(low), float(curve.predict(run.end)), float(high)


def fit_run(run: Run, points: Points, priors: Priors) -> Curve:
    top = 1.0 if run.is_accuracy else None
    schedule = run.schedule()
    if schedule is None:
        return fit_untold(points, total_steps=run.end, top=top, priors=priors)
    return fit_auto(points, schedule=schedule, total_steps=run.end, top=top, priors=priors)
