"""What `traincast forecast` shows: one answer in full, or a table of several."""

from __future__ import annotations

from collections.abc import Sequence

from traincast.cli.answer_rows import bound_table, energy_rows, target_rows
from traincast.forecasting.forecast import PARTS, Forecast
from traincast.planning.answer import Answer
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Cell, Column, Show, Table, show_value
from traincast.units import show_bytes, show_duration, show_usd

# How the numbers of a forecast read, in the order in which people ask for them.
_ROWS: dict[str, tuple[str, Show]] = {
    "step_s": ("step", "duration"),
    "forward_s": ("  forward", "duration"),
    "loss_s": ("  loss", "duration"),
    "backward_s": ("  backward", "duration"),
    "optimizer_s": ("  optimizer", "duration"),
    "exposed_communication_s": ("  communication", "duration"),
    "input_wait_s": ("  waiting for input", "duration"),
    "samples_per_s": ("samples/s", "ratio"),
    "flop_utilisation": ("FLOP utilisation", "percent"),
    "epoch_s": ("epoch", "duration"),
    "total_s": ("total", "duration"),
    "cost_usd": ("cost", "usd"),
    "peak_memory_bytes": ("peak memory", "bytes"),
}


def document_of(answers: Sequence[Answer]) -> Document:
    """One forecast is told, several are compared."""
    return _one(answers[0]) if len(answers) == 1 else _several([each.forecast for each in answers])


def _one(whole: Answer) -> Document:
    answer = whole.forecast
    rows = []
    for name, (title, show) in _ROWS.items():
        value = getattr(answer, name)
        if value is None or (name in ("input_wait_s", "exposed_communication_s") and not value):
            continue
        low, high = answer.interval(name)
        spread = [show_value(low, show), show_value(high, show)] if low != high else [None, None]
        rows.append((title, show_value(value, show), *spread))
    rows += [*energy_rows(whole), *target_rows(whole)]
    columns = (
        Column(key="what", header=""),
        Column(key="expected", header="expected"),
        Column(key="p10", header="p10"),
        Column(key="p90", header="p90"),
    )
    return Document(
        title=f"{answer.model} on {answer.place}, batch {answer.batch_size:,}",
        subtitle=_settings(answer),
        tables=(Table(title="Forecast", columns=columns, rows=tuple(rows)), bound_table(whole.bound_s)),
        charts=(_phases([answer], ["step"], title=f"One step of {answer.model} on {answer.place}"),),
        notes=(
            _verdict(answer),
            *_fit(answer),
            *_remarks([answer]),
            *(f"Assumed: {assumption}" for assumption in whole.assumptions),
        ),
    )


def _several(forecasts: Sequence[Forecast]) -> Document:
    first = forecasts[0]
    columns = [
        Column(key="place", header="device" if _are_devices(forecasts) else "on", show="name"),
        Column(key="batch_size", header="batch", show="integer"),
        Column(key="step_s", header="step", show="duration"),
        Column(key="step_p10_s", header="p10", show="duration"),
        Column(key="step_p90_s", header="p90", show="duration"),
        Column(key="samples_per_s", header="samples/s", show="ratio"),
        Column(key="bound_by", header="bound by"),
        Column(key="peak_memory_bytes", header="memory", show="bytes"),
        Column(key="fits", header="fits"),
    ]
    if first.total_s is not None:
        columns.append(Column(key="total_s", header="total", show="duration"))
    if first.cost_usd is not None:
        columns.append(Column(key="cost_usd", header="cost", show="usd"))
    labels = [f"{answer.place}, {answer.batch_size:,}" for answer in forecasts]
    return Document(
        title=f"{first.model} on {_counted(forecasts)}",
        subtitle=_settings(first),
        tables=(
            Table(
                title="Forecasts",
                columns=tuple(columns),
                rows=tuple(tuple(_cell(answer, column.key) for column in columns) for answer in forecasts),
            ),
        ),
        charts=(_steps(forecasts), _phases(forecasts, labels, title=f"One step of {first.model}, by phase")),
        notes=(*_remarks(forecasts), *(f"Assumed: {assumption}." for assumption in first.question.trace.assumptions)),
    )


def _are_devices(forecasts: Sequence[Forecast]) -> bool:
    return all(answer.question.n_devices == 1 for answer in forecasts)


def _cell(answer: Forecast, key: str) -> Cell:
    if key in ("step_p10_s", "step_p90_s"):
        return answer.interval("step_s")[key == "step_p90_s"]
    if key == "fits":
        return "yes" if answer.fits else "NO"
    return getattr(answer, key)


