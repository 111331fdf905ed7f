"""Random perceptrons whose memory nvidia-smi told (GPUMemNet), layer by layer."""

from __future__ import annotations

import ast
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from traincast.kernels.refit.op_rows import read_rows

MLPS = "gpumemnet_mlp.csv.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class MlpRow:
    """Trained in fp32 with Adam. Layers are kinds as PyTorch names them, each with the width that it writes."""

    n_inputs: int
    layers: tuple[tuple[str, int], ...]
    dropout: float
    batch_size: int
    n_parameters: int
    peak_bytes: float

    @property
    def trace(self) -> str:
        """The same for the same layers."""
        return f"mlp--{self.n_inputs}--{zlib.crc32(repr((self.layers, self.dropout)).encode()):08x}"

    @property
    def place(self) -> str:
        """The file does not name the GPU; its collector says A100 with 40 GB."""
        return "A100-SXM4-40GB"


def mlp_rows(data: Path) -> list[MlpRow]:
    return [mlp_row(line) for line in read_rows(data / "modern" / MLPS)]


def mlp_row(line: Mapping[str, str]) -> MlpRow:
    settings = json.loads(line["model_settings"])
    layers = ast.literal_eval(settings["layers_activations_params"])
    return MlpRow(
        n_inputs=int(settings["input"]),
        layers=tuple((str(kind), int(width)) for kind, width, _ in layers),
        dropout=float(settings["dropout_p"] or 0.0),
        batch_size=int(settings["batch"]),
        n_parameters=int(line["n_parameters"]),
        peak_bytes=float(line["peak_memory_GB"]) * 1e9,
    )
