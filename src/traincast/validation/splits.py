"""Which rows a fit must not see to be judged on them: all cards of a GPU, or all models of some families.

Stricter than the folds of `kernels.refit`, which calibrate intervals. There V100-SXM2-16GB and V100-PCIe-32GB are two
GPUs, and a family is one of image models only; here the V100 is one GPU, and BERT is one family in all sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.coefficients import Coefficients
from traincast.kernels.refit.block import Block
from traincast.trace.graph import Floats
from traincast.validation.errors import Rows

Kind = Literal["GPU", "family"]
N_FAMILY_SPLITS = 8

_FORM = re.compile(r"-(PCIe|SXM\d?|NVL|\d+GB)(?=-|$)")
_SAME_FAMILY = {
    "bert_large": "bert",
    "bert_base_squad": "bert",
    "bert_large_squad": "bert",
    "resnet50": "resnet",
    "gpt3_xl": "gpt3",
    "gpt3_27": "gpt3",
}


def gpu_of(device: str) -> str:
    """The GPU without memory size and form factor: the V100 of V100-SXM2-16GB."""
    return _FORM.sub("", device)


def family_of(name: str) -> str:
    """The family under one name in all sets."""
    return _SAME_FAMILY.get(name, name)


def units_of(tags: Mapping[str, NDArray[Any]], kind: Kind) -> NDArray[Any]:
    """For each row the GPU or family that is left out with it; rows of ops have no family."""
    column, unit_of = (tags["device"], gpu_of) if kind == "GPU" else (tags["family"], family_of)
    names, place = np.unique(column, return_inverse=True)
    return np.array([unit_of(str(name)) for name in names])[place]


@dataclass(frozen=True, slots=True)
class Split:
    """What one fit leaves out."""

    kind: Kind
    values: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"without {self.kind} {', '.join(self.values)}"

    def rows(self, block: Block) -> Rows:
        if self.kind == "family" and "family" not in block.tags:
            return np.zeros(block.n_rows, dtype=bool)
        return np.isin(units_of(block.tags, self.kind), self.values)


def splits_of(blocks: Iterable[Block]) -> list[Split]:
    """Each GPU by itself; families in a few splits, since there are a hundred."""
    listed = list(blocks)
    gpus = sorted({str(gpu) for block in listed for gpu in units_of(block.tags, "GPU")})
    families = sorted(
        {str(family) for block in listed if "family" in block.tags for family in units_of(block.tags, "family")}
    )
    by_family = [tuple(families[number::N_FAMILY_SPLITS]) for number in range(N_FAMILY_SPLITS)]
    return [Split("GPU", (gpu,)) for gpu in gpus] + [Split("family", names) for names in by_family if names]


def held_out(block: Block, splits: Sequence[Split], fits: Sequence[Coefficients], kind: Kind) -> Floats:
    """Every row predicted by the fit that did not see its GPU, or its family."""
    predicted = np.full(block.n_rows, np.nan)
    if kind == "family" and "family" not in block.tags:
        return predicted
    units = units_of(block.tags, kind)
    present = set(np.unique(units).tolist())
    for split, coefficients in zip(splits, fits, strict=True):
        if split.kind == kind and present.intersection(split.values):
            rows = np.isin(units, split.values)
            predicted[rows] = block.take(rows).predict(coefficients)
    return predicted
