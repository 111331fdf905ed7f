"""traincast: what will this training run take, before you rent the GPUs?

The names below are the supported interface; all else may change. They are imported when first used, so that
`import traincast` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from traincast.api.calibrating import Calibration, calibrate
    from traincast.api.converging import at_batch, converge, fit_curve
    from traincast.api.explaining import explain
    from traincast.api.fitting import largest_that_fits, smallest_gpu
    from traincast.api.forecasts import forecast, scale
    from traincast.api.logs import read_log
    from traincast.api.measuring import measure, measure_epoch
    from traincast.api.models import capture, estimate_memory, layers, load_model
    from traincast.api.planning import plan
    from traincast.api.simulating import simulate
    from traincast.api.size_transfer import transfer
    from traincast.errors import TraincastError
    from traincast.forecasting.forecast import Forecast
    from traincast.forecasting.scale import Scaling
    from traincast.measurement.measured import Measurement
    from traincast.planning.plan import Plan
    from traincast.scheduling.schedule import Schedule
    from traincast.trace.trace import Trace

_HOME = {
    "at_batch": "traincast.api.converging",
    "calibrate": "traincast.api.calibrating",
    "capture": "traincast.api.models",
    "converge": "traincast.api.converging",
    "estimate_memory": "traincast.api.models",
    "explain": "traincast.api.explaining",
    "fit_curve": "traincast.api.converging",
    "forecast": "traincast.api.forecasts",
    "largest_that_fits": "traincast.api.fitting",
    "layers": "traincast.api.models",
    "load_model": "traincast.api.models",
    "measure": "traincast.api.measuring",
    "measure_epoch": "traincast.api.measuring",
    "plan": "traincast.api.planning",
    "read_log": "traincast.api.logs",
    "scale": "traincast.api.forecasts",
    "simulate": "traincast.api.simulating",
    "smallest_gpu": "traincast.api.fitting",
    "transfer": "traincast.api.size_transfer",
    "Calibration": "traincast.api.calibrating",
    "Forecast": "traincast.forecasting.forecast",
    "Measurement": "traincast.measurement.measured",
    "Plan": "traincast.planning.plan",
    "Schedule": "traincast.scheduling.schedule",
    "Scaling": "traincast.forecasting.scale",
    "Trace": "traincast.trace.trace",
    "TraincastError": "traincast.errors",
}

__all__ = [
    "Calibration",
    "Forecast",
    "Measurement",
    "Plan",
    "Scaling",
    "Schedule",
    "Trace",
    "TraincastError",
    "at_batch",
    "calibrate",
    "capture",
    "converge",
    "estimate_memory",
    "explain",
    "fit_curve",
    "forecast",
    "largest_that_fits",
    "layers",
    "load_model",
    "measure",
    "measure_epoch",
    "plan",
    "read_log",
    "scale",
    "simulate",
    "smallest_gpu",
    "transfer",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'traincast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
