"""Two forecasts of one job: what changed in the answer, and what in the question."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from traincast.errors import FileFormatError
from traincast.units import show_usd

# What is compared, in the order in which people ask.
NUMBERS = ("total_s", "cost_usd", "step_s", "samples_per_s", "peak_memory_bytes", "energy_j", "co2_kg")
_TO_TARGET = {"updates_to_target": "updates", "to_target_s": "total_s", "cost_to_target_usd": "cost_usd"}
_SETTINGS = (
    "model",
    "on",
    "n_devices",
    "strategy",
    "tensor_parallel",
    "pipeline_parallel",
    "pipeline_schedule",
    "context_parallel",
    "context_kind",
    "batch_size",
    "accumulation_steps",
    "precision",
    "optimizer",
    "layout",
    "compiled",
    "compile_mode",
    "method",
    "host",
    "input_samples_per_s",
    "n_samples",
    "n_epochs",
    "price_usd_per_hour",
    "run_price_usd_per_hour",
    "pue",
    "version",
)
_NESTED_SETTINGS = {"target": ("to_target", "target"), "metric": ("to_target", "metric"), "grid": ("grid", "name")}
_SAME = 0.0005  # a share: what changes by less reads the same


@dataclass(frozen=True, slots=True)
class Change:
    """One number, before and after; None where one of the two forecasts does not know it."""

    name: str
    before: float | None
    after: float | None

    @property
    def difference(self) -> float | None:
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def relative(self) -> float | None:
        """0.18 for 18 % more."""
        return None if self.difference is None or not self.before else self.difference / self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Numbers side by side, and the settings that are not the same."""

    numbers: tuple[Change, ...]
    settings: tuple[tuple[str, Any, Any], ...]
    bound_by: tuple[str, str]
    fits: tuple[bool, bool]

    @property
    def headline(self) -> str:
        """'+18.0 % time, +$42.00'."""
        by_name = {change.name: change for change in self.numbers}
        parts = []
        time = by_name["total_s"] if by_name["total_s"].relative is not None else by_name["step_s"]
        if time.relative is not None:
            is_same = abs(time.relative) < _SAME
            parts.append("the same time" if is_same else f"{100 * time.relative:+.1f} % time")
        cost = by_name["cost_usd"]
        if cost.difference is not None:
            is_same = abs(cost.relative or 0.0) < _SAME
            parts.append("the same cost" if is_same else _signed_usd(cost.difference))
        way = by_name.get("to_target_s")
        if way is not None and way.relative is not None and abs(way.relative) >= _SAME:
            parts.append(f"{100 * way.relative:+.1f} % time to the target")
        return ", ".join(parts) or "nothing to compare"

    def to_dict(self) -> dict[str, Any]:
        return {
            "headline": self.headline,
            "numbers": {
                change.name: {**asdict(change), "difference": change.difference, "relative": change.relative}
                for change in self.numbers
            },
            "settings": {name: {"before": before, "after": after} for name, before, after in self.settings},
            "bound_by": list(self.bound_by),
            "fits": list(self.fits),
        }


def difference_of(before: Mapping[str, Any], after: Mapping[str, Any], *, source: str) -> Difference:
    """Both as `traincast forecast --json` prints one forecast; `source` names where the earlier one is from."""
    if not _is_forecast(before):
        told = " (it has several: compare one)" if "forecasts" in before else ""
        raise FileFormatError(f"{source} is not what 'traincast forecast --json' prints for one choice{told}.")
    earlier, later = _numbers(before), _numbers(after)
    asked, asks = _settings(before), _settings(after)
    return Difference(
        numbers=tuple(Change(name, earlier.get(name), later.get(name)) for name in earlier | later),
        settings=tuple((name, asked[name], asks[name]) for name in asked if name in asks and asked[name] != asks[name]),
        bound_by=(str(before["bound_by"]), str(after["bound_by"])),
        fits=(bool(before.get("fits")), bool(after.get("fits"))),
    )


def _is_forecast(told: Mapping[str, Any]) -> bool:
    """Whether what is read of it is there, and of the kinds that a forecast has."""
    parts = [told.get("to_target"), *(told.get(part) for part, _ in _NESTED_SETTINGS.values())]
    if not all(part is None or isinstance(part, Mapping) for part in parts):
        return False
    way = told.get("to_target") or {}
    ranges = [way.get(key) for key in _TO_TARGET.values()]
    if not all(one is None or isinstance(one, Mapping) for one in ranges):
        return False
    numbers = [*map(told.get, NUMBERS), *(one.get("p50") for one in ranges if one)]
    return all(map(_is_sane, numbers)) and _number(told.get("step_s")) is not None and "bound_by" in told


def _is_sane(value: object) -> bool:
    return not isinstance(value, (int, float)) or abs(value) <= sys.float_info.max


def _numbers(told: Mapping[str, Any]) -> dict[str, float | None]:
    """By name; of the way to a target, if there is one, the median, which a curve that never gets there has not."""
    found = {name: _number(told.get(name)) for name in NUMBERS}
    way = told.get("to_target")
    if way:
        found |= {name: _number((way.get(key) or {}).get("p50")) for name, key in _TO_TARGET.items()}
    return found


def _settings(told: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, without what an older file does not tell."""
    nested = {name: (told[part] or {}).get(key) for name, (part, key) in _NESTED_SETTINGS.items() if part in told}
    return {name: told[name] for name in _SETTINGS if name in told} | nested


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _signed_usd(value: float) -> str:
    return show_usd(value) if value < 0 else f"+{show_usd(value)}"
