"""The lone-layer model on the layers that Justus et al. timed on six machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import session_layers
from traincast.hardware.catalog import find_device
from traincast.kernels.layerwise.rows import DEVICES, read_layers
from traincast.kernels.library_method import LibraryMethod
from traincast.kernels.lone_layer import Part, lone_layer_time
from traincast.kernels.predictor import Traincast

N_SAMPLED = 400  # layers of each kind and machine
SEED = 0


def layer_rows_table(layers: Path, found: Sequence[session_layers.Machine]) -> str:
    """The lone-layer model on layers of all machines, and how far it is off when a part is left out."""
    header = [
        "machine, layers",
        "n",
        "predicted / measured (median)",
        "median error",
        "no loss",
        "no updates",
        "no layout",
        "with library factors",
    ]
    lines = [f"| {' | '.join(header)} |", "| --- |" + " ---: |" * (len(header) - 1)]
    random = np.random.default_rng(SEED)
    for machine in found:
        device = find_device(DEVICES[machine.gpu])
        for kind, title in (("conv", "convolutions"), ("dense", "fully connected")):
            rows = read_layers(layers, kind, gpus=[machine.gpu])
            rows = rows.take(np.flatnonzero(rows.layers.has_backward))
            rows = rows.take(random.choice(len(rows), N_SAMPLED, replace=False))
            predicted = np.zeros((5, len(rows)))
            for number in range(len(rows)):
                layer, optimizer, batch = session_layers.layer_of(rows, number)
                time, with_library = (
                    lone_layer_time(
                        layer, np.array([batch]), optimizer=optimizer, device=device, host=machine.host, method=method
                    )
                    for method in (Traincast(), LibraryMethod())
                )
                without = [0.0, *(time.device_s[0, part] for part in (Part.LOSS, Part.DATA, Part.LAYOUT))]
                predicted[:4, number] = time.seconds[0] - np.array(without)
                predicted[4, number] = with_library.seconds[0]
            ratio = predicted / rows.median_s
            error = np.median(np.abs(ratio - 1), axis=1)
            cells = [f"{np.median(ratio[0]):.2f}", *(f"{100 * value:.0f} %" for value in error)]
            lines.append(f"| {machine.gpu}, {title} | {len(rows)} | {' | '.join(cells)} |")
    return "\n".join(lines)
