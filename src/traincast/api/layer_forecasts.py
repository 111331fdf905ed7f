"""What traincast says about layers that were timed alone: predicted beside measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traincast.api.measuring import device_of
from traincast.errors import TraincastError
from traincast.hardware.host import THIS_MACHINE

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast
    from traincast.records.record import Record

MOST = 60  # each is captured anew, which takes a twentieth of a second
_NOTHING_TO_LEARN = "pool"  # has no weights, so there is no training step to forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerForecast:
    """One layer: its kind, and the seconds of its step."""

    layer: str
    predicted_s: float
    measured_s: float


def forecast_layers(records: Sequence[Record], *, most: int = MOST) -> tuple[tuple[LayerForecast, ...], str]:
    """Forecasts of the layers among these records that were timed on this machine, at most so many, evenly chosen.

    What all of them have in common that should be known, or why there is none, is a sentence.
    """
    known = [one for one in records if one.error is None and one.task.get("layer") not in (None, _NOTHING_TO_LEARN)]
    if not known:
        return (), ""
    from traincast.records.environment import read_environment

    here = read_environment(str(known[-1].task.get("device", "cpu")))
    own = [one for one in known if one.environment.device == here.device]
    chosen = own[:: max(1, -(-len(own) // most))]
    told: list[str] = []
    found = []
    for record in chosen:
        try:
            forecast = _forecast(record)
        except TraincastError as error:  # the measurement stands by itself
            told.append(f"Some have no forecast: {error}")
            continue
        told += forecast.warnings
        measured_s = float(record.values["step_s"])
        layer = str(record.task["layer"])
        found.append(LayerForecast(layer=layer, predicted_s=forecast.step_s, measured_s=measured_s))
    return tuple(found), next(iter(told), "")


def _forecast(record: Record) -> Forecast:
    from traincast.api.forecasts import forecast
    from traincast.api.models import capture
    from traincast.microbenchmarks.layer_bench import layer_of

    layer = layer_of(record.task)
    trace = capture(layer.module, layer.make_inputs, loss=layer.loss, optimizer=str(record.task["optimizer"]))
    return forecast(
        trace,
        on=device_of(record.environment),
        batch_size=int(record.task["batch"] or 0),
        host=THIS_MACHINE if record.environment.device_kind == "cpu" else None,
    )
