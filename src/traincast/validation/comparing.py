"""How wrong are we, and how wrong are others: the question of `traincast compare`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.options import measure as o
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.validation.measured_set import MeasuredSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """What was measured, what each method said, and what the errors are broken down by."""

    sets: tuple[MeasuredSet, ...]
    by: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        from traincast.validation.document import data_of

        return data_of(self.sets, by=self.by)


@question
def compare(
    data: o.PublicData,
    *,
    traces: o.TracesFolder = None,
    sets: o.SetNames = None,
    methods: o.MethodNames = None,
    by: o.BrokenDownBy = None,
) -> Accuracy:
    """Errors of every method on every measured set; names are checked before the minutes that this takes."""
    from traincast.kernels.refit.folders import USUAL_TRACES
    from traincast.validation.document import check_names, choose
    from traincast.validation.score import score_all

    check_names(sets or [], methods or [])
    scored = score_all(Path(data), USUAL_TRACES if traces is None else Path(traces))
    return Accuracy(sets=tuple(choose(scored.sets, sets or [], methods or [])), by=by)
