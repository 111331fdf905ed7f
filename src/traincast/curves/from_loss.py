"""An accuracy that a run does not log, or hardly: its loss curve, mapped through the relation of the two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traincast.curves.curve import Curve
from traincast.curves.log_question import LogQuestion, best_of, curve_for
from traincast.curves.loss_relation import FEWEST_PAIRS, Relation, learn_relation, pairs_of
from traincast.curves.normal import normal_quantiles, spread_out
from traincast.curves.points import FEWEST
from traincast.errors import InputError
from traincast.logs.log import Log, Series
from traincast.logs.names import metric_of

Floats = NDArray[np.float64]

METRIC = "accuracy from loss"
_FEW = 8  # accuracies: so many are continued by themselves
_DENSER = 2.0  # times as many losses as accuracies: else the loss tells no more


@dataclass(frozen=True, eq=False, slots=True)
class MappedMembers:
    """Members of a loss curve, each with its own error of the relation."""

    curve: Curve
    relation: Relation
    slope_error: Floats
    error: Floats

    def values(self, steps: Floats) -> Floats:
        losses = self.curve.members.values(steps)
        return self.relation.accuracies(losses, self.slope_error[:, None], self.error[:, None])


@dataclass(frozen=True, eq=False, slots=True)
class LossRelation:
    """A loss, and how the accuracy of a split follows from it."""

    loss: Series
    relation: Relation
    split: str
    logged: Series | None = None  # the accuracies that the run itself has, if any

    @property
    def newest(self) -> float | None:
        """The last accuracy that was logged; None where the next one should have come since."""
        if self.logged is None or not len(self.logged):
            return None
        steps = self.logged.steps
        gap = float(np.median(np.diff(steps))) if len(steps) > 1 else 0.0
        return float(self.logged.values[-1]) if steps[-1] + gap >= self.loss.steps[-1] else None

    @property
    def series(self) -> Series:
        """The accuracies that were not logged."""
        return Series(
            name=f"accuracy from {self.loss.name}",
            metric=METRIC,
            split=self.split,
            steps=self.loss.steps,
            values=self.relation.accuracies(self.loss.values),
            epochs=self.loss.epochs,
            seconds=self.loss.seconds,
            kind=METRIC,
            divergence=self.loss.divergence,
        )

    def curve(self, log: Log, asked: LogQuestion) -> Curve:
        """The curve of the loss, mapped."""
        curve = curve_for(log, self.loss, asked)
        n_members = len(curve.weights)
        errors = (normal_quantiles(spread_out(n_members, math.sqrt(root))) for root in (3.0, 7.0))
        how = f"Accuracy from loss: the curve of '{self.loss.name}', through {self.relation}."
        return replace(
            curve,
            family=f"{curve.family}, {METRIC}",
            members=MappedMembers(curve, self.relation, *errors),
            is_rising=True,
            warnings=(how, *curve.warnings),
        )


def relation_for(log: Log, asked: LogQuestion) -> LossRelation | None:
    """Where an accuracy is asked for and siblings are given, or the log has too few; else None."""
    wanted = metric_of(asked.metric or "")
    if wanted is None or wanted.metric != "accuracy":
        return None
    split = asked.split or wanted.split
    logged = _accuracy(log, split)
    siblings = [(one, _accuracy(one, split)) for one in asked.relation_from]
    for one, found in siblings:
        if found is None:
            raise InputError(f"'{one.path}' has no accuracy, so it does not show how accuracy follows from loss.")
    if split is None:
        split = next((found.split for found in (logged, *(found for _, found in siblings)) if found), None)
    loss = _loss([log, *asked.relation_from], split)
    if loss is None and siblings:
        raise InputError(
            f"'{log.path}' and the logs of the relation, {', '.join(repr(one.path) for one, _ in siblings)}, have no "
            f"loss of one split with {FEWEST} points or more, so no accuracy can be derived from it."
        )
    if loss is None or not (siblings or _is_sparse(logged, loss)):
        return None
    own = None if logged is None else pairs_of(loss, logged)
    if not siblings and (own is None or len(own) < FEWEST_PAIRS):
        return None
    others = [pairs_of(one.find("loss", loss.split), found) for one, found in siblings if found is not None]
    seen = loss.values[loss.steps >= 0.5 * (loss.steps[0] + loss.steps[-1])]
    is_same_data = loss.split == (split or loss.split)
    relation = learn_relation(own, others, below=float(np.quantile(seen, 0.9)), is_same_data=is_same_data)
    return LossRelation(loss, relation, split or loss.split, logged)


def _accuracy(log: Log, split: str | None) -> Series | None:
    if not any(one.metric == "accuracy" and split in (None, one.split) for one in log.series):
        return None
    return best_of(log, "accuracy", split)


def _loss(logs: Sequence[Log], split: str | None) -> Series | None:
    """Of the first log, such as all have: of training, or else of the accuracy's own split.

    A validation loss may rise while the accuracy still does, when errors are few but sure of themselves.
    """
    for wanted in ("train", split):
        if all(
            any((one.metric, one.split) == ("loss", wanted) and len(one) >= FEWEST for one in log.series)
            for log in logs
        ):
            return logs[0].find("loss", wanted)
    return None


def _is_sparse(accuracy: Series | None, loss: Series) -> bool:
    n_logged = 0 if accuracy is None else len(accuracy)
    return FEWEST_PAIRS <= n_logged < _FEW and len(loss) >= _DENSER * n_logged and bool(loss.values.min() > 0)
