"""What `traincast forecast` shows: one answer in full, or a table of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traincast.forecasting.forecast import Forecast, complete
from traincast.report.document import Document
from traincast.report.table import Column, Row, Show, Table, show_value
from traincast.units import show_bytes, show_duration
from traincast.views.answer_rows import bound_table, energy_rows, target_rows
from traincast.views.forecast_parts import phases_chart, run_note, settings_of, warnings_of
from traincast.views.verdicts import bound_words, fit_of, with_spread

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


def document_of(answers: Sequence[Forecast], *, has_charts: bool = True) -> Document:
    """One forecast in full; several side by side."""
    if len(answers) == 1:
        return _one(answers[0], has_charts=has_charts)
    from traincast.views.several_forecasts import document_of_several

    return document_of_several(answers)


def _one(answer: Forecast, *, has_charts: bool) -> Document:
    where = f"{complete(answer).model} on {answer.place}"
    subtitle = settings_of([answer])
    rows = (*_number_rows(answer), *energy_rows(answer), *target_rows(answer))
    headers = {"what": "", "expected": "expected", "p10": "p10", "p90": "p90"}
    return Document(
        title=f"{where}, batch {answer.batch_size:,}",
        subtitle=subtitle,
        verdict=_verdict(answer),
        warnings=warnings_of([answer]),
        notes=(_busy(answer), *run_note([answer])),
        assumptions=answer.assumptions,
        tables=(
            Table(title="Forecast", columns=tuple(Column(key=key, header=headers[key]) for key in headers), rows=rows),
            bound_table(answer.bound_s),
        ),
        charts=(phases_chart([answer], ["step"], title=f"One step of {where}"),) if has_charts else (),
    )


def _number_rows(answer: Forecast) -> Iterator[Row]:
    """The numbers that are known, and those of waiting where there is any."""
    for name, (title, show) in _ROWS.items():
        number = answer.estimates.get(name)
        if number is None or (name in ("input_wait_s", "exposed_communication_s") and not number.p50):
            continue
        low, value, high = (show_value(each, show) for each in (number.p10, number.p50, number.p90))
        yield (title, value, low, high) if number.p10 != number.p90 else (title, value, None, None)


# What would help, by what bounds the step.
_ADVICE = {
    "compute": "More FLOP/s would make it faster.",
    "memory": "More memory bandwidth would make it faster.",
    "host": "The device mostly waits for the host to launch ops; a larger batch costs little.",
    "input": "The data loader is slower than the step.",
    "communication": "Faster links or a larger batch per device would make it faster.",
    "pipeline": "Stages mostly wait for each other; more accumulation steps would fill the pipeline.",
}


def _verdict(answer: Forecast) -> str:
    """Fits or not, what bounds it, and the numbers with their spread."""
    bound = bound_words(answer)
    sentences = [
        fit_of(answer),
        f"{bound[0].upper()}{bound[1:]}.",
        f"Step {with_spread(answer, 'step_s', 'duration')}.",
    ]
    if answer.total_s is not None:
        sentences.append(f"Run {with_spread(answer, 'total_s', 'duration')}.")
    if answer.cost_usd is not None:
        sentences.append(f"Cost {with_spread(answer, 'cost_usd', 'usd')}.")
    return " ".join(sentences)


def _busy(answer: Forecast) -> str:
    """What would help, and who works how long."""
    advice = _ADVICE[answer.bound_by]
    if answer.input_wait_s and answer.bound_by != "input":
        advice = "The data loader sets the pace: only a faster one would help."
    host, device = show_duration(answer.host_s), show_duration(answer.device_s)
    links = ""
    if answer.question.n_devices > 1:
        busy, sent = show_duration(answer.communication_s), show_bytes(int(answer.bytes_sent))
        links = f" Links are busy for {busy}, and each device sends {sent}."
    return f"{advice} Per step, the host is busy for {host} and the device for {device}.{links}"
