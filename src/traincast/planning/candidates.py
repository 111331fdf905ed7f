"""Every choice with its price: what the whole run takes and costs, and how likely it keeps its limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.lognormal import FIFTHS_SDS
from traincast.planning.pareto import Limits
from traincast.planning.space import Space
from traincast.planning.spot import can_finish, spot_time
from traincast.planning.steps import StepTable
from traincast.trace.graph import Floats, Ints

_S_PER_DAY = 86_400.0
_S_PER_H = 3600.0
_CHECKPOINT_CALL_S = 5.0  # to stop, gather and open a file, however little is written: a guess


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How long the run is, at the batch that it is usually trained with, and how sure that is."""

    n_samples: int
    n_epochs: float
    at_batch: int
    noise_scale: float | None = None  # Pollux': larger batches need more epochs; None: equally many
    epochs_log_sd: float = 0.0  # of the logarithm of the epochs, where a curve told them
    probability: float = 1.0  # that a target is reached at all

    def n_steps(self, batch_sizes: Ints) -> Floats:
        """An epoch's last batch counts as a full one."""
        from traincast.curves.batch_efficiency import epochs_at_batch

        per_epoch = np.ceil(self.n_samples / batch_sizes)
        if self.noise_scale is None:
            return self.n_epochs * per_epoch
        epochs = epochs_at_batch(self.n_epochs, batch_sizes, at_batch=self.at_batch, noise_scale=self.noise_scale)
        return epochs * per_epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What renting costs besides steps: a start, and on spot machines checkpoints and restarts."""

    with_spot: bool
    setup_s: float
    checkpoint_bytes: float
    checkpoint_bytes_per_s: float
    per_day: Mapping[str, float]  # interruptions of one machine, by provider

    def __post_init__(self) -> None:
        if not 0 <= self.setup_s < np.inf:
            raise InputError(f"The time to start should be at least 0 seconds, not {self.setup_s:g}.")
        if not 0 < self.checkpoint_bytes_per_s < np.inf:
            raise InputError(f"The checkpoint rate should be above 0, not {self.checkpoint_bytes_per_s:g} bytes/s.")

    @property
    def checkpoint_s(self) -> float:
        return _CHECKPOINT_CALL_S + self.checkpoint_bytes / self.checkpoint_bytes_per_s


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Candidates:
    """One entry a choice in every array; `row` is that of the table of steps, `offer` that of the space."""

    row: Ints
    offer: Ints
    is_spot: NDArray[np.bool_]
    usd_per_hour: Floats  # of all machines together
    total_s: Floats  # expected; infinite where it cannot finish
    median_s: Floats  # of what comes after the start, if no data loader holds it up
    log_sd: Floats  # of that
    least_s: Floats  # what the loader needs, which is taken as exact
    cost_usd: Floats
    probability: Floats  # of keeping the limits
    interval_s: Floats  # between checkpoints; not a number on demand
    n_interruptions: Floats

    def __len__(self) -> int:
        return len(self.row)


def candidates(
    steps: StepTable, space: Space, length: Length, terms: Terms, limits: Limits, rate: float | None
) -> Candidates:
    """Every row of the table at every price of its place. `rate` is what a data loader delivers, in samples/s."""
    row, offer, is_spot, price = _priced(steps, space, with_spot=terms.with_spot)
    n_steps = length.n_steps(steps.batch_size)
    input_s = np.zeros(len(steps)) if rate is None else steps.batch_size / rate
    busy_s, least_s = (n_steps * steps.busy_s)[row], (n_steps * input_s)[row]
    work_s = np.maximum(busy_s, least_s)
    log_sd = steps.log_sd[row]
    longer, median_s = np.ones(len(row)), busy_s.copy()  # by interruptions
    interval_s, n_interruptions = np.full(len(row), np.nan), np.zeros(len(row))
    spot = np.flatnonzero(is_spot)
    if len(spot):
        between_s = _between_s(steps, space, terms, row[spot], offer[spot])
        found = spot_time(work_s[spot], checkpoint_s=terms.checkpoint_s, restart_s=terms.setup_s, between_s=between_s)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            own = np.log1p(found.variance_s2 / found.mean_s**2)
        is_finished = can_finish(terms.checkpoint_s, terms.setup_s, between_s) & np.isfinite(found.mean_s + own)
        own = np.where(is_finished, own, 0.0)
        longer[spot[is_finished]] = found.mean_s[is_finished] / work_s[spot[is_finished]]
        longer[spot[~is_finished]] = np.inf
        median_s[spot] = busy_s[spot] * longer[spot] * np.exp(-own / 2)
        log_sd[spot] = np.sqrt(log_sd[spot] ** 2 + own)
        interval_s[spot], n_interruptions[spot] = found.interval_s, found.n_interruptions
    total_s = terms.setup_s + work_s * longer
    least_s = np.where(np.isfinite(longer), least_s * longer, np.inf) if rate is not None else least_s
    left_s = limits.time_s(price) - terms.setup_s
    return Candidates(
        row=row,
        offer=offer,
        is_spot=is_spot,
        usd_per_hour=price,
        total_s=total_s,
        median_s=median_s,
        log_sd=np.hypot(log_sd, length.epochs_log_sd),
        least_s=least_s,
        cost_usd=price * total_s / _S_PER_H,
        probability=_in_time(length, left_s, median_s, log_sd, least_s),
        interval_s=interval_s,
        n_interruptions=n_interruptions,
    )


def _in_time(length: Length, left_s: Floats, median_s: Floats, log_sd: Floats, least_s: Floats) -> Floats:
    """That the run is over before the limit, at paces with this deviation.

    The epochs of a curve are those of all runs, and the slowest are runs that never arrive: at any pace, the share that
    is in time is at most the share that arrives.
    """
    if length.probability == 1:
        return _kept(left_s, median_s, np.hypot(log_sd, length.epochs_log_sd), least_s)
    spread = np.full(len(log_sd), length.epochs_log_sd)
    at_paces = [_kept(left_s, median_s * np.exp(sds * log_sd), spread, least_s) for sds in FIFTHS_SDS]
    found: Floats = np.mean(np.minimum(length.probability, at_paces), axis=0)
    return found


def _kept(left_s: Floats, median_s: Floats, log_sd: Floats, least_s: Floats) -> Floats:
    """Of a lognormal time, that it is over before the limit. Cost is time at a price: keeping one keeps the other."""
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.log(np.maximum(left_s, 0.0) / median_s)
        sure = np.where(distance >= 0, 1.0, 0.0)
        found = np.where(log_sd > 0, _normal_cdf(distance / log_sd), sure)
    found = np.where(np.isposinf(left_s) & np.isfinite(median_s), 1.0, np.nan_to_num(found))
    return np.where((least_s > left_s) | ~np.isfinite(median_s), 0.0, found)


def _normal_cdf(values: Floats) -> Floats:
    """One by one: for 100,000 numbers that takes less than importing SciPy's."""
    return 0.5 * (1 + np.array([math.erf(value) for value in (values / math.sqrt(2)).tolist()]))


