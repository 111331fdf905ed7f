"""Whether the shortcut is honest: fits without a split by a few steps from the full fit, beside real refits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traincast.kernels.coefficients import Coefficients
from traincast.kernels.refit.block import Block
from traincast.trace.graph import Floats
from traincast.validation.fits import load_real_fits
from traincast.validation.score import Scored
from traincast.validation.splits import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Median absolute errors of the left-out rows of one set, by either fit."""

    split: str
    set_name: str
    n: int
    shortcut_fraction: float
    real_fraction: float

    @property
    def optimism_fraction(self) -> float:
        """How much better the shortcut makes us look."""
        return self.real_fraction - self.shortcut_fraction


def compare_with_refits(scored: Scored, splits: Sequence[Split], folder: Path) -> Iterator[Difference]:
    """Takes minutes a split, unless it is kept in the folder."""
    for split, real in zip(splits, load_real_fits(scored.problem, splits, folder), strict=True):
        shortcut = scored.fits[scored.splits.index(split)]
        for block in scored.blocks.all:
            rows = split.rows(block)
            if "is_floor" in block.tags:
                rows = rows & ~block.tags["is_floor"]
            if rows.any():
                yield _difference(split, block.take(rows), shortcut, real)


def _difference(split: Split, block: Block, shortcut: Coefficients, real: Coefficients) -> Difference:
    return Difference(
        split=f"without {split.values[0]}" if split.kind == "GPU" else f"without {len(split.values)} families",
        set_name=block.name,
        n=block.n_rows,
        shortcut_fraction=_median_error(block, block.predict(shortcut)),
        real_fraction=_median_error(block, block.predict(real)),
    )


def _median_error(block: Block, predicted_s: Floats) -> float:
    return float(np.median(np.abs(predicted_s / block.observed_s - 1.0)))
