"""What a bare number that is good enough is of, where a log has a loss and an accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traincast.logs.log import Log

_ONE = 1.0001  # fractions go up to 1, with what rounding adds


@dataclass(frozen=True, slots=True)
class Aim:
    """A metric, None for the log's own, and a word where it was not the user who chose it among several."""

    metric: str | None = None
    told: tuple[str, ...] = ()


NO_AIM = Aim()


def metrics_of(log: Log) -> list[str]:
    """Metrics that a target can have."""
    return sorted({series.metric for series in log.series})


def aim_of(log: Log, target: float | None, metric: str | None) -> Aim:
    """The metric that was asked for; else the accuracy, unless the target makes more sense as a loss.

    An accuracy below all that were logged is nothing to aim at. Above 1 beside fractions it is in percent, unless the
    loss has been as high.
    """
    accuracies, losses = (
        [value for series in log.series if series.metric == name for value in series.values]
        for name in ("accuracy", "loss")
    )
    if metric is not None or target is None or not accuracies:
        return Aim(metric)
    if not losses:
        return Aim("accuracy")
    is_accuracy = _is_accuracy(target, accuracies, highest_loss=max(losses))
    found, other = ("accuracy", "loss") if is_accuracy else ("loss", "accuracy")
    return Aim(found, (f"'{log.path}' has both: the target {target:g} is read as the {found}, not the {other}.",))


def _is_accuracy(target: float, accuracies: list[float], *, highest_loss: float) -> bool:
    are_fractions = max(accuracies) <= _ONE
    if not 0 < target <= 100 or (are_fractions and 1 < target <= highest_loss):
        return False
    as_fraction = target if target <= 1 else target / 100
    return as_fraction >= min(accuracies) / (1 if are_fractions else 100)
