"""What `traincast forecast` shows of several models: what each could do at the peak of the device, and what it does."""

from __future__ import annotations

from collections.abc import Sequence

from traincast.forecasting.forecast import Forecast
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Cell, Column, Table
from traincast.units import show_percent
from traincast.views.forecast_parts import settings_of, warnings_of
from traincast.views.verdicts import bound_words

_COLUMNS = (
    Column(key="model", header="model", show="name"),
    Column(key="on", header="on", show="name"),
    Column(key="batch_size", header="batch", show="integer"),
    Column(key="sample_flop", header="flop/sample", show="flop"),
    Column(key="step_s", header="step", show="duration"),
    Column(key="peak_samples_per_s", header="samples/s at peak", show="ratio"),
    Column(key="samples_per_s", header="expected", show="ratio"),
    Column(key="p10_samples_per_s", header="p10", show="ratio"),
    Column(key="p90_samples_per_s", header="p90", show="ratio"),
    Column(key="peak_fraction", header="of peak", show="percent"),
    Column(key="bound_by", header="bound by"),
    Column(key="peak_memory_bytes", header="memory", show="bytes"),
    Column(key="fits", header="fits"),
)


def document_of_models(forecasts: Sequence[Forecast]) -> Document:
    """One row per model, place and batch size."""
    models = list(dict.fromkeys(forecast.model for forecast in forecasts))
    return Document(
        title=f"{', '.join(models)} on {', '.join(dict.fromkeys(forecast.place for forecast in forecasts))}",
        subtitle=settings_of(forecasts),
        verdict=_verdict(forecasts),
        tables=(
            Table(
                title="Forecasts",
                columns=_COLUMNS,
                rows=tuple(_row(one) for one in forecasts),
                notes=(_peak_words(forecasts),),
            ),
        ),
        charts=(_chart(forecasts),),
        warnings=warnings_of(forecasts),
    )


def _peak_words(forecasts: Sequence[Forecast]) -> str:
    rates = {
        f"{one.device} {one.question.device.peak_flop_per_s(one.question.settings.precision) / 1e12:.3g} Tflop/s"
        for one in forecasts
    }
    return (
        f"At peak: the rate of the datasheet ({', '.join(sorted(rates))}) over the model's flop, a multiply-add "
        "counted as 2. Of peak is expected over at peak."
    )


def _row(forecast: Forecast) -> tuple[Cell, ...]:
    own: dict[str, Cell] = {
        "on": forecast.place,
        "sample_flop": _flop(forecast),
        "peak_fraction": forecast.flop_utilisation,
        "fits": "yes" if forecast.fits else "NO",
    }
    own["p10_samples_per_s"], own["p90_samples_per_s"] = forecast.interval("samples_per_s")
    return tuple(own[column.key] if column.key in own else getattr(forecast, column.key) for column in _COLUMNS)


def _flop(forecast: Forecast) -> float:
    trace, batch_size = forecast.question.trace, forecast.question.micro_batch_size
    return (trace.forward_flop(batch_size) + trace.backward_flop(batch_size)) / batch_size


def _verdict(forecasts: Sequence[Forecast]) -> str:
    best = max(forecasts, key=lambda one: one.flop_utilisation)
    least = min(forecasts, key=lambda one: one.flop_utilisation)
    fitting = [one for one in forecasts if one.fits]
    fits = "All fit." if len(fitting) == len(forecasts) else f"{len(fitting)} of {len(forecasts)} fit."
    return (
        f"{fits} Nearest to the peak of the datasheet: {best.model} with {show_percent(best.flop_utilisation)} of it, "
        f"{bound_words(best)}. Furthest: {least.model} with {show_percent(least.flop_utilisation)}, "
        f"{bound_words(least)}."
    )


def _chart(forecasts: Sequence[Forecast]) -> Chart:
    has_places = len({(one.place, one.batch_size) for one in forecasts}) > 1
    labels = [f"{one.model}, {one.place}, {one.batch_size:,}" if has_places else one.model for one in forecasts]
    return Chart(
        title="Throughput at peak and as expected",
        kind="bar",
        series=(
            Series(name="at peak", x=labels, y=[one.peak_samples_per_s for one in forecasts]),
            Series(name="expected", x=labels, y=[one.samples_per_s for one in forecasts]),
        ),
        x_label="model",
        y_label="samples/s",
        y_show="ratio",
    )
