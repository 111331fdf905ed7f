"""What one run took, and its file: whole or not there, so that an experiment can be killed and go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError
from traincast.measurement.processes.link_fit import ring_bytes
from traincast.recipes.scaling_experiment.settings import Cell
from traincast.report.files import write_file
from traincast.report.parsing import parse_json

PARTS = ("input", "forward", "loss", "backward", "optimizer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Steps with and without reducing gradients, in turns; seconds are of one step.

    `exposed_s` is the difference, round by round: communication that backward does not hide, with waiting for the
    slowest process. `all_reduce_s` is what the gradients take by themselves, `peak_bus_bytes_per_s` the rate of one
    large message in the same run.
    """

    step_s: float
    compute_s: float
    exposed_s: float
    all_reduce_s: float
    gradient_bytes: int
    n_buckets: int
    peak_bus_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRun:
    """Epochs of one cell. `parts_s` are of a counted epoch, the mean of all processes; reducing is in backward."""

    cell: Cell
    n_samples: int
    n_parameters: int
    epochs_s: tuple[float, ...]  # by the slowest process, the first one too
    parts_s: Mapping[str, float]
    loss: float  # of the last epoch, mean
    accuracy: float
    device: str
    backend: str
    split: Split | None = None  # None on one device

    @property
    def n_steps(self) -> int:
        return self.cell.n_steps(self.n_samples)

    @property
    def epoch_s(self) -> float:
        """The first is discarded: it pays for what is done once."""
        return sum(self.epochs_s[1:]) / len(self.epochs_s[1:])

    @property
    def input_s(self) -> float:
        return self.parts_s["input"]

    @property
    def communication_s(self) -> float:
        """Of an epoch, measured: what reducing adds to a step, for all its steps. Noise may leave it below 0."""
        return 0.0 if self.split is None else self.n_steps * self.split.exposed_s

    @property
    def compute_s(self) -> float:
        """What an epoch is besides input and communication."""
        return self.epoch_s - self.input_s - self.communication_s

    @property
    def bytes_sent(self) -> float:
        """By each device in an epoch, as a ring sends."""
        return 0.0 if self.split is None else self.n_steps * ring_bytes(self.split.gradient_bytes, self.cell.n_devices)

    @property
    def samples_per_s(self) -> float:
        return self.n_samples / self.epoch_s

    def to_dict(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CellRun:
        split = data["split"]
        own = {
            "cell": Cell(**data["cell"]),
            "epochs_s": tuple(data["epochs_s"]),
            "split": None if split is None else Split(**split),
        }
        return cls(**{**data, **own})


def write_run(folder: Path, run: CellRun) -> None:
    write_file(_path(folder, run.cell), json.dumps({"run": run.to_dict()}, indent=1) + "\n")


def write_failure(folder: Path, cell: Cell, sentence: str) -> None:
    """A cell that cannot be run is a result too."""
    write_file(_path(folder, cell), json.dumps({"error": sentence}) + "\n")


def read_run(folder: Path, cell: Cell) -> CellRun | str | None:
    """The run, or why it could not be, or None where it was not tried yet."""
    path = _path(folder, cell)
    if not path.exists():
        return None
    try:
        told = parse_json(path.read_text(encoding="utf-8"))
        return str(told["error"]) if "error" in told else CellRun.from_dict(told["run"])
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(
            f"'{path}' is not what a scaling experiment wrote: delete it, and it is run again."
        ) from error


def forget_failure(folder: Path, cell: Cell) -> None:
    """So that the cell is tried again."""
    if isinstance(read_run(folder, cell), str):
        _path(folder, cell).unlink()


def log_path(folder: Path, cell: Cell) -> Path:
    return folder / f"{cell.name}.log.csv"


def _path(folder: Path, cell: Cell) -> Path:
    return folder / f"{cell.name}.json"
