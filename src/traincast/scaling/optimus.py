"""Optimus' resource-speed model (Peng et al., EuroSys 2018, Equation 4): how fast is a job on p servers and w workers?

    synchronous   f(p, w) = 1 / (theta0 M/w + theta1 + theta2 w/p + theta3 w + theta4 p)
    asynchronous  f(p, w) = w / (theta0 + theta1 w/p + theta2 w + theta3 p)

Legend: p parameter servers, w workers, M global batch, theta seconds, none below 0. f is in steps a second: of the
whole job if synchronous (a step is M samples), summed over the workers if asynchronous (a step is one mini-batch).
Both forms are those of the authors' scheduler, github.com/pengyanghua/optimus at 8d46148, scheduler/estimator.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from traincast.errors import InputError
from traincast.report.chart import Chart, Series
from traincast.trace.graph import Floats

Mode = Literal["sync", "async"]
TERMS: dict[Mode, tuple[str, ...]] = {
    "sync": ("compute", "fixed", "exchange", "per worker", "per server"),
    "async": ("compute and fixed", "exchange", "per worker", "per server"),
}
# ResNet-50, as the paper's table of fitted coefficients is quoted in a report; neither M nor the machines are with it.
PAPER_THETA: dict[Mode, tuple[float, ...]] = {"sync": (1.02, 2.78, 4.92, 0.00, 0.02), "async": (2.83, 3.92, 0.00, 0.11)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedModel:
    """Equation 4 with its coefficients. `batch_size` is the global M; asynchronous ones have theirs in theta0."""

    mode: Mode
    theta: tuple[float, ...]
    batch_size: float | None = None

    def __post_init__(self) -> None:
        _check_question(self.mode, self.batch_size)
        n_terms = len(TERMS[self.mode])
        if len(self.theta) != n_terms:
            raise InputError(f"The {self.mode} form has {n_terms} coefficients, not {len(self.theta)}.")
        if not all(0 <= value < np.inf for value in self.theta) or not any(self.theta):
            raise InputError(f"Coefficients should be seconds, none below 0 and not all 0, not {self.theta}.")

    def steps_per_s(self, n_servers: ArrayLike, n_workers: ArrayLike) -> Floats:
        """Equation 4, element by element."""
        round_s = _terms(n_servers, n_workers, self.batch_size) @ np.array(self.theta)
        return _at_once(self.mode, n_workers) / round_s

    def time_to_steps_s(self, n_steps: ArrayLike, n_servers: ArrayLike, n_workers: ArrayLike) -> Floats:
        """Seconds for so many steps, of the whole job if synchronous and of all workers together if asynchronous."""
        return np.asarray(n_steps, dtype=float) / self.steps_per_s(n_servers, n_workers)


def paper_model(mode: Mode, *, batch_size: float | None = None) -> SpeedModel:
    """The paper's ResNet-50, as quoted. The quote gives no M, so a synchronous model needs one from you."""
    _check_question(mode, batch_size)
    return SpeedModel(mode=mode, theta=PAPER_THETA[mode], batch_size=batch_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """What Equation 4 is made of, from a forecast or a datasheet instead of a fit."""

    compute_s_per_sample: float  # forward and backward on one worker
    fixed_s: float  # of a worker's step, however small its batch: launches, host
    gradient_bytes: float  # of the whole model; as many bytes of weights come back
    server_bytes_per_s: float  # one server's link, one direction
    update_s: float  # for one server to apply one worker's gradient of the whole model
    worker_overhead_s: float = 0.0  # a step's seconds for each worker: connections, stragglers
    server_overhead_s: float = 0.0  # a step's seconds for each server: requests of every worker to every server

    def __post_init__(self) -> None:
        values = [float(getattr(self, name)) for name in self.__slots__]
        if not all(0 <= value < np.inf for value in values) or self.server_bytes_per_s == 0:
            raise InputError(f"No part of a step may be below 0, and the link needs a bandwidth above 0, not {self}.")


def from_parts(parts: StepParts, *, mode: Mode, batch_size: float) -> SpeedModel:
    """Coefficients that follow from the parts; `batch_size` is global if synchronous, one worker's if asynchronous.

    A worker computes M/w samples (synchronous) or its own m (asynchronous) and a fixed part. Each of p servers holds
    1/p of the model, and all w workers push to it at once: w (bytes/p) / link. The pull goes the other way but after
    the push, so the link counts twice. The server applies w gradients of 1/p of the model: w/p update. So the
    coefficient of w/p is 2 bytes / link + update. Overheads per worker and per server are taken as given.
    Nothing overlaps with compute. Asynchronous workers do not push all at once, so theirs is the slowest case.
    """
    exchange_s = 2 * parts.gradient_bytes / parts.server_bytes_per_s + parts.update_s
    overheads = (parts.worker_overhead_s, parts.server_overhead_s)
    if mode == "async":
        own_s = batch_size * parts.compute_s_per_sample + parts.fixed_s
        return SpeedModel(mode=mode, theta=(own_s, exchange_s, *overheads))
    theta = (parts.compute_s_per_sample, parts.fixed_s, exchange_s, *overheads)
    return SpeedModel(mode=mode, theta=theta, batch_size=batch_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedPoint:
    """A measured speed: steps a second as in Equation 4."""

    n_servers: int
    n_workers: int
    steps_per_s: float

    def __post_init__(self) -> None:
        _counts(self.n_servers, "servers")
        _counts(self.n_workers, "workers")
        if not 0 < self.steps_per_s < np.inf:
            raise InputError(
                f"A measured speed should be finite and above 0, not {self.steps_per_s:g} steps per second."
            )


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class SpeedFit:
    """A fitted model, how well it describes its points, and what the points cannot tell."""

    model: SpeedModel
    n_points: int
    mean_error_fraction: float  # of speed
    leave_one_out_error_fraction: float | None  # None: too few points to leave one out
    at_zero: tuple[str, ...]  # terms whose coefficient is 0
    covariance: Floats | None  # of theta; NaN for terms at 0; None without spare points or with confounded terms
    warnings: tuple[str, ...]

    @property
    def standard_errors(self) -> Floats | None:
        """Of each coefficient, in seconds."""
        return None if self.covariance is None else np.sqrt(np.diag(self.covariance))


def fit_speed(points: Sequence[SpeedPoint], *, mode: Mode, batch_size: float | None = None) -> SpeedFit:
    """Coefficients with the smallest squared relative error, by non-negative least squares.

    1/f (or w/f) is linear in theta. Each row is divided by its measured value, so that the residual is the relative
    error of the time, which for small errors is that of the speed: slow and fast points count alike.
    """
    _check_question(mode, batch_size)
    n_terms = len(TERMS[mode])
    if len(points) < n_terms:
        raise InputError(f"The {mode} form has {n_terms} coefficients and needs as many points, not {len(points)}.")
    rows = _relative_rows(points, mode, batch_size)
    theta = _solve(rows)
    spread = rows / np.linalg.norm(rows, axis=0)
    rank = int(np.linalg.matrix_rank(spread, tol=1e-8))
    warnings: tuple[str, ...] = ()
    if rank < n_terms:
        warnings = (
            f"These points determine only {rank} of {n_terms} terms: other coefficients fit equally well. Vary "
            "servers and workers independently.",
        )
    return SpeedFit(
        model=SpeedModel(mode=mode, theta=tuple(theta.tolist()), batch_size=batch_size),
        n_points=len(points),
        mean_error_fraction=float(np.abs(1 / (rows @ theta) - 1).mean()),
        leave_one_out_error_fraction=_leave_one_out(rows),
        at_zero=tuple(name for name, value in zip(TERMS[mode], theta, strict=True) if value == 0),
        covariance=_covariance(rows, theta) if rank == n_terms else None,
        warnings=warnings,
    )


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class SpeedCurve:
    """Speed over workers for one number of servers."""

    n_servers: int
    n_workers: Floats
    steps_per_s: Floats

    @property
    def fastest_n_workers(self) -> int:
        """The smallest of the given numbers of workers with the highest speed."""
        return int(self.n_workers[np.argmax(self.steps_per_s)])


def speed_curves(model: SpeedModel, n_workers: ArrayLike, n_servers: Sequence[int] = (2, 4)) -> tuple[SpeedCurve, ...]:
    """One curve for each number of servers."""
    workers = _counts(n_workers, "workers")
    return tuple(
        SpeedCurve(n_servers=p, n_workers=workers, steps_per_s=model.steps_per_s(p, workers)) for p in n_servers
    )


def speed_chart(curves: Sequence[SpeedCurve]) -> Chart:
    """The curves on one pair of axes."""
    series = tuple(
        Series(name=f"{each.n_servers} servers", x=each.n_workers.tolist(), y=each.steps_per_s.tolist())
        for each in curves
    )
    return Chart(
        title="Speed by workers and parameter servers", kind="line", series=series, x_label="workers", y_label="steps/s"
    )


def _check_question(mode: str, batch_size: float | None) -> None:
    if mode not in TERMS:
        raise InputError(f"Training is 'sync' or 'async', not '{mode}'.")
    if mode == "sync" and (batch_size is None or not 0 < batch_size < np.inf):
        raise InputError(f"The sync form needs the global batch size M, above 0, not {batch_size}.")
    if mode == "async" and batch_size is not None:
        raise InputError("The async form has no batch size: a worker's mini-batch is inside its first coefficient.")


def _counts(values: ArrayLike, what: str) -> Floats:
    checked = np.asarray(values, dtype=float)
    wrong = ~((checked >= 1) & (checked == np.floor(checked)) & np.isfinite(checked))
    if wrong.any():
        raise InputError(
            f"The number of {what} should be a whole number of at least 1, not {checked[wrong].ravel()[0]:g}."
        )
    return checked


def _terms(n_servers: ArrayLike, n_workers: ArrayLike, batch_size: float | None) -> Floats:
    """What theta multiplies, along the last axis; only the synchronous form has a batch."""
    p, w = np.broadcast_arrays(_counts(n_servers, "servers"), _counts(n_workers, "workers"))
    shared = [np.ones_like(p), w / p, w, p]
    return np.stack(shared if batch_size is None else [batch_size / w, *shared], axis=-1)


def _at_once(mode: Mode, n_workers: ArrayLike) -> Floats:
    """Steps done in one round: one together, or one each."""
    workers = np.asarray(n_workers, dtype=float)
    return workers if mode == "async" else np.ones_like(workers)


def _relative_rows(points: Sequence[SpeedPoint], mode: Mode, batch_size: float | None) -> Floats:
    """Rows whose product with theta is 1 where the model is right."""
    n_servers = [point.n_servers for point in points]
    n_workers = [point.n_workers for point in points]
    speeds = np.array([point.steps_per_s for point in points])
    round_s = _at_once(mode, n_workers) / speeds
    return _terms(n_servers, n_workers, batch_size) / round_s[:, None]


def _solve(rows: Floats) -> Floats:
    from scipy.optimize import nnls

    scale = np.linalg.norm(rows, axis=0)  # columns of like size: batch and counts differ by orders of magnitude
    return np.asarray(nnls(rows / scale, np.ones(len(rows)))[0]) / scale


def _leave_one_out(rows: Floats) -> float | None:
    """Mean relative error of speed at points that the fit did not see."""
    n_points, n_terms = rows.shape
    if n_points <= n_terms:
        return None
    predicted = [rows[held] @ _solve(np.delete(rows, held, axis=0)) for held in range(n_points)]
    return float(np.abs(1 / np.array(predicted) - 1).mean())


def _covariance(rows: Floats, theta: Floats) -> Floats | None:
    """The usual one of least squares, over the coefficients that are free to move both ways."""
    free = np.flatnonzero(theta > 0)
    n_spare = len(rows) - len(free)
    if n_spare <= 0:
        return None
    variance = float(((rows @ theta - 1) ** 2).sum()) / n_spare
    covariance = np.full((len(theta), len(theta)), np.nan)
    covariance[np.ix_(free, free)] = variance * np.linalg.inv(rows[:, free].T @ rows[:, free])
    return covariance
