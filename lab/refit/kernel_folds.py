"""Which rows are left out together: all of a GPU, or all models of some families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.hardware.catalog import find_device
from traincast.kernels.coefficients import Coefficients
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.fit import Problem, as_point, fit_without
from traincast.kernels.refit.processes import at_once
from traincast.trace.graph import Floats

_N_FAMILY_FOLDS = 8
_N_STEPS = 5  # a whole generation moves the fit further than one GPU does


@dataclass(frozen=True, eq=False)
class Fold:
    """A name, and what makes a row part of it."""

    name: str
    tag: str  # "device", "family" or "source"
    values: tuple[str, ...]

    def rows(self, block: Block) -> NDArray[np.bool_]:
        if self.tag not in block.tags or (self.tag == "family" and not block.name.startswith("timm")):
            return np.zeros(block.n_rows, dtype=bool)
        return np.isin(block.tags[self.tag], self.values)


def device_folds(blocks: Sequence[Block]) -> list[Fold]:
    names = sorted({str(name) for block in blocks for name in block.tags["device"]})
    return [Fold(f"without {name}", "device", (name,)) for name in names]


def generation_folds(blocks: Sequence[Block]) -> list[Fold]:
    """All GPUs of a chip generation together: what a new generation gets."""
    devices = sorted({str(name) for block in blocks for name in block.tags["device"]})
    generations = sorted({find_device(name).arch for name in devices})
    return [
        Fold(f"without {arch}", "device", tuple(name for name in devices if find_device(name).arch == arch))
        for arch in generations
    ]


def source_folds(blocks: Sequence[Block]) -> list[Fold]:
    """Whole sources of language-model runs: what another team's stack gets on a GPU that was measured."""
    names = sorted({str(name) for b in blocks if b.name.startswith("language") for name in b.tags["source"]})
    return [Fold(f"without {name}", "source", (name,)) for name in names]


def family_folds(blocks: Sequence[Block]) -> list[Fold]:
    """Families of image models in a few folds, so that no model is predicted by a fit that saw its family."""
    names = sorted({str(name) for b in blocks if b.name.startswith("timm") for name in b.tags["family"]})
    return [
        Fold(f"without families {number}", "family", tuple(names[number::_N_FAMILY_FOLDS]))
        for number in range(_N_FAMILY_FOLDS)
    ]


def fit_folds(problem: Problem, fitted: Coefficients, folds: Sequence[Fold]) -> list[Coefficients]:
    """The fit without each fold."""
    jacobian = problem.jacobian(as_point(fitted))

    def without(fold: Fold) -> Coefficients:
        left_out = [fold.rows(block) for block in problem.blocks]
        return fit_without(problem, fitted, jacobian, left_out, n_steps=_N_STEPS)

    return at_once(without, folds, problem.n_processes)


def held_out(block: Block, folds: Sequence[Fold], fits: Sequence[Coefficients]) -> Floats:
    """Every row predicted by the fit that did not see it; rows of no fold are not a number."""
    predicted = np.full(block.n_rows, np.nan)
    for fold, coefficients in zip(folds, fits, strict=True):
        rows = fold.rows(block)
        if rows.any():
            predicted[rows] = block.take(rows).predict(coefficients)
    return predicted
