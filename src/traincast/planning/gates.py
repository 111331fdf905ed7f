"""Limits that a forecast must keep, for a pipeline that stops where one is broken."""

from __future__ import annotations

import math
from dataclasses import dataclass

from traincast.errors import InputError, close_names
from traincast.forecasting.forecast import Forecast
from traincast.lognormal import chance_below, log_sd_of
from traincast.units import show_bytes, show_duration, show_percent, show_usd

_EXAMPLES = {"budget": "budget=200", "hours": "hours=12", "memory": "memory=90%"}
NAMES = tuple(_EXAMPLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What the run may cost and take, and the share of the device's memory that it may need. None: no limit."""

    budget_usd: float | None = None
    hours: float | None = None
    memory_fraction: float | None = None

    def __post_init__(self) -> None:
        for name in ("budget_usd", "hours", "memory_fraction"):
            limit = getattr(self, name)
            if limit is not None and not (math.isfinite(limit) and limit > 0):
                raise InputError(f"The limit {name} should be a number above 0, not {limit}.")
        if self.memory_fraction is not None and self.memory_fraction > 1:
            raise InputError(
                f"The limit memory_fraction should be a fraction of the memory, at most 1, not {self.memory_fraction}."
            )

    def override(self, other: Gates) -> Gates:
        """These, with what the other has in their place."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return Gates(
            **{name: value if getattr(other, name) is None else getattr(other, name) for name, value in own.items()}
        )

    def broken(self, forecast: Forecast) -> tuple[str, ...]:
        """One sentence for each limit that the forecast's median breaks; what cannot be told is an InputError.

        Where there is any limit, a run has to fit, too: one that runs out of memory keeps neither time nor budget.
        """
        found = []
        if self.budget_usd is not None:
            cost = _known(forecast, "cost_usd", "budget", "the samples of an epoch and a price")
            if cost > self.budget_usd:
                chance = _chance(forecast, "cost_usd", self.budget_usd)
                found.append(f"budget: {show_usd(cost)} is over {show_usd(self.budget_usd)} ({chance} to keep it).")
        if self.hours is not None:
            total_s, limit_s = _known(forecast, "total_s", "hours", "the samples of an epoch"), 3600 * self.hours
            if total_s > limit_s:
                chance = _chance(forecast, "total_s", limit_s)
                found.append(f"hours: {show_duration(total_s)} is over {show_duration(limit_s)} ({chance} to keep it).")
        if self != Gates():
            found += _too_much_memory(forecast, min(self.memory_fraction or 1.0, 1.0))
        return tuple(found)


def _too_much_memory(forecast: Forecast, share: float) -> list[str]:
    usable = forecast.question.device.usable_memory_bytes
    if forecast.peak_memory_bytes <= share * usable:
        return []
    need, has = show_bytes(forecast.peak_memory_bytes), f"the {show_bytes(usable)} usable on {forecast.device}"
    if not forecast.fits:
        return [f"memory: it does not fit, {need} is over {has}."]
    return [f"memory: {need} is over {show_percent(share)} of {has}."]


def gates_of(text: str, flag: str = "--fail-over") -> Gates:
    """'budget=200,hours=12,memory=90%': dollars, hours, and a share of the memory."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (each.strip() for each in part.partition("="))
        if name in NAMES and not number:
            raise InputError(f"{flag} '{text}': {name} has no value. Write {_EXAMPLES[name]}.")
        if name not in NAMES or not equals:
            close = close_names(name, NAMES) or f" Limits are {', '.join(NAMES)}."
            raise InputError(
                f"{flag} '{text}': '{part.strip()}' is not a limit.{close} Write budget=200,hours=12,memory=90%."
            )
        if name in found:
            raise InputError(f"{flag} '{text}': {name} is given twice.")
        found[name] = _number(number, name, f"{flag} '{text}'")
    return Gates(budget_usd=found.get("budget"), hours=found.get("hours"), memory_fraction=found.get("memory"))


def _number(text: str, name: str, where: str) -> float:
    digits, is_percent = (
        (text[:-1], True) if text.endswith("%") and name == "memory" else (text.removeprefix("$"), False)
    )
    try:
        value = float(digits) / (100 if is_percent else 1)
    except ValueError:
        value = math.nan
    most = 1.0 if name == "memory" else math.inf
    if not (math.isfinite(value) and 0 < value <= most):
        right = "a share: 90% or 0.9" if name == "memory" else "a number above 0"
        raise InputError(f"{where}: {name} should be {right}, not '{text}'.")
    return value


def _known(forecast: Forecast, name: str, gate: str, needed: str) -> float:
    value = getattr(forecast, name)
    if value is None:
        raise InputError(f"A limit on {gate} cannot be checked: the forecast of {forecast.place} needs {needed}.")
    return float(value)


def _chance(forecast: Forecast, name: str, limit: float) -> str:
    """That a lognormal with these ends stays below the limit."""
    low, high = forecast.interval(name)
    if low == high:
        return "no chance"
    chance = chance_below(limit, getattr(forecast, name), log_sd_of(low, high))
    return f"{100 * chance:.0f} % chance" if chance >= 0.005 else "less than 1 % chance"
