"""Scores of predicted layer times, beside the noise of the measurements and what a few coefficients reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.hardware.catalog import find_device
from traincast.kernels.layerwise.layer_tables import N_STATES
from traincast.kernels.layerwise.network import Network
from traincast.kernels.layerwise.rows import DEVICES, LayerRows
from traincast.trace.graph import Floats

PASSES = ("forward", "with backward")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How far predictions lie from measurements. Errors are |predicted / measured - 1|."""

    n: int
    rmse_s: float
    median_error_fraction: float
    mean_error_fraction: float
    log_rms: float

    @staticmethod
    def of(predicted_s: Floats, measured_s: Floats) -> Score:
        error = np.abs(predicted_s / measured_s - 1)
        return Score(
            n=len(measured_s),
            rmse_s=float(np.sqrt(np.mean((predicted_s - measured_s) ** 2))),
            median_error_fraction=float(np.median(error)),
            mean_error_fraction=float(error.mean()),
            log_rms=float(np.sqrt(np.mean(np.log(predicted_s / measured_s) ** 2))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkComparison:
    """One line of a table: a GPU and a pass ("all" for all of them)."""

    gpu: str
    layer_pass: str
    network: Score
    noise_rmse_s: float
    noise_fraction: float  # median over rows of the repetitions' standard deviation over their median
    baseline_rmse_s: float  # of the baseline fitted to seconds
    baseline_median_fraction: float  # of the baseline fitted to relative errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The network of one kind of layer, scored on test rows and on GPUs that it never saw."""

    network: Network
    test: list[NetworkComparison]
    unseen: list[NetworkComparison]
    paper_rows: Score | None  # test rows with the paper's batch sizes, by a network that learnt from such rows only


def compare(rows: LayerRows, predicted_s: Floats, baselines_s: tuple[Floats, Floats]) -> list[NetworkComparison]:
    """A line for every GPU and pass, and for all GPUs together."""
    return [
        _compare(rows.take(chosen), predicted_s[chosen], tuple(each[chosen] for each in baselines_s), gpu, layer_pass)
        for gpu, layer_pass, chosen in _groups(rows)
        if chosen.any()
    ]


def _groups(rows: LayerRows) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    has_backward = rows.layers.has_backward
    every = np.ones(len(rows), dtype=bool)
    for layer_pass, in_pass in (*zip(PASSES, (~has_backward, has_backward), strict=True), ("all", every)):
        for gpu in sorted(set(rows.gpu.tolist())):
            yield gpu, layer_pass, in_pass & (rows.gpu == gpu)
        yield "all", layer_pass, in_pass


def _compare(
    rows: LayerRows, predicted_s: Floats, baselines_s: tuple[Floats, ...], gpu: str, layer_pass: str
) -> NetworkComparison:
    by_seconds, by_ratio = (Score.of(each, rows.median_s) for each in baselines_s)
    return NetworkComparison(
        gpu=gpu,
        layer_pass=layer_pass,
        network=Score.of(predicted_s, rows.median_s),
        noise_rmse_s=float(np.sqrt(np.mean(rows.std_s**2))),
        noise_fraction=float(np.median(rows.std_s / rows.median_s)),
        baseline_rmse_s=by_seconds.rmse_s,
        baseline_median_fraction=by_ratio.median_error_fraction,
    )


def baseline_s(train: LayerRows, test: LayerRows, *, per_gpu: bool, relative: bool) -> Floats:
    """Time = floor + a x flop / peak + b x bytes / bandwidth + c x optimizer's bytes / bandwidth, none negative.

    Coefficients are fitted for each pass, and for each GPU if asked; `relative` minimises relative errors, otherwise
    seconds.
    """
    from scipy.optimize import nnls

    predicted_s = np.zeros(len(test))
    work, test_work = _work(train), _work(test)
    weight = 1 / train.median_s if relative else np.ones(len(train))
    for backward in (False, True):
        for gpu in dict.fromkeys(test.gpu.tolist()) if per_gpu else (None,):
            known, asked = (
                (rows.layers.has_backward == backward) & ((rows.gpu == gpu) if gpu else True) for rows in (train, test)
            )
            coefficients, _ = nnls(work[known] * weight[known, None], train.median_s[known] * weight[known])
            predicted_s[asked] = test_work[asked] @ coefficients
    return predicted_s


def _work(rows: LayerRows) -> Floats:
    """A constant, and the seconds of flop, bytes and optimizer state at the datasheet's rates.

    Input, weights and target are all trained in these data, so the state is a multiple of the layer's bytes.
    """
    names, position = np.unique(rows.gpu, return_inverse=True)
    devices = [find_device(DEVICES[name]) for name in names.tolist()]
    peak = np.array([device.peak_flop_per_s("fp32") for device in devices])[position]
    bandwidth = np.array([device.memory_bytes_per_s for device in devices])[position]
    memory_s = rows.layers.forward_bytes / bandwidth
    state_s = np.array(N_STATES)[rows.layers.optimizer] * memory_s
    return np.stack([np.full(len(rows), 1e-3), rows.layers.forward_flop / peak, memory_s, state_s], axis=1)
