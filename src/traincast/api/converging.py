"""Where a run will end: its log, the curve through it, its pace, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from traincast.errors import InputError, ParameterError, quoted
from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from traincast.curves.curve import Curve
    from traincast.curves.log_question import LogQuestion
    from traincast.curves.status.at_batch import AtBatch
    from traincast.curves.status.status import Status
    from traincast.forecasting.forecast import Forecast
    from traincast.logs.log import Log
    from traincast.logs.reading import Reading

_S_PER_H = 3600.0


@question
def fit_curve(
    steps: ArrayLike,
    losses: ArrayLike,
    family: o.CurveFamily = "auto",
    *,
    total_steps: o.TotalSteps = None,
    learning_rate: o.Rates = None,
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
    from traincast.curves.fit import continue_like, kind_of
    from traincast.curves.fit import fit_curve as fit

    kind = None if metric is None else kind_of(metric)
    if not like:
        return fit(steps, losses, family, total_steps=total_steps, learning_rate=learning_rate, metric=kind)
    if family != "auto" or learning_rate is not None:
        raise InputError(
            "A run that is continued like other runs takes no family and no learning rate: leave them out."
        )
    return continue_like(steps, losses, like, total_steps=total_steps, metric=kind)


@question
def converge(
    log: Log | str | Path,
    *,
    step: o.StepTime = None,
    batch_to: o.BatchTo = None,
    noise_scale: o.NoiseScale = None,
    batch_size: o.LoggedBatch = None,
    reading: Mapping[str, Any] | None = None,
    **options: Unpack[o.CurveOptions],
) -> Status:
    """Continues a series of a log: the metric that is named, else the validation loss, else the training loss.

    The length of the run is `total_steps`, or `n_epochs` of the log's steps, or what the log says. The pace is that of
    the log's clock, unless `step` gives a forecast, or seconds. `usd_per_hour` is for all devices together. `like` are
    logs of earlier whole runs of the same kind: the run is continued as they went. `reading` are options of `read_log`.

    An accuracy that the log lacks, or has less than eight times, is told from its loss: by the pairs of both that it
    has and by those of the runs in `relation_from` (logs, or files with one run or several). Where a log counts epochs
    and nothing else, steps are epochs.

    `batch_to`, with the `noise_scale` of the gradient, asks when the target is reached at that batch size (`at_batch`
    of the answer); `batch_size` is the run's own, where its log does not say it.
    """
    from traincast.api.logs import read_log, reading_of
    from traincast.curves.status.at_batch import at_batch as at_other_batch
    from traincast.curves.status.status import status_of
    from traincast.logs.log import Log

    _check_batches(batch_to, noise_scale, batch_size)
    how = {"metric": options["metric"], **_reading(reading)}
    known = log if isinstance(log, Log) else read_log(log, **how)
    run, _ = how.pop("run", None), how.pop("on_progress", None)
    own = asked_of(options, log, reading_of(**how), run)
    step_s, step_log_sd, usd = _expected(step, options["usd_per_hour"], known)
    asked = replace(own, step_s=step_s, step_log_sd=step_log_sd, usd_per_hour=usd, prefers_clock=step is None)
    _check_answerable(known, asked)
    found = status_of(known, asked)
    if batch_to is None or noise_scale is None:
        return found
    return replace(found, at_batch=at_other_batch(found, batch_to, noise_scale=noise_scale, own_batch_size=batch_size))


@question
def at_batch(
    status: Status, batch_size: float, *, noise_scale: float | None = None, own_batch_size: float | None = None
) -> AtBatch:
    """When a run reaches its target at another batch size, with a learning rate that follows Pollux' law.

    `status` is an answer of `converge` with a target, `noise_scale` that of the gradient in samples (by
    default as in MLPerf's reference runs, with a wide interval), `own_batch_size` that of the run where its log does
    not say it.
    """
    from traincast.curves.status.at_batch import at_batch as at_other_batch

    return at_other_batch(status, batch_size, noise_scale=noise_scale, own_batch_size=own_batch_size)


def asked_of(options: Mapping[str, Any], log: Log | str | Path, reading: Reading, run: str | None) -> LogQuestion:
    """What is asked of a log, with the logs of the other runs that it names."""
    from traincast.curves.log_question import LogQuestion

    of_curve = {name: options[name] for name in o.CurveOptions.__annotations__}
    for name in ("like", "relation_from"):
        of_curve[name] = _other_logs(options[name], log, reading, run)
    return LogQuestion(**of_curve)


def _other_logs(
    some: Sequence[Log | str | Path], log: Log | str | Path, reading: Reading, run: str | None
) -> tuple[Log, ...]:
    """All runs of these files, but not the one that is asked about."""
    return tuple(one for other in some for one in _others(other, log, reading, run))


def _others(other: Log | str | Path, log: Log | str | Path, reading: Reading, run: str | None) -> list[Log]:
    from traincast.logs import argument_checks
    from traincast.logs.log import Log
    from traincast.logs.reading import read_runs

    if isinstance(other, Log):
        return [other]
    file = argument_checks.path("A log", other)
    runs = read_runs(file, reading)
    is_same = not isinstance(log, Log) and file.resolve() == Path(log).resolve()
    found = [runs.log(name) for name in runs.sheets if not (is_same and name == (run or ""))]
    if not found:
        raise InputError(f"'{file}' is the run to forecast: name the logs of other runs.")
    return found


def _check_batches(batch_to: float | None, noise_scale: float | None, batch_size: float | None) -> None:
    if batch_to is None and noise_scale is not None:
        raise ParameterError("noise_scale", noise_scale, "give a batch size to compare with, too")
    if batch_to is None and batch_size is not None:
        raise ParameterError("batch_size", batch_size, "give a batch size to compare with, too")
    if batch_to is not None and noise_scale is None:
        raise ParameterError("batch_to", batch_to, "give a noise scale, too")


def _check_answerable(log: Log, asked: LogQuestion) -> None:
    """What a run that is watched may still write is told here: too few points, and the steps of an epoch."""
    from traincast.curves.from_loss import relation_for
    from traincast.curves.log_question import length_for, of_points, series_for
    from traincast.curves.points import FEWEST, clean
    from traincast.logs.counting import count
    from traincast.report.input_files import naming

    if relation_for(log, asked) is None:
        series = series_for(log, asked)
        if series.divergence is not None and len(series) < FEWEST:
            since = f"{log.unit} {count(series.divergence.first_step, log.unit)}"
            raise InputError(
                f"'{series.name}' of '{log.path}' is not finite since {since}: it diverged before the {FEWEST} "
                "points that a curve needs."
            )
        if len(series) < FEWEST:
            raise InputError(f"'{log.path}' has {of_points(series)}, and a curve needs at least {FEWEST}.")
        with naming(log.path):
            clean(series.steps, series.values)
    if asked.n_epochs is not None and length_for(log, asked) is None:
        raise InputError(
            f"'{log.path}' counts steps and does not give the steps per epoch: give the length in steps, or the "
            "steps per epoch."
        )


def _reading(reading: Mapping[str, Any] | None) -> dict[str, Any]:
    """How the log is to be read: options of `read_log`."""
    import inspect

    from traincast.api.logs import read_log

    known = [name for name in inspect.signature(read_log).parameters if name != "path"]
    if reading is not None and not set(reading) <= set(known):
        raise InputError(f"reading= should have options of read_log ({', '.join(known)}), not {quoted(reading)}.")
    return dict(reading or {})


def _expected(
    step: Forecast | float | None, usd_per_hour: float | None, log: Log
) -> tuple[float | None, float, float | None]:
    """Seconds of what the log counts, steps or epochs, how sure they are, and the price of an hour."""
    from traincast.lognormal import log_sd_of

    if step is None or isinstance(step, int | float):
        return step, 0.0, usd_per_hour
    what = "epoch_s" if log.counts_epochs else "step_s"
    expected_s = getattr(step, what)
    if expected_s is None:
        raise InputError(f"'{log.path}' counts epochs, but the forecast has no time per epoch: give it n_samples.")
    low, high = step.interval(what)
    if usd_per_hour is None and step.cost_usd and step.total_s:
        usd_per_hour = _S_PER_H * step.cost_usd / step.total_s
    return expected_s, log_sd_of(low, high), usd_per_hour
