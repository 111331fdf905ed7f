"""PatchCamelyon, the model for which the project tuned its constant: sums of lone layers against whole steps."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
import keras_runs
from keras_runs import KerasHost
from lab.refit.layerwise.whole_models import patchcamelyon_steps
from traincast.hardware.catalog import find_device
from traincast.hardware.host import Host
from traincast.kernels.lone_layer import Layer, lone_layer_time
from traincast.kernels.predictor import Traincast
from traincast.report.chart import Chart, ReferenceLine, Series

MODEL = "patchcamelyon_cnn"
N_IMAGES = 3072  # of the runs in memory
CHANNELS = (3, 256, 256, 512, 512, 1024, 1024)
WIDTHS = (1024, 1028, 512, 128)
ALL_BUT_LAST = ("1", "9")
LAST = 10


def layers() -> list[Layer]:
    """All but the last, which the project timed under MirroredStrategy only."""
    sizes = [96 // 2**place for place in range(6)]
    pairs = zip(CHANNELS, CHANNELS[1:], sizes, strict=False)
    convolutions = [
        Layer(channels_in=a, channels_out=b, input_size=size, kernel=3, is_padded=True) for a, b, size in pairs
    ]
    return [*convolutions, *(Layer(channels_in=a, channels_out=b) for a, b in pairwise(WIDTHS))]


def in_memory_steps(seeds: Path) -> dict[tuple[str, str, str, int], float]:
    """Median step of a sub-network (series, first layer, last layer, batch), without the first epoch."""
    epochs: dict[tuple[str, str, str, int], list[float]] = {}
    for row in keras_runs.read(seeds / "patchcamelyon_submodel_epochs.csv"):
        if row["epoch"] != "1":
            place = (row["series"], row["first_layer"], row["last_layer"], int(row["batch"]))
            epochs.setdefault(place, []).append(float(row["epoch_time_s"]))
    return {place: float(np.median(times)) / np.ceil(N_IMAGES / place[3]) for place, times in epochs.items()}


def patchcamelyon_tables(seeds: Path, keras: KerasHost, session: Host) -> tuple[str, Chart]:
    device = find_device(keras_runs.DEVICE)
    memory = in_memory_steps(seeds)
    lines = [
        "| batch | project's sum | our sum | whole, ours | in memory | from disk | our ratio |"
        " project's sum / in memory | project's sum / from disk |",
        "| ---: |" + " ---: |" * 8,
    ]
    batches, ratios = [], {"ours": [], "project's sum / in memory": [], "project's sum / from disk": []}
    for step in patchcamelyon_steps(seeds):
        size = np.array([step.batch])
        times = [
            lone_layer_time(layer, size, optimizer="adam", device=device, host=session, method=Traincast())
            for layer in layers()
        ]
        sum_s = sum(float(time.seconds[0]) for time in times)
        whole_s = keras.step_s(MODEL, "adam", step.batch)
        memory_s = memory["v2", *ALL_BUT_LAST, step.batch]
        found = (sum_s / whole_s, step.project_sum_s / memory_s, step.project_sum_s / step.single_gpu_step_s)
        batches.append(step.batch)
        for name, ratio in zip(ratios, found, strict=True):
            ratios[name].append(ratio)
        seconds = (step.project_sum_s, sum_s, whole_s, memory_s, step.single_gpu_step_s)
        cells = [f"{1e3 * value:.1f}" for value in seconds] + [f"{value:.2f}" for value in found]
        lines.append(f"| {step.batch} | {' | '.join(cells)} |")
    chart = Chart(
        title="PatchCamelyon on a P100: sum of layers over a step",
        kind="line",
        series=tuple(Series(name=name, x=batches, y=values) for name, values in ratios.items()),
        x_label="batch size",
        y_label="ratio",
        reference_lines=(ReferenceLine(value=1.5, label="the project's constant"),),
    )
    return "\n".join([*lines, "", lone_keras_line(memory)]), chart


def lone_keras_line(memory: dict[tuple[str, str, str, int], float]) -> str:
    """The project's other way: each layer as a Keras model of its own, at batch 64."""
    alone = [memory["v1", str(layer), str(layer), 64] for layer in range(1, LAST + 1)]
    whole = memory["v1", "1", str(LAST), 64]
    return (
        f"As Keras models of one layer each (batch 64) the ten layers take {1e3 * sum(alone):.1f} ms, the whole model "
        f"{1e3 * whole:.1f} ms: a ratio of {sum(alone) / whole:.2f}. The first alone takes {1e3 * alone[0]:.1f} ms: "
        "its target is an image of 48 x 48 x 256 that is fed with every batch."
    )
