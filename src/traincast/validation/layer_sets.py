"""Layers timed alone as measured sets: every method with the machine's own host, the GPU left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traincast.kernels.coefficients import Coefficients, shipped
from traincast.kernels.layerwise.rows import DEVICES
from traincast.kernels.library_factors import Library, ShippedLibrary, shipped_library
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.layer_calls import LayerCalls
from traincast.kernels.refit.layer_fit import time_shares
from traincast.kernels.refit.layer_hosts import call_seconds, hosts_of, on_hosts
from traincast.trace.graph import Floats
from traincast.validation.baselines import (
    ideal_seconds,
    left_out_fits,
    paleo_fit,
    scaled_fit,
    summed,
    two_rates_fit,
)
from traincast.validation.errors import Rows
from traincast.validation.intervals import step_log_sd_of
from traincast.validation.layer_blocks import load_layer_blocks
from traincast.validation.measured_set import OURS, MeasuredSet, Prediction
from traincast.validation.splits import Split, gpu_of, units_of

NO_LIBRARY = "traincast, no library"  # without the factors that stand for TensorFlow's libraries

_LEAST_SHARE = 0.05  # of a time that a call cannot have taken


@dataclass(frozen=True, eq=False, slots=True)
class _OnHosts:
    """The calls of a block, each with the host of its machine."""

    layers: LayerCalls
    call_s: Floats
    dispatch_s: Floats

    @property
    def n_ops(self) -> Floats:
        return self.layers.n_ops

    def timeline_s(self, kernel_s: Floats) -> Floats:
        """Host and device, op by op."""
        return call_seconds(self.layers.op_seconds(kernel_s), self.n_ops, self.call_s, self.dispatch_s)

    def simply_s(self, device_s: Floats) -> Floats:
        """A call, then whichever of dispatch and device takes longer: for methods that have no timelines."""
        return self.call_s + np.maximum(self.n_ops * self.dispatch_s, device_s)

    @property
    def without_call_s(self) -> Floats:
        """What was measured, less the call; at least a little."""
        observed_s = self.layers.block.observed_s
        return np.maximum(observed_s - self.call_s, _LEAST_SHARE * observed_s)


def measured_layers(
    data: Path, folder: Path, splits: Sequence[Split], fits: Sequence[Coefficients]
) -> list[MeasuredSet]:
    """No fit of ours has seen a row that is scored here, nor, with the GPU left out, any other of that GPU."""
    return [measured_layer_set(layers, splits, fits) for layers in load_layer_blocks(data, folder)]


def measured_layer_set(layers: LayerCalls, splits: Sequence[Split], fits: Sequence[Coefficients]) -> MeasuredSet:
    block = layers.block
    unseen_s, known_s = _kernel_seconds(block, splits, fits), block.kernel_seconds(shipped().coefficients)
    unseen = _with_libraries(layers, unseen_s, _libraries(block, shipped_library()))
    known = _with_libraries(layers, known_s, [shipped_library().library] * block.n_rows)
    calls = _OnHosts(layers, *on_hosts(layers, hosts_of(layers, unseen.kernel_s)))
    # Our older self, with a host of its own: what the libraries' factors are worth.
    older = _OnHosts(layers, *on_hosts(layers, hosts_of(layers, unseen_s)))
    older_s = older.timeline_s(unseen_s)
    is_fitted_set = set(np.unique(block.tags["machine"]).tolist()) <= set(DEVICES)
    predictions = [
        _ours(calls, unseen, "GPU"),
        _ours(calls, known, "row" if is_fitted_set else "set"),
        Prediction(
            method=NO_LIBRARY,
            left_out="GPU",
            seconds=older_s,
            log_sd=step_log_sd_of(block, shipped(), older_s, "GPU"),
        ),
    ]
    predictions += _baselines(calls)
    predictions += [
        Prediction(method="layerwise", left_out="GPU", seconds=layers.extra["layerwise_s"]),
        Prediction(method="layerwise", left_out="nothing", seconds=layers.extra["layerwise_seen_s"]),
    ]
    tags = {key: block.tags[key] for key in ("device", "model", "part", "batch", "window")}
    tags |= {"precision": np.full(block.n_rows, "fp32"), "call_s": calls.call_s, "dispatch_s": calls.dispatch_s}
    whole = MeasuredSet(
        name=block.name,
        observed_s=block.observed_s,
        tags=tags,
        predictions=tuple(predictions),
        noise=_noise(block),
    )
    return whole.take(~block.tags["is_host"])


@dataclass(frozen=True, eq=False, slots=True)
class _Ours:
    """Seconds of every kernel, and for every row the deviations of the groups of its library."""

    kernel_s: Floats
    group_log_sd: Floats


def _ours(calls: _OnHosts, ours: _Ours, left_out: str) -> Prediction:
    seconds = calls.timeline_s(ours.kernel_s)
    shares = time_shares(calls.layers, ours.kernel_s, seconds)
    log_sd = np.sqrt((shares**2 * ours.group_log_sd**2).sum(axis=1))
    return Prediction(method=OURS, left_out=left_out, seconds=seconds, log_sd=log_sd)


def _libraries(block: Block, known: ShippedLibrary) -> list[Library]:
    """For every row the fit without its GPU, whatever the form factor; what no fit saw, the shipped one did not see."""
    by_gpu = {gpu_of(device): library for device, library in known.without.items()}
    return [by_gpu.get(str(gpu), known.library) for gpu in units_of(block.tags, "GPU")]


def _with_libraries(layers: LayerCalls, kernel_s: Floats, of_row: Sequence[Library]) -> _Ours:
    launch_s = float(np.exp(shipped().coefficients["launch_s"]))
    found_s = kernel_s.copy()
    numbers = np.array([id(library) for library in of_row])
    for library in {id(library): library for library in of_row}.values():
        own = (numbers == id(library))[layers.block.row]
        found_s[own] = layers.with_library(kernel_s, library.factors, launch_s=launch_s)[own]
    return _Ours(found_s, np.stack([library.log_sd for library in of_row]))


def _kernel_seconds(block: Block, splits: Sequence[Split], fits: Sequence[Coefficients]) -> Floats:
    """By the fit without the row's GPU; GPUs that no set of the fit has are left out of the shipped one already."""
    units = units_of(block.tags, "GPU")[block.row]
    seconds = block.kernel_seconds(shipped().coefficients)
    for split, coefficients in zip(splits, fits, strict=True):
        own = np.isin(units, split.values)
        if split.kind == "GPU" and own.any():
            seconds = np.where(own, block.kernel_seconds(coefficients), seconds)
    return seconds


