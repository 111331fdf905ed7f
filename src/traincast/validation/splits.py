"""Which rows a fit must not see to be judged on them: all cards of a GPU, all models of some families, all GPUs of a
chip generation, or all that one source measured.

Stricter than the folds of `kernels.refit`, which calibrate intervals. There V100-SXM2-16GB and V100-PCIe-32GB are two
GPUs, and a family is one of image models only; here the V100 is one GPU, and BERT is one family in all sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from traincast.hardware.catalog import find_device
from traincast.kernels.coefficients import Coefficients
from traincast.kernels.refit.block import Block
from traincast.trace.graph import Floats
from traincast.validation.errors import Rows

Kind = Literal["GPU", "family", "generation", "source"]
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


def generation_of(device: str) -> str:
    """The chip generation: Hopper of the H100, the H200 and the rest."""
    return find_device(device).arch


# By kind the tag that tells it, and what makes a unit of its values.
_UNITS: dict[Kind, tuple[str, Callable[[str], str]]] = {
    "GPU": ("device", gpu_of),
    "family": ("family", family_of),
    "generation": ("device", generation_of),
    "source": ("source", str),
}


def has_units(block: Block, kind: Kind) -> bool:
    """Families are of whole models, not of lone kernels; the older sets name no source."""
    return _UNITS[kind][0] in block.tags and (kind != "family" or block.n_dispatched is not None)


def units_of(tags: Mapping[str, NDArray[Any]], kind: Kind) -> NDArray[Any]:
    """For each row the GPU, family, generation or source that is left out with it."""
    tag, unit_of = _UNITS[kind]
    names, place = np.unique(tags[tag], return_inverse=True)
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
        if not has_units(block, self.kind):
            return np.zeros(block.n_rows, dtype=bool)
        return np.isin(units_of(block.tags, self.kind), self.values)


def splits_of(blocks: Iterable[Block]) -> list[Split]:
    """Each GPU by itself; families in a few splits, since there are a hundred."""
    listed = list(blocks)
    gpus = sorted({str(gpu) for block in listed for gpu in units_of(block.tags, "GPU")})
    families = sorted(
        {str(family) for block in listed if has_units(block, "family") for family in units_of(block.tags, "family")}
    )
    by_family = [tuple(families[number::N_FAMILY_SPLITS]) for number in range(N_FAMILY_SPLITS)]
    return [Split("GPU", (gpu,)) for gpu in gpus] + [Split("family", names) for names in by_family if names]


def wide_splits_of(blocks: Iterable[Block]) -> list[Split]:
    """Each chip generation whole, and each source of measurements whole."""
    listed = list(blocks)
    kinds: tuple[Kind, Kind] = ("generation", "source")
    return [
        Split(kind, (unit,))
        for kind in kinds
        for unit in sorted({str(u) for b in listed if has_units(b, kind) for u in units_of(b.tags, kind)})
    ]


def held_out(block: Block, splits: Sequence[Split], fits: Sequence[Coefficients], kind: Kind) -> Floats:
    """Every row predicted by the fit that did not see its GPU, family, generation or source."""
    predicted = np.full(block.n_rows, np.nan)
    if not has_units(block, kind):
        return predicted
    units = units_of(block.tags, kind)
    present = set(np.unique(units).tolist())
    for split, coefficients in zip(splits, fits, strict=True):
        if split.kind == kind and present.intersection(split.values):
            rows = np.isin(units, split.values)
            predicted[rows] = block.take(rows).predict(coefficients)
    return predicted
