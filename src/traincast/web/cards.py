"""The few numbers that people came for, one card a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traincast.report.table import Show, show_value
from traincast.units import show_duration, shown_or_never

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast

_ROWS: dict[str, tuple[str, Show]] = {
    "total_s": ("total time", "duration"),
    "cost_usd": ("cost", "usd"),
    "step_s": ("one step", "duration"),
}


def cards_of(forecasts: Sequence[Forecast]) -> list[dict[str, object]]:
    """Each with its values as people read them; what is not known is left out."""
    return [{"title": _title(one), "fits": one.fits, "rows": _rows(one)} for one in forecasts]


def _title(forecast: Forecast) -> str:
    """With the devices, where the place is called otherwise."""
    question, place = forecast.question, forecast.place
    devices = question.device.name if question.n_devices == 1 else f"{question.n_devices}x{question.device.name}"
    return place if devices == place else f"{place}: {devices}"


def _rows(forecast: Forecast) -> list[dict[str, str]]:
    rows = []
    for name, (label, show) in _ROWS.items():
        value = getattr(forecast, name)
        if value is None:
            continue
        low, high = forecast.interval(name)
        spread = "" if low == high else f"{show_value(low, show)} to {show_value(high, show)}"
        rows.append({"label": label, "value": show_value(value, show), "detail": spread})
    if forecast.to_target is not None:
        found = forecast.to_target.total_s
        early, middle, late = (shown_or_never(value, show_duration) for value in (found.p10, found.p50, found.p90))
        rows.append({"label": "to target", "value": middle, "detail": "" if early == late else f"{early} to {late}"})
    usable = show_value(forecast.question.device.usable_memory_bytes, "bytes")
    verdict = f"fits in {usable}" if forecast.fits else f"does NOT fit in {usable}"
    rows.append({"label": "memory", "value": show_value(forecast.peak_memory_bytes, "bytes"), "detail": verdict})
    rows.append(_speed(forecast))
    return rows


def _speed(forecast: Forecast) -> dict[str, str]:
    """In tokens, with the utilisation, of what reads them."""
    bound = f"bound by {forecast.bound_by}"
    if forecast.tokens_per_s is None:
        return {"label": "speed", "value": f"{show_value(forecast.samples_per_s, 'ratio')} samples/s", "detail": bound}
    used = f"MFU {show_value(forecast.mfu, 'percent')}, {bound}"
    return {"label": "speed", "value": f"{show_value(forecast.tokens_per_s, 'ratio')} tokens/s", "detail": used}
