"""Paleo's platform percent of peak from a table of measured steps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import FileFormatError

if TYPE_CHECKING:
    from traincast.kernels.paleo import FittedPpp, MeasuredStep
    from traincast.scaling.number_table import Row

_ALIASES = {
    "model": ("network", "net"),
    "device": ("gpu", "hardware", "on"),
    "batch": ("batch_size", "batchsize"),
    "step_s": ("step", "step_time", "step_time_s", "step_seconds", "seconds_per_step"),
    "samples_per_s": ("throughput", "images_per_s", "samples_s", "images_s", "samples_per_second"),
    "precision": ("dtype",),
    "optimizer": (),
    "mode": (),
}
_NEEDED = (("model",), ("device",), ("batch",), ("step_s", "samples_per_s"))
_USUAL = {"precision": "fp32", "optimizer": "sgd", "mode": "train"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PppRow:
    """A measured step, what it alone would give, and what the PPP of all predicts."""

    model: str
    device: str
    batch_size: int
    mode: str
    measured_s: float
    predicted_s: float
    own_ppp: float

    @property
    def error_fraction(self) -> float:
        return self.predicted_s / self.measured_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PppFit:
    """One PPP for all rows of a file."""

    path: str
    fitted: FittedPpp
    rows: tuple[PppRow, ...]

    @property
    def mean_error_fraction(self) -> float:
        return sum(abs(row.error_fraction) for row in self.rows) / len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        names = (*PppRow.__slots__, "error_fraction")
        return {
            "path": self.path,
            "ppp": self.fitted.ppp,
            "interval": self.fitted.interval,
            "is_clipped": self.fitted.is_clipped,
            "mean_error_fraction": self.mean_error_fraction,
            "rows": [{name: getattr(row, name) for name in names} for row in self.rows],
        }


def fit_ppp_to(path: str | Path) -> PppFit:
    """A CSV table with model, device, batch and step_s or samples_per_s; precision, optimizer and mode if they differ.

    Steps are those of one device. Rows are said to be of training in fp32 with SGD where the table does not tell.
    """
    from traincast.kernels.paleo import fit_ppp
    from traincast.scaling.number_table import read_rows

    rows = list(read_rows(path, _ALIASES, needed=_NEEDED))
    if not rows:
        raise FileFormatError(f"'{path}' holds no measured steps.")
    steps = [_step(row) for row in rows]
    fitted = fit_ppp(steps)
    found = tuple(
        PppRow(
            model=_text(row, "model"),
            device=step.device.name,
            batch_size=step.batch_size,
            mode=_text(row, "mode"),
            measured_s=step.step_s,
            predicted_s=predicted_s,
            own_ppp=own,
        )
        for row, step, predicted_s, own in zip(rows, steps, fitted.predicted_s, fitted.own, strict=True)
    )
    return PppFit(path=str(path), fitted=fitted, rows=found)


def _step(row: Row) -> MeasuredStep:
    from traincast.api.models import load_model
    from traincast.hardware.catalog import find_device
    from traincast.kernels.paleo import MeasuredStep
    from traincast.trace.forward_only import forward_only
    from traincast.trace.lowering.lower import lower
    from traincast.trace.settings import MODES, Settings, check_choice

    device, batch_size = find_device(_text(row, "device")), row.whole("batch")
    speed = row.one_of("step_s", "samples_per_s")
    trace, precision, mode = load_model(_text(row, "model")), _text(row, "precision"), _text(row, "mode")
    check_choice("mode", mode, MODES)
    if mode == "inference":
        trace = forward_only(trace)
    settings = Settings(precision, "none" if mode == "inference" else _text(row, "optimizer"))
    return MeasuredStep(
        graph=lower(trace, target="cuda", settings=settings),
        device=device,
        batch_size=batch_size,
        precision=precision,
        step_s=row.number("step_s") if speed == "step_s" else batch_size / row.number("samples_per_s"),
    )


def _text(row: Row, key: str) -> str:
    told = row.cells.get(key, "").strip() or _USUAL.get(key, "")
    if not told:
        raise FileFormatError(f"{row.where}: {key} is empty.")
    return told
