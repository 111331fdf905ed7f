"""How long a number of steps takes by Optimus' speed model, over workers and parameter servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from traincast.errors import InputError
from traincast.report.input_files import is_there, naming
from traincast.scaling.optimus import (
    TERMS,
    SpeedCurve,
    SpeedFit,
    SpeedModel,
    fit_speed,
    paper_model,
    speed_curves,
)
from traincast.scaling.optimus_file import read_speeds

_PAPER = ("paper-sync", "paper-async")
_OF_A_FIT = (
    "n_points",
    "mean_error_fraction",
    "leave_one_out_error_fraction",
    "at_zero",
    "standard_errors",
    "warnings",
)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class OptimusTimes:
    """Curves over workers, one per number of servers. `fit` is None for the paper's own coefficients."""

    speeds: str
    model: SpeedModel
    fit: SpeedFit | None
    curves: tuple[SpeedCurve, ...]
    n_steps: int

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        model, fit = self.model, self.fit
        return {
            "mode": model.mode,
            "batch_size": model.batch_size,
            "theta_s": dict(zip(TERMS[model.mode], model.theta, strict=True)),
            "n_steps": self.n_steps,
            "curves": [
                {
                    "n_servers": curve.n_servers,
                    "n_workers": curve.n_workers,
                    "steps_per_s": curve.steps_per_s,
                    "time_s": self.n_steps / curve.steps_per_s,
                    "fastest_n_workers": curve.fastest_n_workers,
                }
                for curve in self.curves
            ],
            "fit": None if fit is None else {name: getattr(fit, name) for name in _OF_A_FIT},
        }


def optimus_times(
    speeds: str, *, batch_size: int | None, n_steps: int, n_workers: Sequence[int], n_servers: Sequence[int]
) -> OptimusTimes:
    """`speeds` names the paper's coefficients, or a CSV file to fit."""
    model, fit = speed_model(speeds, batch_size)
    curves = speed_curves(model, list(n_workers), list(n_servers))
    return OptimusTimes(speeds=speeds, model=model, fit=fit, curves=curves, n_steps=n_steps)


def speed_model(speeds: str, batch_size: int | None) -> tuple[SpeedModel, SpeedFit | None]:
    """A preset, or a fit to a file: of synchronous training where a batch is given, else of asynchronous."""
    name = speeds.strip().lower()
    if name == "paper-async":
        return paper_model("async", batch_size=batch_size), None
    if name == "paper-sync":
        if batch_size is None:
            raise InputError("paper-sync needs the global batch size, which the paper's table does not give.")
        return paper_model("sync", batch_size=batch_size), None
    if not is_there(speeds):
        raise InputError(f"The speeds are {', '.join(_PAPER)} or a CSV file, but there is no file '{speeds}'.")
    with naming(speeds):
        fit = fit_speed(read_speeds(speeds), mode="async" if batch_size is None else "sync", batch_size=batch_size)
    return fit.model, fit