def _baselines(calls: _OnHosts) -> list[Prediction]:
    """As for lone ops: the same floor for all, and factors from rows of other GPUs that show more than the floor."""
    block, extra = calls.layers.block, calls.layers.extra
    compute_s, memory_s = ideal_seconds(block)
    roofline_s = summed(block, np.maximum(compute_s, memory_s))
    learn: Rows = (roofline_s > calls.n_ops * calls.dispatch_s) & ~block.tags["is_host"]
    units, bare_s = units_of(block.tags, "GPU"), calls.without_call_s
    fits = {
        "scaled roofline": scaled_fit(roofline_s, bare_s),
        "flop + bytes": two_rates_fit(summed(block, compute_s), summed(block, memory_s), bare_s),
        "paleo": paleo_fit(extra["paleo_scaled_s"], extra["paleo_update_s"], bare_s),
    }
    found = [Prediction(method="roofline", left_out="-", seconds=calls.simply_s(roofline_s))]
    for method, fit in fits.items():
        seconds = calls.simply_s(left_out_fits(units, learn, fit))
        found.append(Prediction(method=method, left_out="GPU", seconds=seconds))
    return found


def _noise(block: Block) -> str:
    """Of the scored rows."""
    scored = ~block.tags["is_host"]
    spread, apart = block.tags["spread"][scored], block.tags["range"][scored]
    return (
        "medians of 5 repetitions of 50 calls, whose standard deviation is "
        f"{100 * np.median(spread):.1f} % (median) and {100 * np.quantile(spread, 0.9):.1f} % (9 of 10 rows), and "
        f"whose extremes differ by {100 * np.median(apart):.1f} % (median)"
    )