def _priced(steps: StepTable, space: Space, *, with_spot: bool) -> tuple[Ints, Ints, NDArray[np.bool_], Floats]:
    """Rows beside offers: each row once for every offer of its place that has such a price."""
    order = np.argsort(steps.place, kind="stable")
    starts = np.searchsorted(steps.place[order], np.arange(len(steps.places) + 1))
    rows, offers, spots, prices = [], [], [], []
    for number, place in enumerate(steps.places):
        own = order[starts[number] : starts[number + 1]]
        for offer in place.offers:
            for is_spot in (False, True) if with_spot else (False,):
                price = space.offers[offer].usd_per_hour(is_spot=is_spot)
                if price is not None:
                    rows.append(own)
                    offers.append(np.full(len(own), offer))
                    spots.append(np.full(len(own), is_spot))
                    prices.append(np.full(len(own), price * place.n_nodes))
    if not rows:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing.astype(bool), nothing.astype(float)
    return np.concatenate(rows), np.concatenate(offers), np.concatenate(spots), np.concatenate(prices)


def _between_s(steps: StepTable, space: Space, terms: Terms, row: Ints, offer: Ints) -> Floats:
    """Mean time between interruptions of a run: whichever of its machines goes first stops it."""
    n_nodes = np.array([place.n_nodes for place in steps.places])[steps.place[row]]
    per_day = np.array([terms.per_day.get(one.provider, np.nan) for one in space.offers])[offer]
    with np.errstate(divide="ignore"):
        return _S_PER_DAY / (per_day * n_nodes)
