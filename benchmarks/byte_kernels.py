"""How well kernels that move bytes are predicted on a GPU that the fit has not seen: norms, losses, rotary and such.

    PYTHONPATH=src python benchmarks/byte_kernels.py ../shared/data

Only the coefficients that these kernels alone use are fitted; all others are the shipped ones, or their priors where
nothing is shipped yet. The baseline is bytes over bandwidth, times one constant a family and direction.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.coefficients import NAMES, PRIORS, Coefficients
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.modern.byte_blocks import byte_blocks

_OWN = (
    *("norm_row_clocks", "norm_row_clocks.backward", "label_wait_s"),
    *("element_clocks", "passes.softmax_huge", "passes.rms_norm", "passes.rms_norm_backward"),
    *("passes.layer_norm", "passes.layer_norm_backward", "passes.embedding", "passes.embedding_backward"),
    *(name for name in NAMES if name.startswith(("passes.tuned", "passes.compiled"))),
)
_SCALE = 0.1

Rows = NDArray[np.bool_]


def start() -> Coefficients:
    """Shipped values, priors where there are none."""
    stored = json.loads((files("traincast") / "data" / "kernels" / "coefficients.json").read_text())["values"]
    return Coefficients({name: float(stored.get(name, PRIORS[name].mean)) for name in NAMES})


def fit_own(block: Block) -> Coefficients:
    """Each family on each device in each direction counts alike, and each prior as one of them."""
    from scipy.optimize import least_squares

    known = start().values
    tags = block.tags
    keys = np.array([" ".join(key) for key in zip(tags["family"], tags["device"], tags["direction"], strict=True)])
    weight = 1.0 / np.sqrt(np.array([(keys == key).sum() for key in keys]))

    def errors(point: NDArray[np.float64]) -> NDArray[np.float64]:
        off = np.log(block.predict(_with(known, point)) / block.observed_s)
        robust = np.sign(off) * _SCALE * np.sqrt(2.0 * (np.sqrt(1.0 + (off / _SCALE) ** 2) - 1.0))
        prior = [_SCALE * (x - PRIORS[name].mean) / PRIORS[name].sd for name, x in zip(_OWN, point, strict=True)]
        return np.concatenate([weight * robust, prior])

    return _with(known, least_squares(errors, [PRIORS[name].mean for name in _OWN], diff_step=1e-4).x)


def _with(known: dict[str, float], point: NDArray[np.float64]) -> Coefficients:
    return Coefficients(known | dict(zip(_OWN, (float(x) for x in point), strict=True)))


def held_out(block: Block, predict: Callable[[Block, Block], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Logarithms of predicted over observed; each GPU by what the others say."""
    off = np.full(block.n_rows, np.nan)
    for device in np.unique(block.tags["device"]):
        rows = block.tags["device"] == device
        if not rows.all():
            asked = block.take(rows)
            off[rows] = np.log(predict(block.take(~rows), asked) / asked.observed_s)
    return off


def fitted(seen: Block, asked: Block) -> NDArray[np.float64]:
    return asked.predict(fit_own(seen))


def constants(seen: Block, asked: Block) -> NDArray[np.float64]:
    """Not a number where no other GPU has the family."""
    predicted = np.full(asked.n_rows, np.nan)
    for family, direction in {*zip(asked.tags["family"], asked.tags["direction"], strict=True)}:
        ours = (asked.tags["family"] == family) & (asked.tags["direction"] == direction)
        theirs = (seen.tags["family"] == family) & (seen.tags["direction"] == direction)
        if theirs.any():
            factor = np.median(seen.observed_s[theirs] / seen.tags["least_s"][theirs])
            predicted[ours] = factor * asked.tags["least_s"][ours]
    return predicted


def show(block: Block) -> None:
    ours, baseline = held_out(block, fitted), held_out(block, constants)
    coefficients = fit_own(block)
    for name in _OWN:
        if abs(coefficients[name] - PRIORS[name].mean) > 1e-6:  # others have no row here
            print(f"  {name:32s} {np.exp(coefficients[name]):.4g} (prior {np.exp(PRIORS[name].mean):.4g})")
    print(f"\n{block.name}: each GPU left out\n{'':34s}     n  median   mean   bias | baseline median   mean   bias")
    compared = np.isfinite(baseline)
    for family in np.unique(block.tags["family"]):
        for device in np.unique(block.tags["device"]):
            chosen = (block.tags["family"] == family) & (block.tags["device"] == device) & compared
            _line(f"{family}, {device}", ours[chosen], baseline[chosen])
        _line(f"{family}, all", *(each[(block.tags["family"] == family) & compared] for each in (ours, baseline)))
    _line("all that another GPU has", ours[compared], baseline[compared])
    _line("no other GPU has it", ours[~compared], baseline[~compared])


def _line(name: str, ours: NDArray[np.float64], baseline: NDArray[np.float64]) -> None:
    if len(ours):
        print(f"{name:34s} {len(ours):5d}  {_figures(ours)} | {'':8s} {_figures(baseline)}")


def _figures(off: NDArray[np.float64]) -> str:
    apart = np.abs(np.expm1(off))
    return f"{np.median(apart):6.1%} {np.mean(apart):6.1%} {np.expm1(np.median(off)):+6.1%}"


if __name__ == "__main__":
    for each in byte_blocks(Path(sys.argv[1])):
        show(each)
