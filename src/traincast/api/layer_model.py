"""Layer networks from one's own benchmarks: a store of `traincast bench layers` in, a file of weights out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError
from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.kernels.layerwise.own_fit import LayerScore
    from traincast.kernels.layerwise.rows import LayerRows

PUBLISHED_RMSE_S = {"the paper (Justus et al. 2018)": 3.88e-3, "the practicum (2020)": 8.45e-3}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerModel:
    """Where the weights are, and how wrong the networks are on rows that they have not seen."""

    store: str
    path: Path
    devices: tuple[str, ...]
    scores: tuple[LayerScore, ...]

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {
            "store": self.store,
            "path": str(self.path),
            "devices": list(self.devices),
            "scores": [score.to_dict() for score in self.scores],
            "published_rmse_s": PUBLISHED_RMSE_S,
        }


@question
def train_layer_model(store: o.BenchStore, *, out: o.WeightsFile = "layer-model.npz") -> LayerModel:
    """Fits a network for convolutions and one for dense layers, as far as the store has them, and writes both."""
    from traincast.kernels.layerwise.layer_tables import KINDS
    from traincast.kernels.layerwise.own import networks_file
    from traincast.kernels.layerwise.own_fit import fit_own
    from traincast.report.files import write_file

    timed = {kind: rows for kind in KINDS if (rows := _rows(Path(store), kind)) is not None}
    if not timed:
        raise InputError(
            f"'{store}' has no timed convolutions or dense layers: 'traincast bench layers' measures them."
        )
    fitted = {kind: fit_own(kind, rows) for kind, rows in timed.items()}
    path = write_file(out, networks_file({kind: network for kind, (network, _) in fitted.items()}))
    devices = dict.fromkeys(name for rows in timed.values() for name in rows.gpu.tolist())
    scores = tuple(score for _, score in fitted.values())
    return LayerModel(store=str(store), path=path, devices=tuple(devices), scores=scores)


def _rows(store: Path, kind: str) -> LayerRows | None:
    """The layers of one kind as the fits read them; None where there are none."""
    import tempfile

    import numpy as np

    from traincast.kernels.layerwise.rows import layer_rows, read_columns
    from traincast.microbenchmarks.public_tables import write_public_tables
    from traincast.records.store import Store
    from traincast.report.input_files import naming

    parts = []
    with naming(store), Store(store, create=False) as opened, tempfile.TemporaryDirectory() as folder:
        for path in write_public_tables(opened.rows("layer"), folder):
            name = path.name.removesuffix(".csv.gz")
            if name.startswith(f"{kind}_"):
                cells = read_columns(path)
                parts.append({**cells, "gpu": np.full(len(cells["batch"]), name.removeprefix(f"{kind}_"))})
    if not parts:
        return None
    return layer_rows({name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, kind)
