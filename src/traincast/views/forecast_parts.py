"""What one forecast and several have in common: settings, length of the run, warnings and phases."""

from __future__ import annotations

from collections.abc import Sequence

from traincast.forecasting.forecast import PARTS, Forecast
from traincast.forecasting.question import Question
from traincast.report.chart import Chart, Series
from traincast.units import show_things, show_tokens, show_usd


def settings_of(forecasts: Sequence[Forecast]) -> str:
    """Those that hold for all of them."""
    first, *others = (_settings(forecast) for forecast in forecasts)
    return ", ".join(part for part in first if all(part in other for other in others))


def settings_of_run(question: Question) -> list[str]:
    """Those that its memory depends on."""
    settings = question.run_settings
    parts = [settings.precision, question.update_name, *settings.extras]
    if question.n_devices > 1:
        parts.append(f"{question.strategy.name} on {show_things(question.n_devices, 'device')}")
    return parts


def _settings(forecast: Forecast) -> list[str]:
    question = forecast.question
    settings = question.run_settings
    parts = [settings.precision, question.update_name, *settings.extras, f"method {question.method.name}"]
    parts.append("calibrated" if question.device.prices else f"host {question.host.name}")
    if question.layout != "nchw":
        parts.append(question.layout)
    if question.compiled:
        parts.append(question.compilation)
    if question.n_devices > 1:
        parts.append(f"{question.strategy.name} on {show_things(question.n_devices, 'device')}")
    if question.split.n_devices > 1:
        shares = {
            "tensor": question.tensor_parallel,
            "context": question.context_parallel,
            "pipeline": question.pipeline_parallel,
        }
        parts.append(" x ".join(f"{name} {n}" for name, n in shares.items() if n > 1) + " per replica")
    if question.accumulation_steps > 1:
        parts.append(f"{question.accumulation_steps} passes of {question.micro_batch_size:,}")
    elif question.n_devices > 1:
        parts.append(f"{show_things(question.micro_batch_size, 'sample')} each")
    return parts


def run_note(forecasts: Sequence[Forecast]) -> tuple[str, ...]:
    """How long the run is, and at which price if all have the same."""
    first = forecasts[0].question
    if first.n_samples is None:
        return ()
    prices = {forecast.question.run_price_usd_per_hour for forecast in forecasts}
    price = first.run_price_usd_per_hour if len(prices) == 1 else None
    at = "" if price is None else f" at {show_usd(price)} per hour"
    return (f"The run is {_length_of(first)}{at}.",)


def _length_of(question: Question) -> str:
    """In tokens where somebody asked in tokens, with the sequences that they are."""
    n_samples, n_epochs = question.n_samples or 0, question.n_epochs
    if question.n_tokens is None:
        return f"{show_things(n_epochs, 'epoch')} of {n_samples:,} samples"
    sequences = show_things(n_samples * n_epochs, "sequence")
    return f"{show_tokens(question.n_tokens)} ({sequences} of {question.trace.tokens_per_sample:,})"


def warnings_of(forecasts: Sequence[Forecast]) -> tuple[str, ...]:
    """Every warning once, with the forecasts that it is about."""
    every = (
        f"{_about(warning, forecast, forecasts)}{warning}" for forecast in forecasts for warning in forecast.warnings
    )
    return tuple(dict.fromkeys(every))


def _about(warning: str, own: Forecast, forecasts: Sequence[Forecast]) -> str:
    """Nothing if it holds for all; the place if it holds for all batch sizes there; else place and batch."""
    if all(warning in other.warnings for other in forecasts):
        return ""
    is_of_place = all(warning in other.warnings for other in forecasts if other.place == own.place)
    return f"{own.place}: " if is_of_place else f"{own.place}, batch {own.batch_size:,}: "


def phases_chart(forecasts: Sequence[Forecast], labels: list[str], *, title: str) -> Chart:
    """One bar per forecast: what its step is made of."""
    shown = [part for part in PARTS if any(getattr(forecast, part) for forecast in forecasts)]
    return Chart(
        title=title,
        kind="stacked_bar",
        series=tuple(
            Series(
                name=part.removesuffix("_s").replace("_", " "),
                x=labels,
                y=[getattr(forecast, part) for forecast in forecasts],
            )
            for part in shown
        ),
        x_label="place and batch" if len(forecasts) > 1 else "",
        y_label="time",
        y_show="duration",
    )
