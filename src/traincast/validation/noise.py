"""How far the measurements themselves can be trusted: no method can be better than that."""

from __future__ import annotations

import numpy as np

from traincast.kernels.refit.block import Block
from traincast.kernels.work import Work
from traincast.trace.graph import Floats, Ints

_NEUSIGHT = (
    "sums of the measured ops of these models miss the measured whole by 7 % (inference) and 7.5 % (training), because "
    "memory is allocated inside the timings"
)
_FASTEST = "mean of the fastest 3 to 5 of 25 calls"
_BY_ROW = (Work.SOFTMAX, Work.SOFTMAX_LONG, Work.LAYER_NORM)


def noise_of(block: Block) -> str:
    """One sentence, from the rows where they say it."""
    if block.name.startswith("timm"):
        return _timm(block)
    if block.name.startswith("transformers"):
        return _NEUSIGHT
    if block.name.startswith("nvidia"):
        return _nvidia(block)
    return _repeats(block)


def _timm(block: Block) -> str:
    """Two clocks on one run: seconds a step, and samples a second, which has zero_grad in it."""
    other_s = block.tags["batch"].astype(float) / block.tags["samples_per_s"].astype(float)
    apart = np.abs(other_s / block.observed_s - 1.0)
    return (
        f"one run a row; its two clocks, with and without zero_grad, differ by {_percent(np.median(apart))} (median) "
        f"and {_percent(np.quantile(apart, 0.95))} (95 of 100 rows)"
    )


def _nvidia(block: Block) -> str:
    spread = np.array([float(value or "nan") for value in block.tags["spread"]])
    known = spread[np.isfinite(spread)]
    if not len(known):
        return f"no row was measured twice (n = {block.n_rows})"
    return (
        f"{len(known)} of {block.n_rows} rows are means of several runs, whose extremes differ by "
        f"{_percent(np.median(known))} (median) and {_percent(known.max())} (largest)"
    )


def _repeats(block: Block) -> str:
    """Lone ops: some sizes were drawn twice on one device. Softmax and layer norm do not keep rows and columns."""
    if np.isin(block.kernels.work, _BY_ROW).any():
        return _FASTEST
    sizes = [block.kernels.sizes[name] for name in ("b", "m", "n", "k", "bytes")]
    keys = np.stack([np.unique(block.tags["device"], return_inverse=True)[1].astype(float), *sizes], axis=1)
    keys = np.column_stack([keys, np.unique(block.tags["op"], return_inverse=True)[1]])
    _, group, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    apart = _differences(group.ravel(), np.log(block.observed_s), count)
    if not len(apart):
        return f"{_FASTEST}; no size was measured twice"
    return (
        f"{_FASTEST}; {len(apart):,} sizes were measured more than once on one device, and their times differ by "
        f"{_percent(np.median(apart))} (median) and {_percent(np.quantile(apart, 0.9))} (9 of 10)"
    )


def _differences(group: Ints, logs: Floats, count: Ints) -> Floats:
    """Largest less smallest logarithm of every group of two and more."""
    low, high = np.full(len(count), np.inf), np.full(len(count), -np.inf)
    np.minimum.at(low, group, logs)
    np.maximum.at(high, group, logs)
    return np.expm1((high - low)[count > 1])


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %"
