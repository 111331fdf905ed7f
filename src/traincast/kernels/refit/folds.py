"""Which rows are left out together: all of a GPU, or all models of some families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.coefficients import Coefficients
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.fit import Problem, fit_without
from traincast.trace.graph import Floats

_N_FAMILY_FOLDS = 8


@dataclass(frozen=True, eq=False)
class Fold:
    """A name, and what makes a row part of it."""

    name: str
    tag: str  # "device" or "family"
    values: tuple[str, ...]

    def rows(self, block: Block) -> NDArray[np.bool_]:
        if self.tag not in block.tags or (self.tag == "family" and not block.name.startswith("timm")):
            return np.zeros(block.n_rows, dtype=bool)
        return np.isin(block.tags[self.tag], self.values)


def device_folds(blocks: Sequence[Block]) -> list[Fold]:
    names = sorted({str(name) for block in blocks for name in block.tags["device"]})
    return [Fold(f"without {name}", "device", (name,)) for name in names]


def family_folds(blocks: Sequence[Block]) -> list[Fold]:
    """Families of image models in a few folds, so that no model is predicted by a fit that saw its family."""
    names = sorted({str(name) for b in blocks if b.name.startswith("timm") for name in b.tags["family"]})
    return [
        Fold(f"without families {number}", "family", tuple(names[number::_N_FAMILY_FOLDS]))
        for number in range(_N_FAMILY_FOLDS)
    ]


def fit_folds(problem: Problem, fitted: Coefficients, folds: Sequence[Fold]) -> list[Coefficients]:
    """The fit without each fold."""
    point_jacobian = problem.jacobian(np.array([*fitted.values.values()]))
    return [
        fit_without(problem, fitted, point_jacobian, [fold.rows(block) for block in problem.blocks]) for fold in folds
    ]


def held_out(block: Block, folds: Sequence[Fold], fits: Sequence[Coefficients]) -> Floats:
    """Every row predicted by the fit that did not see it; rows of no fold are not a number."""
    predicted = np.full(block.n_rows, np.nan)
    for fold, coefficients in zip(folds, fits, strict=True):
        rows = fold.rows(block)
        if rows.any():
            predicted[rows] = block.take(rows).predict(coefficients)
    return predicted
