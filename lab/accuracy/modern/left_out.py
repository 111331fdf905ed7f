"""What is said about rows of today's GPUs by fits that saw nothing of their source, GPU, generation or family.

A case is some rows that are judged together. Its line of the table has the errors, how sure the forecasts were, and
what one constant reaches on the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lab.accuracy.modern.carried import Constant, best_constants
from traincast.kernels.coefficients import Coefficients, Fitted
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.modern.kernel_files import lone_log_sd
from traincast.lognormal import P90_SDS
from traincast.trace.graph import Floats
from traincast.validation.errors import ErrorSummary, summarise
from traincast.validation.intervals import log_sd_of
from traincast.validation.splits import Kind, Split, held_out

LeftOut = Literal["GPU", "family", "generation", "source", "nothing"]


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """Fits without each split: by the shortcut, and refitted where that was worth minutes."""

    fitted: Fitted
    splits: tuple[Split, ...]
    fits: tuple[Coefficients, ...]
    refits: Mapping[Split, Coefficients] = field(default_factory=dict)

    def seconds(self, block: Block, left_out: LeftOut) -> Floats:
        """Of every row, by the fit that did not see it; not a number where there is none.

        The splits by family hold all that was fitted: a family in none of them is one that the shipped fit never saw.
        """
        if left_out == "nothing":
            return block.predict(self.fitted.coefficients)
        seconds = held_out(block, self.splits, self.fits, left_out)
        if left_out == "family" and np.isfinite(seconds).any():
            return np.where(np.isfinite(seconds), seconds, block.predict(self.fitted.coefficients))
        return seconds

    def refitted_seconds(self, block: Block, left_out: Kind) -> Floats:
        """The same by refits; not a number where none was made."""
        return held_out(block, tuple(self.refits), tuple(self.refits.values()), left_out)

    def log_sd(self, block: Block, left_out: LeftOut) -> Floats:
        """What a forecast says of itself where it has seen no more than that fit."""
        if block.n_dispatched is None:
            return lone_log_sd(block, self.fitted)
        return log_sd_of(block, self.fitted, left_out)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Case:
    """Rows that are judged together. `kin` are other rows of their kind, which a constant can be carried over from."""

    what: str
    blocks: tuple[Block, ...]
    left_out: LeftOut
    told: str = ""  # what was left out, in words; the kind where that says it
    kin: tuple[Block, ...] = ()
    noise: str = "-"
    limits: Mapping[str, float] = field(default_factory=dict)  # figures of the summary and their most; none: reported

    @property
    def n_rows(self) -> int:
        return sum(block.n_rows for block in self.blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A case as the table shows it."""

    what: str
    left_out: str
    summary: ErrorSummary
    width: float  # p90 over p10, median
    noise: str
    in_sample: Constant | None
    carried: Constant | None
    limits: Mapping[str, float]
    refitted_fraction: float | None  # median error by refits; None where there is none for all rows

    @property
    def median_fraction(self) -> float:
        """By refits where they were made: the shortcut forgets less than all."""
        usual = self.summary.median_absolute_fraction
        return usual if self.refitted_fraction is None else max(usual, self.refitted_fraction)

    @property
    def is_met(self) -> bool | None:
        """None: reported, because nothing was promised or no fit answers. The worse of both fits counts."""
        if not self.limits or not self.summary.n:
            return None
        reached = {"median": self.median_fraction, "mean": self.summary.mean_absolute_fraction}
        return all(reached[name] <= limit for name, limit in self.limits.items())


def lines_of(cases: Iterable[Case], evidence: Evidence) -> list[Line]:
    """Cases without rows have no line."""
    return [line_of(case, evidence) for case in cases if case.n_rows]


def line_of(case: Case, evidence: Evidence) -> Line:
    predicted_s, observed_s, log_sd = columns_of(case, evidence)
    in_sample, carried = best_constants(case.blocks, case.kin, case.left_out)
    return Line(
        what=case.what,
        left_out=case.told or case.left_out,
        summary=summarise(predicted_s, observed_s, log_sd),
        width=float(np.median(np.exp(2 * P90_SDS * log_sd))),
        noise=case.noise,
        in_sample=in_sample,
        carried=carried,
        limits=case.limits,
        refitted_fraction=_refitted(case, evidence, observed_s),
    )


def columns_of(case: Case, evidence: Evidence) -> tuple[Floats, Floats, Floats]:
    """Forecast, measured, and the spread of the forecast."""
    return (
        _joined([evidence.seconds(block, case.left_out) for block in case.blocks]),
        _joined([block.observed_s for block in case.blocks]),
        _joined([evidence.log_sd(block, case.left_out) for block in case.blocks]),
    )


def _refitted(case: Case, evidence: Evidence, observed_s: Floats) -> float | None:
    if case.left_out == "nothing" or not evidence.refits:
        return None
    seconds = _joined([evidence.refitted_seconds(block, case.left_out) for block in case.blocks])
    if not np.isfinite(seconds).all():
        return None
    return summarise(seconds, observed_s).median_absolute_fraction


def _joined(parts: Sequence[Floats]) -> Floats:
    return np.concatenate(list(parts))
