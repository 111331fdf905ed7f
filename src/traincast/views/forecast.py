"""What `traincast forecast` shows: one answer in full, or a table of several."""

from __future__ import annotations

from collections.abc import Sequence

from traincast.forecasting.forecast import Forecast
from traincast.report.document import Document
from traincast.report.table import Column, Show, Table, show_value
from traincast.units import show_bytes, show_duration
from traincast.views.answer_rows import bound_table, energy_rows, target_rows
from traincast.views.forecast_parts import phases_chart, remarks_on, settings_of
from traincast.views.several_forecasts import document_of_several

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


def document_of(answers: Sequence[Forecast]) -> Document:
    """One forecast is told, several are compared."""
    return _one(answers[0]) if len(answers) == 1 else document_of_several(answers)


def _one(answer: Forecast) -> Document:
    rows = []
    for name, (title, show) in _ROWS.items():
        value = getattr(answer, name)
        if value is None or (name in ("input_wait_s", "exposed_communication_s") and not value):
            continue
        low, high = answer.interval(name)
        spread = [show_value(low, show), show_value(high, show)] if low != high else [None, None]
        rows.append((title, show_value(value, show), *spread))
    rows += [*energy_rows(answer), *target_rows(answer)]
    columns = (
        Column(key="what", header=""),
        Column(key="expected", header="expected"),
        Column(key="p10", header="p10"),
        Column(key="p90", header="p90"),
    )
    return Document(
        title=f"{answer.model} on {answer.place}, batch {answer.batch_size:,}",
        subtitle=settings_of([answer]),
        tables=(Table(title="Forecast", columns=columns, rows=tuple(rows)), bound_table(answer.bound_s)),
        charts=(phases_chart([answer], ["step"], title=f"One step of {answer.model} on {answer.place}"),),
        notes=(
            _verdict(answer),
            *_fit(answer),
            *remarks_on([answer]),
            *(f"Assumed: {assumption}" for assumption in answer.assumptions),
        ),
    )


_BOUND_BY = {
    "compute": "Bound by compute: more FLOP/s would make it faster.",
    "memory": "Bound by memory: more bandwidth would make it faster.",
    "host": "Bound by the host: most of the time the device waits for ops; a larger batch costs little.",
    "input": "Bound by the input: the data loader is slower than the step.",
    "communication": "Bound by communication: faster links or a larger batch a device would make it faster.",
    "pipeline": "Bound by the pipeline: stages wait for each other most; more accumulation steps would fill it.",
}


def _verdict(answer: Forecast) -> str:
    told = _BOUND_BY[answer.bound_by]
    if answer.input_wait_s and answer.bound_by != "input":
        head = told.split(":")[0]
        told = f"{head}, but the data loader is slower still: it sets the pace, and only a faster one would help."
    host, device = show_duration(answer.host_s), show_duration(answer.device_s)
    links = ""
    if answer.question.n_devices > 1:
        busy, sent = show_duration(answer.communication_s), show_bytes(int(answer.bytes_sent))
        links = f" Links are busy for {busy}, and a device sends {sent}."
    return f"{told} The host works {host} on a step and the device {device}.{links}"


def _fit(answer: Forecast) -> tuple[str, ...]:
    usable = show_value(answer.question.device.usable_memory_bytes, "bytes")
    return (f"It fits: {answer.device} has {usable} to use.",) if answer.fits else ()  # a warning says that it does not
