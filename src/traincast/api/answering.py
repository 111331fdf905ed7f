"""The whole answer for a choice, or for several: forecasts with energy, CO2 and the way to a target; job files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.options.question import question
from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.convergence.logs.log import Log
    from traincast.convergence.watching import Status
    from traincast.forecasting.forecast import Forecast
    from traincast.hardware.grid import Grid
    from traincast.planning.answer import Answer
    from traincast.trace.trace import Trace


@question
def answer(
    forecast: Forecast,
    *,
    region: str | None = None,
    grid_g_per_kwh: float | None = None,
    pue: float = 1.0,
    curve: Log | str | Path | None = None,
    target: float | None = None,
    metric: str | None = None,
) -> Answer:
    """What follows from a forecast: energy, CO2, the way to a target, seconds by bound, assumptions.

    `region` is a country or a cloud's region; without it and without `grid_g_per_kwh`, that of the machine's price
    counts. `pue` is what the site draws for each joule of its devices. `curve` is the log of an earlier run of the same
    model and data, `target` what its `metric` is to reach.
    """
    (found,) = _answers([forecast], _grid_asked(region, grid_g_per_kwh), pue, _status(curve, target, metric))
    return found


@question
def answers(
    model: str | Path | Trace,
    on: Sequence[str],
    batch_sizes: Sequence[int],
    *,
    model_options: dict[str, Any] | None = None,
    region: str | None = None,
    grid_g_per_kwh: float | None = None,
    pue: float = 1.0,
    curve: Log | str | Path | None = None,
    target: float | None = None,
    metric: str | None = None,
    **options: Any,
) -> tuple[Answer, ...]:
    """Whole answers at several places and batch sizes; `options` are those of `forecast`."""
    from traincast.api.forecasts import forecast_many
    from traincast.api.models import load_model

    grid, status = _grid_asked(region, grid_g_per_kwh), _status(curve, target, metric)
    trace = load_model(model, **(model_options or {}))
    return _answers(forecast_many(trace, list(on), list(batch_sizes), **options).forecasts(), grid, pue, status)


@question
def answer_job(path: str | Path) -> tuple[Answer, ...]:
    """The answers to a job file, one a place and batch size that it names."""
    from traincast.planning.job import read_job

    return answers(**read_job(path).options(Path(path).parent))


def _answers(forecasts: Sequence[Forecast], grid: Grid | None, pue: float, status: Status | None) -> tuple[Answer, ...]:
    from traincast.planning.answer import Answer
    from traincast.planning.energy import energy_of

    return tuple(
        Answer(
            forecast=forecast,
            energy=energy_of(forecast, grid=grid or _grid_of(forecast), pue=pue),
            to_target=_to_target(forecast, status),
        )
        for forecast in forecasts
    )


def _to_target(forecast: Forecast, status: Status | None) -> Any:
    if status is None:
        return None
    from traincast.planning.to_target import time_to_target

    return time_to_target(forecast, status)


def _grid_asked(region: str | None, g_per_kwh: float | None) -> Grid | None:
    from traincast.hardware.grid import Grid, find_grid

    if region is not None and g_per_kwh is not None:
        raise InputError("A region and a figure of your own are two answers to one question: give one of them.")
    if g_per_kwh is not None:
        return Grid(name="your own", g_per_kwh=g_per_kwh)
    return None if region is None else find_grid(region)


def _grid_of(forecast: Forecast) -> Grid | None:
    """That of the region that the machine's price is of, where the table of grids has it."""
    from traincast.hardware.grid import grid_named

    cluster = forecast.question.cluster
    return None if cluster is None or not cluster.region else grid_named(cluster.region)


def _status(curve: Log | str | Path | None, target: float | None, metric: str | None) -> Status | None:
    if curve is None:
        if target is not None or metric is not None:
            raise InputError("A target needs a curve: the log of an earlier run of the same model and data.")
        return None
    if target is None:
        raise InputError("A curve needs a target: the loss or accuracy that is good enough.")
    from traincast.api.converging import converge

    return converge(curve, metric=metric, target=target)
