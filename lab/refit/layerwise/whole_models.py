"""Sums of layers against whole models: the PatchCamelyon tables of a course project, and VGG-16 on a V100.

The project summed predicted layers for MirroredStrategy on two P100, with the last layer timed under the strategy,
and divided all but that one by 1.5.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traincast.hardware.catalog import find_device
from traincast.kernels.layerwise.graph_layers import find_layers
from traincast.kernels.layerwise.layerwise import Layerwise
from traincast.kernels.layerwise.rows import DEVICES, read_columns
from traincast.trace.file import parse_trace
from traincast.trace.graph import Floats, Graph
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

PROJECT_CORRECTION = 1.5
_LAST_LAYER = "last_layer_mirrored"
_N_IMAGES = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchCamelyonStep:
    """One batch size (per GPU): seconds of a step, Adam. Sums are over all layers but the last, of one unit."""

    batch: int
    layers_s: dict[str, tuple[float, float]]  # layer: the project's prediction, ours
    last_layer_s: float  # the project's prediction, under MirroredStrategy
    project_sum_s: float
    our_sum_s: float
    our_sum_corrected_s: float  # by Layerwise(correction=1.5)
    single_gpu_step_s: float  # measured
    mirrored_step_s: float  # measured


def patchcamelyon_steps(seeds: Path) -> list[PatchCamelyonStep]:
    """The project's tables with our predictions beside theirs."""
    predicted = read_columns(seeds / "patchcamelyon_predicted_layer_times.csv")
    measured = read_columns(seeds / "patchcamelyon_single_vs_mirrored.csv")
    graph = _lowered("patchcamelyon_cnn", "adam")
    steps = []
    for position, batch in enumerate(measured["batch_per_gpu"].astype(int).tolist()):
        at_batch = predicted["batch_per_replica"].astype(int) == batch
        names, seconds = predicted["layer"][at_batch].tolist(), predicted["predicted_time_s"][at_batch].astype(float)
        theirs = dict(zip(names, seconds.tolist(), strict=True))
        last_layer_s = theirs.pop(_LAST_LAYER)
        ours = layer_seconds(graph, batch, "P100", Layerwise())[: len(theirs)]
        corrected = layer_seconds(graph, batch, "P100", Layerwise(correction=PROJECT_CORRECTION))[: len(theirs)]
        steps.append(
            PatchCamelyonStep(
                batch=batch,
                layers_s={name: (theirs[name], float(own)) for name, own in zip(theirs, ours, strict=True)},
                last_layer_s=last_layer_s,
                project_sum_s=sum(theirs.values()),
                our_sum_s=float(ours.sum()),
                our_sum_corrected_s=float(corrected.sum()),
                single_gpu_step_s=float(measured["single_gpu_epoch_s"][position]) / (_N_IMAGES / batch),
                mirrored_step_s=float(measured["mirrored_2gpu_epoch_s"][position]) / (_N_IMAGES / batch / 2),
            )
        )
    return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class VggStep:
    """VGG-16, 224 x 224, on a V100; optimizer "none" is the forward pass alone."""

    optimizer: str
    batch: int
    measured_s: float
    layer_sum_s: float


def vgg_steps(layers: Path) -> list[VggStep]:
    """The full model that the authors of the layer data measured, with our sum of layers."""
    cells = read_columns(layers / "vgg16_v100_full_model.csv")
    steps = []
    for optimizer, batch, measured_s in zip(cells["optimizer"], cells["batch"], cells["time_per_batch_s"], strict=True):
        graph = _lowered("vgg16", str(optimizer).lower())
        ours = layer_seconds(graph, int(batch), "V100", Layerwise(), forward_only=optimizer == "none")
        steps.append(
            VggStep(
                optimizer=str(optimizer), batch=int(batch), measured_s=float(measured_s), layer_sum_s=float(ours.sum())
            )
        )
    return steps


def layer_seconds(graph: Graph, batch_size: int, gpu: str, method: Layerwise, *, forward_only: bool = False) -> Floats:
    """Seconds of every layer, convolutions first: forward, and backward with update unless left out."""
    times = method.op_times(graph, find_device(DEVICES[gpu]), np.array([batch_size]), precision="fp32").seconds[0]
    found = []
    for layers in find_layers(graph):
        seconds = times[layers.ops]
        if not forward_only:
            seconds = seconds + np.bincount(layers.backward_layer, times[layers.backward_ops], len(layers.ops))
        found.append(seconds)
    return np.concatenate(found)


def _lowered(model: str, optimizer: str) -> Graph:
    """A model of the zoo, as CUDA runs it."""
    content = importlib.resources.files("traincast").joinpath(f"data/zoo/{model}.trace").read_bytes()
    trace = parse_trace(content, where=f"the shipped trace of {model}", is_shipped=True)
    return lower(trace, target="cuda", settings=Settings("fp32", optimizer))
