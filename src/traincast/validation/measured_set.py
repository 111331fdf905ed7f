"""One measured set: what was observed, and what each method says about the same rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.trace.graph import Floats
from traincast.validation.errors import ErrorSummary, Rows, groups_of, summarise

OURS = "traincast"
_NEARLY_ALL = 0.9


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Prediction:
    """Seconds that one method gives every row; not a number where it has no answer.

    `left_out` says what the fit behind a row had not seen: "GPU" or "family" of that row, "set" (no row of the set),
    "row" (others of its GPU), "nothing" (it saw the row itself), or "-" for a method that is not fitted at all.
    """

    method: str
    left_out: str
    seconds: Floats
    log_sd: Floats | None = None

    def take(self, rows: Rows) -> Prediction:
        return replace(self, seconds=self.seconds[rows], log_sd=None if self.log_sd is None else self.log_sd[rows])


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MeasuredSet:
    """Rows of one kind. The first prediction of a method is the one that it is judged by."""

    name: str
    observed_s: Floats
    tags: dict[str, NDArray[Any]]
    predictions: tuple[Prediction, ...]
    noise: str = ""  # how far the measurements themselves can be trusted

    def __post_init__(self) -> None:
        lengths = {len(self.observed_s), *map(len, self.tags.values()), *(len(p.seconds) for p in self.predictions)}
        if len(lengths) > 1:
            raise InputError(f"Set '{self.name}' has columns of different lengths: {sorted(lengths)}.")

    @property
    def n_rows(self) -> int:
        return len(self.observed_s)

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(prediction.method for prediction in self.predictions))

    def prediction(self, method: str = OURS, left_out: str | None = None) -> Prediction:
        for prediction in self.predictions:
            if prediction.method == method and left_out in (None, prediction.left_out):
                return prediction
        known = ", ".join(f"{p.method} ({p.left_out})" for p in self.predictions)
        raise InputError(f"Set '{self.name}' has no predictions of '{method}'; it has {known}.")

    def summary(self, prediction: Prediction | None = None, rows: Rows | None = None) -> ErrorSummary:
        """Errors of all rows or some, by default of our own method."""
        chosen = prediction or self.prediction()
        if rows is None:
            rows = np.ones(self.n_rows, dtype=bool)
        log_sd = None if chosen.log_sd is None else chosen.log_sd[rows]
        return summarise(chosen.seconds[rows], self.observed_s[rows], log_sd)

    def summaries_by(self, *tags: str, prediction: Prediction | None = None) -> dict[tuple[str, ...], ErrorSummary]:
        return {key: self.summary(prediction, rows) for key, rows in groups_of(self.tags, tags).items()}

    def take(self, rows: Rows, *, name: str | None = None) -> MeasuredSet:
        return replace(
            self,
            name=name or self.name,
            observed_s=self.observed_s[rows],
            tags={key: values[rows] for key, values in self.tags.items()},
            predictions=tuple(prediction.take(rows) for prediction in self.predictions),
        )

    def take_methods(self, is_wanted: Callable[[str], bool]) -> MeasuredSet:
        """The same rows with the predictions of some methods."""
        return replace(self, predictions=tuple(p for p in self.predictions if is_wanted(p.method)))

    @property
    def best_baseline(self) -> Prediction | None:
        """The other method with the least median error among those that answer nine of ten rows.

        Published predictions were fitted on these very GPUs, so they count as rivals, not as simple baselines; a fit
        that saw the rows themselves is neither.
        """
        rivals = (OURS, "published")
        others = [p for p in self.predictions if not p.method.startswith(rivals) and p.left_out != "nothing"]
        full = [p for p in others if np.isfinite(p.seconds).mean() >= _NEARLY_ALL]
        return min(full, key=lambda p: self.summary(p).median_absolute_fraction, default=None)
