"""What is asked of a log, and what of it answers that: the series, the length of the run, its learning rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.curves.curve import Curve
from traincast.curves.fit import Kind, continue_like, fit_curve
from traincast.curves.points import FEWEST
from traincast.curves.schedule import LearningRate, read_schedule
from traincast.errors import InputError
from traincast.logs import argument_checks
from traincast.logs.counting import count, counted
from traincast.logs.log import Log, Series, check_split
from traincast.logs.names import has_top, is_known, is_loss, metric_of

_DEAREST_USD = 1e9
_SAME_LENGTH = 0.02  # lengths that differ by less are the same: the last batch of an epoch may be left out


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuestion:
    """A question about a run. What is None is taken from its log, or not asked.

    Public functions have checked their arguments one by one; of those of callbacks this is the only check.
    """

    metric: str | None = None
    split: str | None = None
    target: float | None = None
    total_steps: float | None = None
    n_epochs: float | None = None
    learning_rate: LearningRate | None = None
    family: str = "auto"
    step_s: float | None = None  # expected: a forecast
    step_log_sd: float = 0.0  # how sure that is
    prefers_clock: bool = True  # the log's, to what was expected
    usd_per_hour: float | None = None  # of all devices together
    like: tuple[Log, ...] = ()  # earlier whole runs of the same kind
    relation_from: tuple[Log, ...] = ()  # runs that tell how accuracy follows from loss

    def __post_init__(self) -> None:
        usd, target = self.usd_per_hour, self.target
        if usd is not None and not 0 <= argument_checks.number("usd_per_hour", usd) <= _DEAREST_USD:
            raise InputError(f"usd_per_hour should be from 0 to {_DEAREST_USD:g}, not {usd:g}.")
        if target is not None and not np.isfinite(argument_checks.number("target", target)):
            raise InputError(f"target should be a finite number, not {target}.")
        if self.metric is not None:
            argument_checks.word("metric", self.metric)
        if self.split is not None:
            check_split(self.split)
        if isinstance(self.learning_rate, str):
            read_schedule(self.learning_rate, np.ones(1), 1.0)  # words that mean none are refused before a log is there
        if self.like and (self.learning_rate is not None or self.family != "auto"):
            raise InputError(
                "A run that is continued like other runs takes no family and no learning rate: leave them out."
            )
        wanted = metric_of(self.metric or "")
        if self.relation_from and (wanted is None or wanted.metric != "accuracy"):
            other = "no metric" if self.metric is None else f"'{self.metric}'"
            raise InputError(
                f"The logs of relation_from derive an accuracy from a loss, but {other} is requested: use the "
                "metric accuracy."
            )
        if self.family == "optimus" and self.learning_rate is not None:
            raise InputError("Optimus' law has no learning rate: leave it out, or use the family auto.")


def series_for(log: Log, asked: LogQuestion) -> Series:
    """What was asked for, by default a loss: of validation, which says most, then of training, then what there is."""
    return best_of(log, _metric_for(log, asked), asked.split)


def _metric_for(log: Log, asked: LogQuestion) -> str:
    """Where a loss is written in parts and not as a whole, the first of them stands for it."""
    parts = _parts_of_loss(log, asked)
    if parts:
        return parts[0]
    own = [one.metric for one in log.series if asked.split in (None, one.split)]
    return asked.metric or ("loss" if "loss" in own or not own else own[0])


def _parts_of_loss(log: Log, asked: LogQuestion) -> list[str]:
    """Detectors log a loss of boxes and one of classes: these, where a loss is asked for and there is no whole one."""
    own = [one.metric for one in log.series if asked.split in (None, one.split)]
    if (asked.metric or "loss").strip().lower() != "loss" or "loss" in own:
        return []
    parts = dict.fromkeys(metric for metric in own if is_loss(metric))
    return sorted(parts, key=lambda metric: not _is_validated(log, metric))


def best_of(log: Log, metric: str, split: str | None) -> Series:
    """Validation before training, as soon as there is enough of it for a curve."""
    return log.find(metric, "validation" if split is None and _is_validated(log, metric) else split)


def _is_validated(log: Log, metric: str) -> bool:
    return any(one.split == "validation" and len(one) >= FEWEST for one in log.matching(metric))


def target_for(series: Series, target: float) -> tuple[float, tuple[str, ...]]:
    """The target in the unit of the series, and a word where that is another: 92 beside accuracies up to 1 is 0.92."""
    highest = float(series.values.max(initial=0.0))
    if not has_top(series.metric) or highest > 100.01:
        return target, ()
    if not 0 <= target <= 100:
        raise InputError(
            f"'{series.name}' goes from 0 to 1, or to 100 in percent: a target of {target:g} is outside that range."
        )
    factor = 0.01 if highest <= 1.0001 and target > 1 else 100.0 if highest > 1.0001 and 0 < target < 1 else 1.0
    if factor == 1.0:
        return target, ()
    meant = target * factor
    unit = "percent" if factor < 1 else "a fraction"
    return meant, (f"The target {target:g} is read as {unit}: {meant:g} in the unit of '{series.name}'.",)


def about(log: Log, series: Series, asked: LogQuestion) -> tuple[str, ...]:
    """What is taken for granted: which of several metrics and losses is meant, and which way a metric is better."""
    told = []
    if (
        asked.target is not None
        and asked.metric is None
        and series.metric != "accuracy"
        and _may_be_accuracy(log, asked.target)
    ):
        told.append(
            f"The target {asked.target:g} is read as one of '{series.name}': for an accuracy, name that metric."
        )
    parts = _parts_of_loss(log, asked)
    if len(parts) > 1:
        others = ", ".join(parts[1:])
        told.append(f"The loss is logged in parts: '{series.name}' is shown; other metrics: {others}.")
    if not is_known(series.metric):
        told.append(f"'{series.metric}' is assumed to be better when lower.")
    return tuple(told)


def _may_be_accuracy(log: Log, target: float) -> bool:
    """A fraction may; above 1 a number in percent that was not reached yet: 92, but not a loss of 1.7."""
    found = [float(one.values.max(initial=0.0)) for one in log.series if one.metric == "accuracy"]
    return bool(found) and (0 <= target <= 1 or 100 * max(found) < target <= 100)


def length_for(log: Log, asked: LogQuestion) -> float | None:
    """Steps of the whole run, or epochs where the log counts these; None while nobody knows what an epoch has.

    A run that has gone on beyond what was said is as long as its log.
    """
    said = _said_length(log, asked)
    return None if said is None else max(said, log.last_step)


def about_length(log: Log, asked: LogQuestion) -> tuple[str, ...]:
    """A word where the log is longer than it should be."""
    said = _said_length(log, asked)
    if said is None or log.last_step <= said + 1:  # steps may count from 0 or from 1
        return ()
    end, length = count(log.last_step, log.unit), counted(said, log.unit)
    return (f"The log goes on to {log.unit} {end}, beyond the length of {length}: the run is assumed to end there.",)


def _said_length(log: Log, asked: LogQuestion) -> float | None:
    steps_per_epoch = 1.0 if log.counts_epochs else log.steps_per_epoch
    if asked.total_steps is not None:
        if asked.n_epochs is not None and steps_per_epoch:
            check_same_length(asked.total_steps, asked.n_epochs, steps_per_epoch, log.unit)
        return float(asked.total_steps)
    if asked.n_epochs is None and log.total_steps is not None:
        return float(log.total_steps)
    n_epochs = asked.n_epochs if asked.n_epochs is not None else log.n_epochs
    if n_epochs is None or not steps_per_epoch:
        return None
    return argument_checks.above_0("The length of the run in steps", n_epochs * steps_per_epoch)


def check_same_length(total_steps: float, n_epochs: float, steps_per_epoch: float, unit: str) -> None:
    """A length in steps beside one in epochs: the same, but for an epoch that is not whole."""
    product = n_epochs * steps_per_epoch
    if abs(total_steps - product) <= max(_SAME_LENGTH * product, 1.0):
        return
    each = "" if unit == "epoch" else f" of {counted(steps_per_epoch, unit)} ({counted(product, unit)} in all)"
    raise InputError(
        f"A total of {counted(total_steps, unit)} and {counted(n_epochs, 'epoch')}{each} contradict each other: "
        "give only one of them."
    )


def about_like(log: Log, asked: LogQuestion) -> tuple[str, ...]:
    """A word while a run cannot be laid over others: its length is in epochs, and nobody knows what one has."""
    if not asked.like or asked.n_epochs is None or length_for(log, asked) is not None:
        return ()
    return ("The number of steps per epoch is not known yet: once it is, the run is continued like the others.",)


def curve_for(log: Log, series: Series, asked: LogQuestion) -> Curve:
    """The series continued, with the rates that are given, or that the log has."""
    end, kind = length_for(log, asked), _kind(series)
    if asked.like:
        earlier = [_whole(other, series) for other in asked.like]
        like = [(one.steps, one.values) for one in earlier]
        return continue_like(series.steps, series.values, like, total_steps=end, metric=kind)
    rates = _rates(log, series, asked, end) if asked.family != "optimus" else None
    return fit_curve(series.steps, series.values, asked.family, total_steps=end, learning_rate=rates, metric=kind)


def of_points(series: Series) -> str:
    """How many, in words."""
    return f"{len(series)} finite point{'' if len(series) == 1 else 's'} of '{series.name}'"


def _whole(other: Log, series: Series) -> Series:
    """What another run has of the same kind."""
    found = other.find(series.metric, series.split)
    if len(found) < FEWEST:
        raise InputError(f"'{other.path}' has {of_points(found)}, but a run to compare with needs at least {FEWEST}.")
    return found


def _kind(series: Series) -> Kind:
    if not series.is_rising:
        return "loss"
    is_in_range = series.values.min() >= 0.0 and series.values.max() <= 100.0
    return "accuracy" if has_top(series.metric) and is_in_range else "reward"


def _rates(log: Log, series: Series, asked: LogQuestion, end: float | None) -> LearningRate | None:
    """What is given; where that needs a length in epochs whose steps are not known yet, what was logged until then."""
    given = asked.learning_rate
    needs_end = isinstance(given, str) and given.strip().lower().startswith(("linear", "cosine"))
    is_early = needs_end and end is None and asked.n_epochs is not None
    return _logged_rates(log, series) if given is None or is_early else given


def _logged_rates(log: Log, series: Series) -> LearningRate | None:
    """At the steps of the series; None while they say nothing, as at the start of a warm-up from 0."""
    rates = log.learning_rate
    if rates is None or len(rates) < 2 or not rates.values.max() > 0 or rates.values.min() < 0:
        return None
    return np.interp(series.steps, rates.steps, rates.values)
