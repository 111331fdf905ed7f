"""The best that one constant does on the same rows: fitted on them, and carried over from other rows of their kind.

The constant scales the roofline, the sum of flop and bytes (two constants), or, for steps of language models, the time
of the model's flop at the peak (a constant MFU).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traincast.hardware.catalog import find_device
from traincast.kernels.refit.block import Block
from traincast.trace.graph import Floats
from traincast.validation.baselines import (
    Fit,
    ideal_seconds,
    left_out_fits,
    scaled_fit,
    summed,
    two_rates_fit,
    with_floor,
    without_floor,
)
from traincast.validation.errors import Rows, summarise
from traincast.validation.splits import Kind, has_units, units_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """What it scales, and its median and mean errors."""

    name: str
    median_fraction: float
    mean_fraction: float


def best_constants(
    blocks: Sequence[Block], kin: Sequence[Block], left_out: str
) -> tuple[Constant | None, Constant | None]:
    """In sample, then carried over: each the one with the least median error. None where nothing can be carried."""
    joined = [*blocks, *kin]
    own = np.concatenate([np.full(block.n_rows, number < len(blocks)) for number, block in enumerate(joined)])
    in_sample = [_error(name, joined, fit(own), own) for name, fit in _fits(joined)]
    carried = []
    if left_out != "nothing" and all(has_units(block, _kind(left_out)) for block in joined):
        units = np.concatenate([units_of(block.tags, _kind(left_out)) for block in joined])
        everything = np.ones(len(own), dtype=bool)
        carried = [_error(name, joined, left_out_fits(units, everything, fit), own) for name, fit in _fits(joined)]
    return _best(in_sample), _best(carried)


def _kind(left_out: str) -> Kind:
    return left_out  # type: ignore[return-value]


def _best(found: Sequence[Constant]) -> Constant | None:
    known = [each for each in found if np.isfinite(each.median_fraction)]
    return min(known, key=lambda each: each.median_fraction, default=None)


def _fits(blocks: Sequence[Block]) -> Iterator[tuple[str, Fit]]:
    """By name, over the rows of all blocks."""
    bare_s = _over(blocks, without_floor)
    ideal = [ideal_seconds(block) for block in blocks]
    parts = [[summed(block, part) for part in both] for block, both in zip(blocks, ideal, strict=True)]
    roofline = [summed(block, np.maximum(*both)) for block, both in zip(blocks, ideal, strict=True)]
    yield "roofline", scaled_fit(np.concatenate(roofline), bare_s)
    compute_s, memory_s = (np.concatenate([part[number] for part in parts]) for number in (0, 1))
    yield "flop + bytes", two_rates_fit(compute_s, memory_s, bare_s)
    if all("model_flop" in block.tags for block in blocks):
        yield "MFU", scaled_fit(_over(blocks, _at_the_peak_s), bare_s)


def _over(blocks: Sequence[Block], column: Callable[[Block], Floats]) -> Floats:
    return np.concatenate([column(block) for block in blocks])


def _at_the_peak_s(block: Block) -> Floats:
    peaks = {name: find_device(name).peak_flop_per_s("bf16") for name in block.devices}
    seconds: Floats = block.tags["model_flop"] / np.array([peaks[str(name)] for name in block.tags["device"]])
    return seconds


def _error(name: str, blocks: Sequence[Block], seconds: Floats, own: Rows) -> Constant:
    """Of the own rows, with what a call adds."""
    ends = np.cumsum([block.n_rows for block in blocks])[:-1]
    parts = [with_floor(block, some) for block, some in zip(blocks, np.split(seconds, ends), strict=True)]
    summary = summarise(np.concatenate(parts)[own], _over(blocks, lambda block: block.observed_s)[own])
    return Constant(
        name=name,
        median_fraction=summary.median_absolute_fraction if not summary.n_unanswered else np.nan,
        mean_fraction=summary.mean_absolute_fraction,
    )