def _counted(forecasts: Sequence[Forecast]) -> str:
    places = list(dict.fromkeys(answer.place for answer in forecasts))
    n_batches = len({answer.batch_size for answer in forecasts})
    several = f"{len(places)} {'devices' if _are_devices(forecasts) else 'places'}"
    where = places[0] if len(places) == 1 else several
    return f"{where}, {n_batches} batch sizes" if n_batches > 1 else f"{where}, batch {forecasts[0].batch_size:,}"


def _settings(answer: Forecast) -> str:
    question = answer.question
    parts = [question.settings.precision, question.settings.optimizer, f"method {question.method.name}"]
    parts.append("calibrated" if question.device.prices else f"host {question.host.name}")
    if question.layout != "nchw":
        parts.append(question.layout)
    if question.compiled:
        parts.append("compiled")
    if question.n_devices > 1:
        parts.append(f"{question.strategy.name} on {question.n_devices} devices")
    if question.split.n_devices > 1:
        parts.append(f"tensor {question.tensor_parallel} x pipeline {question.pipeline_parallel} a replica")
    if question.accumulation_steps > 1:
        parts.append(f"{question.accumulation_steps} passes of {question.micro_batch_size:,}")
    elif question.n_devices > 1:
        parts.append(f"{question.micro_batch_size:,} samples each")
    return ", ".join(parts)


def _verdict(answer: Forecast) -> str:
    told = {
        "compute": "Bound by compute: more FLOP/s would make it faster.",
        "memory": "Bound by memory: more bandwidth would make it faster.",
        "host": "Bound by the host: the device waits for ops more than it works; a larger batch costs little.",
        "input": "Bound by the input: the data loader is slower than the step.",
        "communication": "Bound by communication: faster links or a larger batch a device would make it faster.",
    }
    host, device = show_duration(answer.host_s), show_duration(answer.device_s)
    links = ""
    if answer.question.n_devices > 1:
        busy, sent = show_duration(answer.communication_s), show_bytes(int(answer.bytes_sent))
        links = f" Links are busy for {busy}, and a device sends {sent}."
    return f"{told[answer.bound_by]} The host works {host} on a step and the device {device}.{links}"


def _fit(answer: Forecast) -> tuple[str, ...]:
    usable = show_value(answer.question.device.usable_memory_bytes, "bytes")
    return (f"It fits: {answer.device} has {usable} to use.",) if answer.fits else ()  # a warning says that it does not


def _remarks(forecasts: Sequence[Forecast]) -> tuple[str, ...]:
    """Everything that holds for one of them, once."""
    first = forecasts[0].question
    notes: dict[str, None] = {}
    if first.n_samples is not None:
        price = "" if first.run_price_usd_per_hour is None else f" at {show_usd(first.run_price_usd_per_hour)} an hour"
        epochs = "1 epoch" if first.n_epochs == 1 else f"{first.n_epochs:,} epochs"
        notes[f"The run is {epochs} of {first.n_samples:,} samples{price}."] = None
    for answer in forecasts:
        prefix = "" if len(forecasts) == 1 else f"{answer.place}, batch {answer.batch_size:,}: "
        for warning in answer.warnings:
            is_about_all = all(warning in other.warnings for other in forecasts)
            notes[f"Warning: {'' if is_about_all else prefix}{warning}"] = None
    return tuple(notes)


def _steps(forecasts: Sequence[Forecast]) -> Chart:
    """Over batch sizes, one line a device; with one batch size, one bar a device."""
    places = list(dict.fromkeys(answer.place for answer in forecasts))
    has_batches = len({answer.batch_size for answer in forecasts}) > 1
    title = f"Step time of {forecasts[0].model}"
    if not has_batches:
        bars = Series(name="step", x=places, y=[answer.step_s for answer in forecasts])
        return Chart(title=title, kind="bar", series=(bars,), x_label="device", y_label="step time", y_show="duration")
    lines = []
    for place in places:
        own = [answer for answer in forecasts if answer.place == place]
        lines.append(Series(name=place, x=[answer.batch_size for answer in own], y=[answer.step_s for answer in own]))
    return Chart(
        title=title,
        kind="line",
        series=tuple(lines),
        x_label="batch size",
        y_label="step time",
        x_show="integer",
        y_show="duration",
    )


def _phases(forecasts: Sequence[Forecast], labels: list[str], *, title: str) -> Chart:
    shown = [part for part in PARTS if any(getattr(answer, part) for answer in forecasts)]
    return Chart(
        title=title,
        kind="stacked_bar",
        series=tuple(
            Series(
                name=part.removesuffix("_s").replace("_", " "),
                x=labels,
                y=[getattr(answer, part) for answer in forecasts],
            )
            for part in shown
        ),
        x_label="device and batch" if len(forecasts) > 1 else "",
        y_label="time",
        y_show="duration",
    )
