"""Words that open an answer: whether a step fits, what bounds it, and how far a number may be off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.table import Show, show_value
from traincast.units import show_bytes

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast


def fit_sentence(need_bytes: int, usable_bytes: int) -> str:
    """'Fits: 3.4 GiB of 78.8 GiB usable.'"""
    need, usable = show_bytes(need_bytes), show_bytes(usable_bytes)
    if need_bytes <= usable_bytes:
        return f"Fits: {need} of {usable} usable."
    return f"Does not fit: needs {need}, but only {usable} are usable."


def fit_of(answer: Forecast) -> str:
    return fit_sentence(answer.peak_memory_bytes, answer.question.device.usable_memory_bytes)


def bound_words(answer: Forecast) -> str:
    """'bound by compute', and whether the data loader is slower still."""
    article = "the " if answer.bound_by in ("host", "input", "pipeline") else ""
    slower = ", and the data loader is slower still" if answer.input_wait_s and answer.bound_by != "input" else ""
    return f"bound by {article}{answer.bound_by}{slower}"


def with_spread(answer: Forecast, name: str, show: Show, unit: str = "") -> str:
    """'66.6 ms (p10-p90: 59.1 ms to 75 ms)'."""
    number = answer.estimates[name]
    low, value, high = (show_value(each, show) for each in (number.p10, number.p50, number.p90))
    return f"{value}{unit}" if number.p10 == number.p90 else f"{value}{unit} (p10-p90: {low} to {high})"
