"""The P100 runs of a course project (Keras, TensorFlow 2), and the host that they had: shared by the scripts beside it.

Nobody wrote down the host, so it is fitted: a call and the price of a dispatch on batch 8, the cost of feeding a byte
of input on one larger batch size. Everything else is held out.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import traincast as tc
from traincast.hardware.catalog import find_device
from traincast.hardware.host import Host
from traincast.kernels.fused_updates import with_fused_updates
from traincast.kernels.host_fit import TimedStep, fit_call, fit_call_and_dispatch, predicted_s
from traincast.kernels.predictor import Traincast
from traincast.trace.graph import Graph
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

DEVICE = "P100-PCIe-16GB"
MODELS = {"MNIST": "mnist_cnn_2conv", "CIFAR-10": "cifar10_cnn"}
SAMPLE_BYTES = {"mnist_cnn_2conv": 28 * 28 * 4, "cifar10_cnn": 32 * 32 * 3 * 4, "patchcamelyon_cnn": 96 * 96 * 3 * 4}
FITTED_BATCH = 8
FITTED_FEED = ("SGD", 256)  # the one row of the MNIST table that tells what feeding costs
FITTED_CALL = ("SGD", FITTED_BATCH)
N_ROUNDS = 50


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def keras_graph(model: str, optimizer: str) -> Graph:
    """A zoo model as TensorFlow trains it: one fused update a variable."""
    trace = tc.load_model(model)
    return with_fused_updates(lower(trace, target="cuda", settings=Settings("fp32", "none")), optimizer)


def timed_step(model: str, optimizer: str, batch: int, measured_s: float) -> TimedStep:
    graph = keras_graph(model, optimizer)
    times = Traincast().op_times(graph, find_device(DEVICE), np.array([batch]), precision="fp32")
    return TimedStep(graph=graph, times=times, measured_s=measured_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class MnistRow:
    """One row of the MNIST table: ten epochs, timed together with what starting them took."""

    optimizer: str
    batch: int
    n_steps: int
    measured_s: float  # whole time over steps
    authors_s: float

    @property
    def is_fitted(self) -> bool:
        return (self.optimizer, self.batch) in (FITTED_CALL, FITTED_FEED)

    @property
    def is_outlier(self) -> bool:
        """5.0 ms between neighbours of 2.5 and 4.2: the notes of the data say so."""
        return (self.optimizer, self.batch) == ("Adam", 128)


def mnist_rows(seeds: Path) -> list[MnistRow]:
    return [
        MnistRow(
            optimizer=row["optimizer"],
            batch=int(row["batch"]),
            n_steps=int(row["epochs"]) * int(row["batches_per_epoch"]),
            measured_s=float(row["time_per_batch_s"]),
            authors_s=float(row["predicted_s_original_model"]),
        )
        for row in read(seeds / "p100_mnist_single_gpu.csv")
    ]


def start_s(seeds: Path) -> float:
    """What the first epoch of a run takes more than the later ones: the median of eight MNIST runs."""
    epochs: dict[str, list[float]] = {}
    for row in read(seeds / "p100_mnist_cifar10_epochs.csv"):
        if row["dataset"] == "MNIST":
            epochs.setdefault(row["batch"], []).append(float(row["epoch_time_s"]))
    return float(np.median([times[0] - np.median(times[1:]) for times in epochs.values()]))


def full_steps(seeds: Path) -> dict[tuple[str, int], tuple[float, float]]:
    """Of each data set and batch size: the sum of its timed layers, and the step of the whole model (Adam)."""
    return {
        (row["dataset"], int(row["batch"])): (float(row["sum_of_layers_s"]), float(row["full_model_step_s"]))
        for row in read(seeds / "p100_layer_sum_vs_full_model.csv")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class KerasHost:
    """The project's host. The MNIST table and the layer tables come from two leases, with a call each."""

    host: Host
    table_host: Host  # of the MNIST table; the same price of a dispatch
    feed_s_per_byte: float
    start_s: float

    def step_s(self, model: str, optimizer: str, batch: int, *, host: Host | None = None) -> float:
        """One step; the input is gathered and copied to the device before the first op can start."""
        step = timed_step(model, optimizer, batch, 0.0)
        fed_s = batch * SAMPLE_BYTES[model] * self.feed_s_per_byte
        return float(predicted_s([step], host or self.host)[0]) + fed_s

    def table_s(self, row: MnistRow) -> float:
        """A row of the MNIST table: the step, and its share of the start."""
        step_s = self.step_s(MODELS["MNIST"], row.optimizer.lower(), row.batch, host=self.table_host)
        return step_s + self.start_s / row.n_steps


def fit(seeds: Path, *, batch: int = FITTED_BATCH) -> KerasHost:
    """Four numbers from four rows: both models at one batch size, and the MNIST table at batch 8 and 256 (SGD).

    The table cannot tell feeding from starting: ten epochs have a fixed number of samples, so both are so much a
    sample. The start is therefore read from other runs, where it counts from the first epoch on, rather too short.
    """
    start = start_s(seeds)
    rows = {(row.optimizer, row.batch): row for row in mnist_rows(seeds)}
    large, mnist, feed = rows[FITTED_FEED], MODELS["MNIST"], 0.0
    for _ in range(N_ROUNDS):
        keras = fit_with_feed(seeds, feed, batch=batch)
        rest = timed_step(mnist, "sgd", large.batch, large.measured_s - start / large.n_steps)
        left_s = rest.measured_s - float(predicted_s([rest], keras.table_host)[0])
        feed = max(left_s, 0.0) / (large.batch * SAMPLE_BYTES[mnist])
    return keras


def fit_with_feed(seeds: Path, feed_s_per_byte: float, *, batch: int = FITTED_BATCH) -> KerasHost:
    """The calls and the dispatch when the cost of feeding is known."""
    start, full = start_s(seeds), full_steps(seeds)
    models = [
        timed_step(name, "adam", batch, full[data, batch][1] - feed_s_per_byte * batch * SAMPLE_BYTES[name])
        for data, name in MODELS.items()
    ]
    host = fit_call_and_dispatch(models, name="tf2-keras")
    small = next(row for row in mnist_rows(seeds) if (row.optimizer, row.batch) == FITTED_CALL)
    fed_s = feed_s_per_byte * small.batch * SAMPLE_BYTES[MODELS["MNIST"]]
    one = timed_step(MODELS["MNIST"], "sgd", small.batch, small.measured_s - start / small.n_steps - fed_s)
    table_host = fit_call([one], dispatch_s=host.forward_dispatch_s, name="tf2-keras")
    return KerasHost(host=host, table_host=table_host, feed_s_per_byte=feed_s_per_byte, start_s=start)


def fit_on_two_batches(seeds: Path, large: int) -> KerasHost:
    """Calls and dispatch on batch 8, feeding on what both models take more at a large batch size."""
    full, feed = full_steps(seeds), 0.0
    sizes = np.array([large * SAMPLE_BYTES[name] for name in MODELS.values()])
    for _ in range(N_ROUNDS):
        keras = fit_with_feed(seeds, feed)
        steps = [timed_step(name, "adam", large, full[data, large][1]) for data, name in MODELS.items()]
        left_s = np.array([step.measured_s for step in steps]) - predicted_s(steps, keras.host)
        feed = max(float(left_s @ sizes / (sizes @ sizes)), 0.0)
    return keras
