"""What `traincast forecast` shows: one answer in full, or a table of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from traincast.forecasting.forecast import Forecast, complete
from traincast.report.document import Document
from traincast.report.table import Row, Show, Table, columns_of, show_value
from traincast.units import show_bytes, show_duration
from traincast.views.answer_rows import bound_table, energy_rows, target_rows
from traincast.views.forecast_parts import phases_chart, run_note, settings_of, warnings_of
from traincast.views.verdicts import bound_words, fit_of, with_spread
from traincast.views.ways_out import ways_sentence, ways_table

if TYPE_CHECKING:
    from traincast.planning.ways_out import WayOut

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
    "tokens_per_s": ("tokens/s", "ratio"),
    "tokens_per_s_per_device": ("tokens/s per device", "ratio"),
    "flop_utilisation": ("FLOP utilisation", "percent"),
    "mfu": ("MFU", "percent"),
    "hfu": ("HFU, with recomputation", "percent"),
    "epoch_s": ("epoch", "duration"),
    "total_s": ("total", "duration"),
    "device_hours": ("device hours", "ratio"),
    "cost_usd": ("cost", "usd"),
    "peak_memory_bytes": ("peak memory", "bytes"),
}
_SHOWN_IF_ANY = ("input_wait_s", "exposed_communication_s")
_OF_TRAINING = ("loss_s", "backward_s", "optimizer_s")


def document_of(answers: Sequence[Forecast], *, has_charts: bool = True) -> Document:
    """One forecast in full; several side by side."""
    if len({answer.model for answer in answers}) > 1:
        from traincast.views.several_models import document_of_models

        return document_of_models(answers)
    if len(answers) == 1:
        return _one(answers[0], has_charts=has_charts)
    from traincast.views.several_forecasts import document_of_several

    return document_of_several(answers)


def _one(answer: Forecast, *, has_charts: bool) -> Document:
    where = f"{complete(answer).model} on {answer.place}"
    subtitle = settings_of([answer])
    rows = (*_number_rows(answer), *energy_rows(answer), *target_rows(answer))
    verdict, warnings, notes = _verdict(answer), warnings_of([answer]), (_busy(answer), *run_note([answer]))
    bounds = bound_table(answer.bound_s)
    ways = _ways_out(answer)
    return Document(
        title=f"{where}, batch {answer.batch_size:,}",
        subtitle=subtitle,
        verdict=verdict,
        warnings=warnings,
        notes=(*ways_sentence(ways), *notes),
        assumptions=answer.assumptions,
        tables=(
            Table(title="Forecast", columns=columns_of("what:, expected, p10, p90"), rows=rows),
            *ways_table(ways),
            bounds,
        ),
        charts=(phases_chart([answer], ["step"], title=f"One step of {where}"),) if has_charts else (),
    )


def _ways_out(answer: Forecast) -> tuple[WayOut, ...]:
    """Asked only where it does not fit: they are forecasts of their own."""
    if answer.fits:
        return ()
    from traincast.planning.ways_out import ways_out

    return ways_out(answer)


def _number_rows(answer: Forecast) -> Iterator[Row]:
    """The numbers that are known, and those of waiting where there is any."""
    is_inference = answer.question.is_inference
    optional = (*_SHOWN_IF_ANY, *_OF_TRAINING) if is_inference else _SHOWN_IF_ANY
    hidden = _hidden(answer)
    for name, (title, show) in _ROWS.items():
        number = answer.estimates.get(name)
        if number is None or name in hidden or (name in optional and not number.p50):
            continue
        if is_inference and name == "flop_utilisation":
            yield ("samples/s at peak", show_value(answer.peak_samples_per_s, "ratio"), None, None)
        low, value, high = (show_value(each, show) for each in (number.p10, number.p50, number.p90))
        yield (title, value, low, high) if number.p10 != number.p90 else (title, value, None, None)


def _hidden(answer: Forecast) -> tuple[str, ...]:
    """Numbers that say nothing beside others: the utilisation has one name, one device is all devices, and
    one epoch is the run."""
    names = ["mfu", "hfu"] if answer.tokens_per_s is None else ["flop_utilisation"]
    if not answer.question.trained_trace.graph.op_recomputed.any():
        names.append("hfu")
    if answer.question.n_devices == 1:
        names.append("tokens_per_s_per_device")
        names.append("device_hours")
    if answer.question.n_epochs == 1:
        names.append("epoch_s")
    return tuple(names)


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
    """Fits or not, what bounds it, and the numbers with their spread; of language models first what is booked."""
    bound = bound_words(answer)
    bound = f"{bound[0].upper()}{bound[1:]}."
    step = f"Step {with_spread(answer, 'step_s', 'duration')}."
    run = []
    if answer.total_s is not None:
        run.append(f"Run {with_spread(answer, 'total_s', 'duration')}.")
    if answer.cost_usd is not None:
        run.append(f"Cost {with_spread(answer, 'cost_usd', 'usd')}.")
    if answer.tokens_per_s is None:
        return " ".join((fit_of(answer), bound, step, *run))
    return " ".join((fit_of(answer), *_token_words(answer), *run, bound, step))


def _token_words(answer: Forecast) -> Iterator[str]:
    """Tokens a second, how well the devices are used, and how many hours of them the run takes."""
    used = "" if answer.question.is_inference else f", MFU {show_value(answer.mfu, 'percent')}"
    yield f"{with_spread(answer, 'tokens_per_s', 'ratio', ' tokens/s')}{used}."
    if answer.device_hours is not None:
        what = "GPU" if answer.question.device.kind == "gpu" else "device"
        yield f"{with_spread(answer, 'device_hours', 'ratio', f' {what} hours')}."


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
