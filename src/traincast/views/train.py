"""What every recipe of `traincast train` shows: its forecast, and afterwards predicted beside measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.units import show_duration, show_usd

if TYPE_CHECKING:
    from traincast.api.recipe_forecast import RecipeForecast, StageForecast
    from traincast.estimate import Estimate
    from traincast.recipes.engine.result import TrainResult

_PARTS = {"training": "train_s", "input": "input_s", "evaluation": "evaluate_s"}


def forecast_document(name: str, forecast: RecipeForecast, about: tuple[Table, ...] = ()) -> Document:
    """Before the run; `about` are tables of what it trains on."""
    return Document(
        title=f"{name} on {forecast.place}: {show_duration(forecast.total_s)}",
        subtitle="forecast, before anything runs",
        tables=(*about, forecast_table(forecast)),
        charts=(stages_chart(forecast),),
        notes=forecast_notes(forecast),
    )


def forecast_table(forecast: RecipeForecast) -> Table:
    """One row per stage, and their sum where there are several."""
    columns = columns_of(
        "stage as name, n_steps: steps, step_s: one step, train_s: training, input_s: input, evaluate_s: evaluation, "
        "total_s: total, total_p10_s: p10, total_p90_s: p90, peak_memory_bytes: memory"
    )
    rows = [_stage_row(stage, has_input=forecast.has_input) for stage in forecast.stages]
    if len(rows) > 1:
        train_s, read_s, evaluate_s = (
            sum(getattr(stage, part) for stage in forecast.stages) for part in _PARTS.values()
        )
        n_steps = sum(stage.stage.n_steps for stage in forecast.stages)
        ends = (forecast.total_s, *forecast.interval(), forecast.peak_memory_bytes)
        rows.append(("all", n_steps, None, train_s, read_s if forecast.has_input else None, evaluate_s, *ends))
    return Table(title="Forecast", columns=columns, rows=tuple(rows))


def forecast_notes(forecast: RecipeForecast) -> tuple[str, ...]:
    """Cost and what to know."""
    cost = () if forecast.cost_usd is None else (f"It costs {show_usd(forecast.cost_usd)}.",)
    return (*cost, *(f"Warning: {warning}" for warning in forecast.warnings))


def with_forecasts(document: Document, asked: RecipeForecast, here: RecipeForecast) -> tuple[Document, Document]:
    """A result for the terminal, and for pages: a terminal has shown the forecasts before the run, a page has not.

    `here` is what the run is compared with, and `asked` what was asked for, which may be elsewhere.
    """
    page = _with_forecast(document, here)
    if asked is here:
        return document, page
    return _with_forecast(document, asked), _with_forecast(page, asked)


def _with_forecast(document: Document, forecast: RecipeForecast) -> Document:
    table = replace(forecast_table(forecast), title=f"Forecast for {forecast.place}")
    notes = tuple(f"{forecast.place}: {note}" for note in forecast_notes(forecast))
    return replace(document, tables=(*document.tables, table), notes=(*document.notes, *notes))


def comparison_table(forecast: RecipeForecast, measured_s: Mapping[str, float]) -> Table:
    """Predicted beside measured, by stage; stages that did not run have a dash."""
    rows = [(stage.name, *_against(stage.total, measured_s.get(stage.name))) for stage in forecast.stages]
    if len(rows) > 1 and all(stage.name in measured_s for stage in forecast.stages):
        took_s = sum(measured_s[stage.name] for stage in forecast.stages)
        rows.append(("all", *_against(forecast.total, took_s)))
    return _compared("Predicted and measured", rows)


def parts_table(stage: StageForecast, result: TrainResult) -> Table:
    """Predicted beside measured, by what the time of one stage went to."""
    rows = [
        ("training", *_against(stage.train, result.train_s)),
        ("input", *_against(stage.input, result.input_s)),
        ("evaluation", *_against(stage.evaluate, result.evaluate_s)),
        ("checkpoints and log", None, None, None, result.other_s, None),
        ("total", *_against(stage.total, result.total_s)),
    ]
    return _compared("Predicted and measured", rows)


def times_chart(rows: Sequence[tuple[str, float | None, float | None]], x_label: str = "stage") -> Chart:
    """(name, predicted and measured seconds) as bars side by side."""
    names = [name for name, _, _ in rows]
    return Chart(
        title="Predicted and measured time",
        kind="bar",
        series=(
            Series(name="predicted", x=names, y=[predicted_s for _, predicted_s, _ in rows]),
            Series(name="measured", x=names, y=[measured_s for _, _, measured_s in rows]),
        ),
        x_label=x_label,
        y_label="time",
        y_show="duration",
    )


def compared_chart(forecast: RecipeForecast, measured_s: Mapping[str, float]) -> Chart:
    """The stages of `comparison_table`."""
    return times_chart([(stage.name, stage.total_s, measured_s.get(stage.name)) for stage in forecast.stages])


def curve_charts(result: TrainResult) -> tuple[Chart, ...]:
    """Loss and accuracy as the log has them: steps, and evaluations as points."""
    from traincast.api.logs import read_log

    log = read_log(result.log_path)
    charts = []
    for metric in ("loss", "accuracy"):
        lines = []
        for split, name in (("train", "training batch"), ("validation", "test data")):
            found = log.find(metric, split)
            lines.append(Series(name=name, x=found.steps.tolist(), y=found.values.tolist(), is_dots=split != "train"))
        charts.append(
            Chart(
                title=f"{metric.capitalize()} of {result.name}",
                kind="line",
                series=tuple(lines),
                x_label="step",
                y_label=metric,
                x_show="integer",
                y_show="percent" if metric == "accuracy" else "ratio",
            )
        )
    return tuple(charts)


def _stage_row(stage: StageForecast, *, has_input: bool) -> tuple[object, ...]:
    read_s = stage.input_s if has_input else None
    times = (stage.step.step_s, stage.train_s, read_s, stage.evaluate_s or None, stage.total_s)
    return (stage.name, stage.stage.n_steps, *times, *stage.total.ends, stage.peak_memory_bytes)


def _against(predicted: Estimate, measured_s: float | None) -> tuple[float | None, ...]:
    ratio = predicted.p50 / measured_s if measured_s else None
    return predicted.p50, *predicted.ends, measured_s, ratio


def _compared(title: str, rows: Sequence[tuple[object, ...]]) -> Table:
    columns = columns_of(
        "what: as name, predicted_s: predicted, predicted_p10_s: p10, predicted_p90_s: p90, "
        "measured_s: measured, ratio: predicted/measured"
    )
    return Table(title=title, columns=columns, rows=tuple(rows))


def stages_chart(forecast: RecipeForecast) -> Chart:
    """What is forecast of each, by what it goes to."""
    names = [stage.name for stage in forecast.stages]
    series = [
        Series(name=title, x=names, y=[getattr(stage, part) for stage in forecast.stages])
        for title, part in _PARTS.items()
    ]
    return Chart(
        title=f"What the stages take on {forecast.place}",
        kind="stacked_bar",
        series=tuple(series),
        x_label="stage",
        y_label="time",
        y_show="duration",
    )
