"""Whether p10 to p90 holds what it promises, by how near the fit came: the same GPU, its generation, a new one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lab.accuracy.modern.left_out import Evidence, LeftOut
from traincast.kernels.coefficients import NEW_GENERATION, SAME_GENERATION, SAME_GPU
from traincast.kernels.refit.block import Block
from traincast.lognormal import p90_factor
from traincast.trace.graph import Floats
from traincast.validation.errors import ErrorSummary, Rows, summarise
from traincast.validation.intervals import situations
from traincast.validation.splits import has_units, units_of

# What leaves a GPU known: another source or family. Without a GPU, others of its generation may be left.
_KINDS: tuple[LeftOut, ...] = ("source", "family", "GPU", "generation")
FEWEST = 30  # rows of a set that is shown by itself
LEAST_INSIDE, MOST_INSIDE = 0.60, 0.95  # of p10 to p90: what is aimed at for each set, 75 to 85 % being that for all


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """One set in one situation, and the share inside of each unit (source, GPU, generation) that was left out."""

    situation: str
    left_out: str
    name: str
    summary: ErrorSummary
    width: float  # p90 over p10, the median
    shares: tuple[float, ...]

    @property
    def is_kept(self) -> bool:
        """Whether the share inside is one that a set of its own may have."""
        share = self.summary.coverage_fraction
        return share is None or LEAST_INSIDE <= share <= MOST_INSIDE


def coverages_of(blocks: Sequence[Block], evidence: Evidence) -> list[Coverage]:
    """Of whole steps; lone kernels have a spread of their own, which no situation changes."""
    steps = [block for block in blocks if block.n_dispatched is not None]
    found = [each for kind in _KINDS for block in steps for each in _of_block(block, evidence, kind)]
    order = (SAME_GPU, SAME_GENERATION, NEW_GENERATION)
    return sorted(found, key=lambda each: order.index(each.situation))


def _of_block(block: Block, evidence: Evidence, kind: LeftOut) -> Iterator[Coverage]:
    if kind == "nothing" or not has_units(block, kind):
        return
    predicted_s, log_sd = evidence.seconds(block, kind), evidence.log_sd(block, kind)
    where = np.array(situations(block, evidence.fitted, kind))
    # Families are many and small: a set of them counts once.
    units = np.full(block.n_rows, block.name) if kind == "family" else units_of(block.tags, kind)
    for situation in np.unique(where).tolist():
        rows = (where == situation) & np.isfinite(predicted_s)
        if not rows.any():
            continue
        inside = [
            _summary(block, predicted_s, log_sd, rows & (units == unit)).coverage_fraction
            for unit in np.unique(units[rows]).tolist()
        ]
        yield Coverage(
            situation=situation,
            left_out=kind,
            name=block.name,
            summary=_summary(block, predicted_s, log_sd, rows),
            width=p90_factor(float(np.median(log_sd[rows]))) ** 2,
            shares=tuple(share for share in inside if share is not None),
        )


def _summary(block: Block, predicted_s: Floats, log_sd: Floats, rows: Rows) -> ErrorSummary:
    return summarise(predicted_s[rows], block.observed_s[rows], log_sd[rows])


def averages(found: Sequence[Coverage]) -> dict[str, tuple[float, int]]:
    """By situation the mean share over everything that was left out, each counting once, and how many those were."""
    shares: dict[str, list[float]] = {}
    for each in found:
        shares.setdefault(each.situation, []).extend(each.shares)
    return {situation: (float(np.mean(values)), len(values)) for situation, values in shares.items()}
