"""Where a run will end: its log, the curve through it, its pace, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from traincast.convergence.curves.curve import Curve
    from traincast.convergence.curves.schedule import LearningRate
    from traincast.convergence.logs.log import Log
    from traincast.convergence.logs.reading import Reading
    from traincast.convergence.watching import Status
    from traincast.forecasting.forecast import Forecast

_S_PER_H = 3600.0


def fit_curve(
    steps: ArrayLike,
    losses: ArrayLike,
    family: str = "auto",
    *,
    total_steps: float | None = None,
    learning_rate: LearningRate | None = None,
    metric: str | None = None,
    like: Sequence[tuple[ArrayLike, ArrayLike]] = (),
) -> Curve:
    """A law through logged losses, or accuracies: `predict`, `interval`, `steps_to`, `interval_to`, `warnings`.

    `family` is "auto" (power laws that know what a falling learning rate does) or "optimus" (1/(b0 k + b1) + b2).
    `learning_rate` is a function of the step, {step: rate from it on}, one rate a logged value, one a step, one that
    stays, or words ("cosine", "0.1,0.01@32000"). `metric` is what the values are by name: "loss", "accuracy", "f1",
    "reward". `like` are steps and values of earlier whole runs of the same kind: the run is continued as they went,
    without a family or a learning rate.
    """
    from traincast.convergence.curves.fit import continue_like, kind_of
    from traincast.convergence.curves.fit import fit_curve as fit

    kind = None if metric is None else kind_of(metric)
    if not like:
        return fit(steps, losses, family, total_steps=total_steps, learning_rate=learning_rate, metric=kind)
    if family != "auto" or learning_rate is not None:
        raise InputError("A run that is continued as others went has no family and no learning rate: leave them out.")
    return continue_like(steps, losses, like, total_steps=total_steps, metric=kind)


def converge(
    log: Log | str | Path,
    *,
    metric: str | None = None,
    split: str | None = None,
    target: float | None = None,
    family: str = "auto",
    total_steps: float | None = None,
    n_epochs: float | None = None,
    learning_rate: LearningRate | None = None,
    step: Forecast | float | None = None,
    usd_per_hour: float | None = None,
    like: Sequence[Log | str | Path] = (),
    relation_from: Sequence[Log | str | Path] = (),
    reading: Mapping[str, Any] | None = None,
) -> Status:
    """Continues a series of a log: the metric that is named, else the validation loss, else the training loss.

    The length of the run is `total_steps`, or `n_epochs` of the log's steps, or what the log says. The pace is that of
    the log's clock, unless `step` gives a forecast, or seconds. `usd_per_hour` is of all devices together. `like` are
    logs of earlier whole runs of the same kind: the run is continued as they went.

    An accuracy that the log lacks, or has less than eight times, is told from its loss: by the pairs of both that it
    has and by those of the runs in `relation_from` (logs, or files with one run or several). Where a log counts epochs
    and nothing else, steps are epochs.
    """
    from traincast.api.logs import read_log
    from traincast.convergence.asked import Asked, length_for, series_for
    from traincast.convergence.counting import count
    from traincast.convergence.curves.points import FEWEST, clean
    from traincast.convergence.from_loss import relation_for
    from traincast.convergence.logs.log import Log
    from traincast.convergence.logs.reading import Reading
    from traincast.convergence.watching import status_of

    how = {"metric": metric, **_reading(reading)}
    known = log if isinstance(log, Log) else read_log(log, **how)
    run, _ = how.pop("run", None), how.pop("on_progress", None)
    siblings, others = (other_logs(some, log, Reading(**how), run) for some in (like, relation_from))
    step_s, step_log_sd, usd = _expected(step, usd_per_hour, known)
    asked = Asked(
        metric=metric,
        split=split,
        target=target,
        total_steps=total_steps,
        n_epochs=n_epochs,
        learning_rate=learning_rate,
        family=family,
        step_s=step_s,
        step_log_sd=step_log_sd,
        prefers_clock=step is None,
        usd_per_hour=usd,
        like=siblings,
        relation_from=others,
    )
    # What a run that is watched may still write is told here: too few points, and the steps of an epoch.
    if relation_for(known, asked) is None:
        series = series_for(known, asked)
        if series.divergence is not None and len(series) < FEWEST:
            since = f"{known.unit} {count(series.divergence.first_step, known.unit)}"
            raise InputError(
                f"'{series.name}' of '{known.path}' is not finite since {since}: it diverged before there were the "
                f"{FEWEST} points that a curve needs."
            )
        clean(series.steps, series.values)
    if n_epochs is not None and length_for(known, asked) is None:
        raise InputError(
            f"'{known.path}' counts steps and does not say how many an epoch has: give the length in steps, or the "
            "steps of an epoch."
        )
    return status_of(known, asked)


def other_logs(
    some: Sequence[Log | str | Path], log: Log | str | Path, reading: Reading, run: str | None
) -> tuple[Log, ...]:
    """All runs of these files, but not the one that is asked about."""
    from traincast.convergence.given import several

    return tuple(one for other in several("The logs of other runs", some) for one in _others(other, log, reading, run))


def _others(other: Log | str | Path, log: Log | str | Path, reading: Reading, run: str | None) -> list[Log]:
    from traincast.convergence import given
    from traincast.convergence.logs.log import Log
    from traincast.convergence.logs.reading import read_runs

    if isinstance(other, Log):
        return [other]
    file = given.path("A log", other)
    runs = read_runs(file, reading)
    is_same = not isinstance(log, Log) and file.resolve() == Path(log).resolve()
    found = [runs.log(name) for name in runs.sheets if not (is_same and name == (run or ""))]
    if not found:
        raise InputError(f"'{file}' is the run that is asked about: name the logs of other runs.")
    return found


def _reading(reading: Mapping[str, Any] | None) -> dict[str, Any]:
    """How the log is to be read: options of `read_log`."""
    import inspect

    from traincast.api.logs import read_log

    known = [name for name in inspect.signature(read_log).parameters if name != "path"]
    if reading is not None and not (isinstance(reading, Mapping) and set(reading) <= set(known)):
        raise InputError(f"reading= should have options of read_log ({', '.join(known)}), not {reading!r}.")
    return dict(reading or {})


def _expected(
    step: Forecast | float | None, usd_per_hour: float | None, log: Log
) -> tuple[float | None, float, float | None]:
    """Seconds of what the log counts, steps or epochs, how sure they are, and the price of an hour."""
    from traincast.convergence.given import number
    from traincast.lognormal import log_sd_of

    if step is None:
        return None, 0.0, usd_per_hour
    if isinstance(step, int | float) or not hasattr(step, "step_s"):
        return number("The time of a step", step), 0.0, usd_per_hour
    what = "epoch_s" if log.counts_epochs else "step_s"
    expected_s = getattr(step, what)
    if expected_s is None:
        raise InputError(f"'{log.path}' counts epochs, and the forecast knows no time of one: give it n_samples.")
    low, high = step.interval(what)
    if usd_per_hour is None and step.cost_usd and step.total_s:
        usd_per_hour = _S_PER_H * step.cost_usd / step.total_s
    return expected_s, log_sd_of(low, high), usd_per_hour
