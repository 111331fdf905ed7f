"""Reading timed layers: one gzipped CSV a kind of layer and GPU, as the data of Justus et al. 2018 were stored.

TensorFlow 1.10, fp32, one GPU; 5 repetitions of 50 `session.run` calls. In rows with an optimizer the input and the
target are trainable variables too, so their gradients and updates are part of the time.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traincast.errors import FileFormatError, InputError
from traincast.kernels.layerwise.layer_tables import ACTIVATIONS, OPTIMIZERS, ConvLayers, DenseLayers
from traincast.trace.graph import Floats, Ints

# What the files call a GPU, and the row of our device table that it is. The authors give the V100 NVLink and 1455 MHz,
# which is the SXM2 form, and the P100 1303 MHz, which is the PCIe one; K80 and M60 are one die of two.
DEVICES = {
    "K40": "K40",
    "K80": "K80-die",
    "M60": "M60-die",
    "GTX1080Ti": "GTX-1080Ti",
    "P100": "P100-PCIe-16GB",
    "V100": "V100-SXM2-16GB",
}
_TIMES = ("median_s", "min_s", "max_s", "std_s")


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerRows:
    """Layers and how long they took. The times are over the repetitions of one row."""

    layers: ConvLayers | DenseLayers
    gpu: NDArray[np.str_]  # as the files call it
    median_s: Floats
    min_s: Floats
    max_s: Floats
    std_s: Floats

    def __len__(self) -> int:
        return len(self.median_s)

    def take(self, rows: Ints | NDArray[np.bool_]) -> LayerRows:
        """Some of the rows."""
        times = {name: getattr(self, name)[rows] for name in _TIMES}
        return LayerRows(layers=self.layers.take(rows), gpu=self.gpu[rows], **times)


def read_layers(folder: str | Path, kind: str, *, gpus: Sequence[str] = tuple(DEVICES)) -> LayerRows:
    """All rows of one kind ("conv" or "dense") on these GPUs, in the order of the files."""
    parts = []
    for gpu in gpus:
        cells = read_columns(Path(folder) / f"{kind}_{gpu}.csv.gz")
        parts.append({**cells, "gpu": np.full(len(cells["batch"]), gpu)})
    return layer_rows({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, kind)


def read_columns(path: Path) -> dict[str, NDArray[np.str_]]:
    """The cells of a (gzipped) CSV as text, by column."""
    try:
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
            header, *cells = csv.reader(file)
    except OSError as error:
        raise InputError(f"Layer times '{path}' cannot be read: {error}.") from None
    except ValueError:
        raise FileFormatError(f"Layer times '{path}' hold no header.") from None
    if not cells or any(len(row) != len(header) for row in cells):
        raise FileFormatError(f"Layer times '{path}' hold no rows, or rows of different lengths.")
    return {name: np.array(column) for name, column in zip(header, zip(*cells, strict=True), strict=True)}


def layer_rows(cells: dict[str, NDArray[np.str_]], kind: str) -> LayerRows:
    """Text cells as numbers; rows without a time are left out."""
    timed = cells["median_s"] != ""
    cells = {name: column[timed] for name, column in cells.items()}
    layers = _conv(cells) if kind == "conv" else _dense(cells)
    times = {name: cells[name].astype(float) for name in _TIMES}
    return LayerRows(layers=layers, gpu=cells["gpu"], **times)


def _codes(column: NDArray[np.str_], known: tuple[str, ...]) -> Ints:
    names, positions = np.unique(column, return_inverse=True)
    unknown = sorted(set(names.tolist()) - set(known))
    if unknown:
        raise FileFormatError(f"Layer times name {', '.join(unknown)}, which is none of {', '.join(known)}.")
    return np.array([known.index(name) for name in names.tolist()])[positions]


def _conv(cells: dict[str, NDArray[np.str_]]) -> ConvLayers:
    names = ("batch", "input_size", "kernel", "channels_in", "channels_out", "stride")
    numbers = {name: cells[name].astype(float) for name in names}
    is_padded = (cells["padding"] == "SAME").astype(float)
    size, kernel, stride = numbers["input_size"], numbers["kernel"], numbers["stride"]
    return ConvLayers(
        **numbers,
        output_size=np.where(is_padded > 0, np.ceil(size / stride), np.floor((size - kernel) / stride) + 1),
        is_padded=is_padded,
        has_bias=cells["bias"].astype(float),
        activation=_codes(cells["activation"], ACTIVATIONS),
        optimizer=_codes(cells["optimizer"], OPTIMIZERS),
    )


def _dense(cells: dict[str, NDArray[np.str_]]) -> DenseLayers:
    return DenseLayers(
        **{name: cells[name].astype(float) for name in ("batch", "dim_in", "dim_out")},
        activation=_codes(cells["activation"], ACTIVATIONS),
        optimizer=_codes(cells["optimizer"], OPTIMIZERS),
    )
