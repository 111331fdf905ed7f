"""Layers that were timed alone, one `session.run` a timing: which files hold them, and what tables call them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from traincast.errors import InputError
from traincast.kernels.layerwise.rows import DEVICES, LayerRows, layer_rows, read_columns, read_layers
from traincast.kernels.lone_layer import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSet:
    """The files of one set. `devices` has what they call a GPU, and the row of our device table that it is."""

    name: str
    kind: str
    devices: Mapping[str, str]
    file: str | None = None  # None: one file a GPU

    def paths(self, layers: Path) -> list[Path]:
        names = [self.file] if self.file else [f"{self.kind}_{gpu}.csv.gz" for gpu in self.devices]
        return [layers / name for name in names]

    def read(self, layers: Path) -> LayerRows:
        if self.file is None:
            return read_layers(layers, self.kind, gpus=tuple(self.devices))
        return layer_rows(read_columns(layers / self.file), self.kind)


LAYER_SETS = (
    LayerSet(name="layers conv", kind="conv", devices=DEVICES),
    LayerSet(name="layers dense", kind="dense", devices=DEVICES),
    LayerSet(
        name="layers conv tf2",
        kind="conv",
        devices={"K80": "K80-die", "M40": "M40", "P100-PCIe": "P100-PCIe-16GB", "P100-SXM2": "P100-SXM2-16GB"},
        file="conv_tf2_K80_M40_P100.csv.gz",
    ),
)


def check_layers(data: Path) -> None:
    """One sentence where the layers are not there, before minutes go by."""
    missing = [path for each in LAYER_SETS for path in each.paths(data / "layers") if not path.is_file()]
    if missing:
        more = f" and {len(missing) - 1} more files" if len(missing) > 1 else ""
        raise InputError(
            f"'{data}' lacks layers/{missing[0].name}{more}: --data is the folder that holds ops/, e2e/ and layers/."
        )


def layer_name(layer: Layer, kind: str, optimizer: str | None) -> str:
    """What a table of bad cases calls it."""
    channels = f"{layer.channels_in} to {layer.channels_out}"
    shape = f"dense {channels}"
    if kind == "conv":
        stride = f", stride {layer.stride}" if layer.stride > 1 else ""
        kernel, image = (f"{size} x {size}" for size in (layer.kernel, layer.input_size))
        shape = f"conv {kernel}{stride}, {channels} channels, {image}"
    return f"{shape}, {optimizer or 'forward'}"


def window_of(layer: Layer, kind: str) -> str:
    """The kind of convolution: libraries have different algorithms for each."""
    if kind == "dense":
        return "dense"
    if layer.kernel == layer.input_size and not layer.is_padded:
        return "whole image"
    if layer.stride > 1:
        return "stride 2 and more"
    if layer.kernel == 1:
        return "1 x 1"
    return "2 x 2 to 4 x 4" if layer.kernel < 5 else "5 x 5 and more"
