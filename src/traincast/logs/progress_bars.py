"""Progress bars that are drawn between the lines of a text log, as the Trainer of transformers does.

A bar without a metric on its line may count the steps of the run, those of each epoch, an evaluation, or the files of a
data set. Which one it is shows when metrics come: the run's bar goes on from one of them to the next, that of an epoch
begins again in between, and all others stand at their end.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace

import numpy as np

from traincast.logs.log import FloatArray
from traincast.logs.sheet import Sheet

_MOST_BARS = 64  # of different lengths: more are no bars


@dataclass(slots=True)
class _Bar:
    """How far a bar is now, how often it began again, and how far it was at each row of metrics."""

    place: float = 0.0
    n_begun: int = 0
    first_row: int = 0
    places: array[float] = field(default_factory=lambda: array("d"))

    def column(self, n_rows: int) -> FloatArray:
        found = np.full(n_rows, np.nan)
        found[self.first_row : self.first_row + len(self.places)] = self.places
        return found


class ProgressBars:
    """Bars by how far they go."""

    def __init__(self) -> None:
        self._bars: dict[float, _Bar] = {}
        self._n_rows = 0

    def draw(self, place: float, total: float) -> None:
        bar = self._bars.get(total)
        if bar is None:
            if len(self._bars) == _MOST_BARS:
                return
            bar = self._bars[total] = _Bar(first_row=self._n_rows)
        bar.n_begun += place < bar.place
        bar.place = place

    def add_row(self) -> None:
        """A row of metrics: all bars are where they are."""
        for bar in self._bars.values():
            bar.places.append(bar.place)
        self._n_rows += 1

    def numbered(self, sheet: Sheet) -> Sheet:
        """The rows with the steps of the run's bar, or of the epoch's, if there is one that tells them apart."""
        total = self.whole or self.in_epoch
        if total is None:
            return sheet
        return replace(sheet, columns={**sheet.columns, "step": self._bars[total].column(sheet.n_rows)})

    @property
    def whole(self) -> float | None:
        """The length of the run: of the bar that goes on most."""
        going = [total for total, bar in self._bars.items() if _goes_on(bar, total)]
        return max(going, key=lambda total: (len(set(self._bars[total].places)), total), default=None)

    @property
    def in_epoch(self) -> float | None:
        """The length of an epoch: of the longest bar that begins again. Those of evaluations are shorter."""
        again = [total for total, bar in self._bars.items() if bar.n_begun and bar.places]
        return None if self.whole is not None else max(again, default=None)


def _goes_on(bar: _Bar, total: float) -> bool:
    places = np.array(bar.places)
    if not len(places):
        return False
    n_back = int(np.count_nonzero(np.diff(places) < 0))
    if n_back or bar.n_begun:  # a run that was resumed goes back as well, but seldom
        return len(set(bar.places)) > 1 and max(n_back, bar.n_begun) <= len(places) // 20
    return len(set(bar.places)) > 1 or 0 < places[-1] < total
