"""What `traincast forecast` shows of several places or batch sizes: each with its own numbers, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from traincast.forecasting.forecast import Forecast
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Cell, Column, Table
from traincast.units import show_duration, show_energy, show_kg, show_usd, show_watts, shown_or_never
from traincast.views.forecast_parts import phases_chart, run_note, settings_of, warnings_of
from traincast.views.verdicts import bound_words, with_spread

_BATCH = Column(key="batch_size", header="batch", show="integer")


def document_of_several(forecasts: Sequence[Forecast]) -> Document:
    """Everything that a single forecast shows, for each of them."""
    labels = [f"{forecast.place}, {forecast.batch_size:,}" for forecast in forecasts]
    model = forecasts[0].model
    return Document(
        title=f"{model} on {_counted(forecasts)}",
        subtitle=settings_of(forecasts),
        verdict=_verdict(forecasts),
        tables=(_steps(forecasts), *_bills(forecasts), *_targets(forecasts)),
        charts=(_chart(forecasts), phases_chart(forecasts, labels, title=f"One step of {model}, by phase")),
        warnings=warnings_of(forecasts),
        notes=run_note(forecasts),
        assumptions=_assumptions(forecasts),
    )


def _verdict(forecasts: Sequence[Forecast]) -> str:
    """How many fit, and the fastest and the cheapest of those."""
    fitting = [forecast for forecast in forecasts if forecast.fits]
    if not fitting:
        return "None of these fits in the memory of its devices."
    everyone = "Both" if len(forecasts) == 2 else f"All {len(forecasts)}"
    who = everyone if len(fitting) == len(forecasts) else f"{len(fitting)} of {len(forecasts)}"
    fastest = max(fitting, key=lambda forecast: forecast.samples_per_s)
    rate = with_spread(fastest, "samples_per_s", "ratio", " samples/s")
    sentences = [f"{who} fit.", f"Fastest: {_choice(fastest)} with {rate}, {bound_words(fastest)}."]
    priced = [(forecast.cost_usd, forecast) for forecast in fitting if forecast.cost_usd is not None]
    if priced:
        _, cheapest = min(priced, key=lambda pair: pair[0])
        sentences.append(f"Cheapest: {_choice(cheapest)} for {with_spread(cheapest, 'cost_usd', 'usd')}.")
    return " ".join(sentences)


def _choice(forecast: Forecast) -> str:
    return f"{forecast.place}, batch {forecast.batch_size:,},"


def _steps(forecasts: Sequence[Forecast]) -> Table:
    columns = [
        _place_column(forecasts),
        _BATCH,
        Column(key="step_s", header="step", show="duration"),
        Column(key="step_p10_s", header="p10", show="duration"),
        Column(key="step_p90_s", header="p90", show="duration"),
        Column(key="samples_per_s", header="samples/s", show="ratio"),
        Column(key="bound_by", header="bound by"),
        Column(key="peak_memory_bytes", header="memory", show="bytes"),
        Column(key="fits", header="fits"),
    ]
    if any(forecast.total_s is not None for forecast in forecasts):
        columns.append(Column(key="total_s", header="total", show="duration"))
    if any(forecast.cost_usd is not None for forecast in forecasts):
        columns.append(Column(key="cost_usd", header="cost", show="usd"))
    rows = tuple(tuple(_cell(forecast, column.key) for column in columns) for forecast in forecasts)
    return Table(title="Forecasts", columns=tuple(columns), rows=rows)


def _cell(forecast: Forecast, key: str) -> Cell:
    if key in ("step_p10_s", "step_p90_s"):
        return forecast.interval("step_s")[key == "step_p90_s"]
    if key == "fits":
        return "yes" if forecast.fits else "NO"
    return getattr(forecast, key)


def _bills(forecasts: Sequence[Forecast]) -> tuple[Table, ...]:
    """Price per hour, power and energy; only where the length of the run is known."""
    if all(forecast.total_s is None for forecast in forecasts):
        return ()
    rows = [_bill(forecast) for forecast in forecasts]
    headers = {
        "price_usd_per_hour": Column(key="price_usd_per_hour", header="per hour", show="usd"),
        "price_date": Column(key="price_date", header="price date", show="name"),
        "power": Column(key="power", header="mean power", show="name"),
        "energy": Column(key="energy", header="energy", show="name"),
        "co2": Column(key="co2", header="CO2", show="name"),
        "grid": Column(key="grid", header="grid", show="name"),
    }
    known = [key for key in headers if any(row[key] is not None for row in rows)]
    if not known:
        return ()
    return (
        Table(
            title="Price and energy" if "price_usd_per_hour" in known else "Energy",
            columns=(_place_column(forecasts), _BATCH, *(headers[key] for key in known)),
            rows=tuple(
                (one.place, one.batch_size, *(row[key] for key in known))
                for one, row in zip(forecasts, rows, strict=True)
            ),
        ),
    )


def _bill(forecast: Forecast) -> dict[str, Cell]:
    question, energy = forecast.question, forecast.energy
    is_listed = question.price_usd_per_hour is None and question.cluster is not None
    return {
        "price_usd_per_hour": question.run_price_usd_per_hour,
        "price_date": (question.cluster.price_date or None) if is_listed and question.cluster else None,
        "power": None if energy is None else show_watts(energy.power_w.p50),
        "energy": None if energy is None or energy.total_j is None else show_energy(energy.total_j.p50),
        "co2": None if energy is None or energy.co2_kg is None else show_kg(energy.co2_kg.p50),
        "grid": None if energy is None or energy.co2_kg is None or energy.grid is None else energy.grid.name,
    }


def _targets(forecasts: Sequence[Forecast]) -> tuple[Table, ...]:
    """Time to the target on each place; all forecasts have a target or none has."""
    found = [(one, one.to_target) for one in forecasts if one.to_target is not None]
    if not found:
        return ()
    has_cost = any(there.cost_usd is not None for _, there in found)
    rows = []
    for forecast, there in found:
        time = there.total_s
        cells = [
            forecast.place,
            forecast.batch_size,
            there.probability,
            shown_or_never(there.updates.p50, lambda value: f"{value:,.0f}"),
            *(shown_or_never(value, show_duration) for value in (time.p50, time.p10, time.p90)),
        ]
        if has_cost:
            cells.append(None if there.cost_usd is None else shown_or_never(there.cost_usd.p50, show_usd))
        rows.append(tuple(cells))
    first = found[0][1]
    columns = [
        _place_column([forecast for forecast, _ in found]),
        _BATCH,
        Column(key="reached_fraction", header="chance", show="percent"),
        *(Column(key=key, header=key, show="name") for key in ("updates", "time", "p10", "p90")),
    ]
    if has_cost:
        columns.append(Column(key="cost", header="cost", show="name"))
    return (Table(title=f"To {first.metric} {first.target:g}", columns=tuple(columns), rows=tuple(rows)),)


def _assumptions(forecasts: Sequence[Forecast]) -> tuple[str, ...]:
    """Those that all share; prices, links and grids differ by place and are left to its own forecast."""
    first, *others = (forecast.assumptions for forecast in forecasts)
    common = [sentence for sentence in first if all(sentence in other for other in others)]
    if all(len(one) == len(common) for one in (first, *others)):
        return tuple(common)
    return (
        *common,
        "Assumptions about a single place (price, links, power, grid) are listed in its own forecast and in the JSON.",
    )


def _are_devices(forecasts: Sequence[Forecast]) -> bool:
    return all(forecast.question.cluster is None for forecast in forecasts)


def _place_column(forecasts: Sequence[Forecast]) -> Column:
    return Column(key="place", header="device" if _are_devices(forecasts) else "on", show="name")


def _counted(forecasts: Sequence[Forecast]) -> str:
    places = list(dict.fromkeys(forecast.place for forecast in forecasts))
    n_batches = len({forecast.batch_size for forecast in forecasts})
    several = f"{len(places)} {'devices' if _are_devices(forecasts) else 'places'}"
    where = places[0] if len(places) == 1 else several
    return f"{where}, {n_batches} batch sizes" if n_batches > 1 else f"{where}, batch {forecasts[0].batch_size:,}"


def _chart(forecasts: Sequence[Forecast]) -> Chart:
    """Over batch sizes, one line per place; with one batch size, one bar per place."""
    places = list(dict.fromkeys(forecast.place for forecast in forecasts))
    has_batches = len({forecast.batch_size for forecast in forecasts}) > 1
    title = f"Step time of {forecasts[0].model}"
    if not has_batches:
        bars = Series(name="step", x=places, y=[forecast.step_s for forecast in forecasts])
        what = "device" if _are_devices(forecasts) else "place"
        return Chart(title=title, kind="bar", series=(bars,), x_label=what, y_label="step time", y_show="duration")
    lines = []
    for place in places:
        own = [one for one in forecasts if one.place == place]
        lines.append(Series(name=place, x=[one.batch_size for one in own], y=[one.step_s for one in own]))
    return Chart(
        title=title,
        kind="line",
        series=tuple(lines),
        x_label="batch size",
        y_label="step time",
        x_show="integer",
        y_show="duration",
    )
