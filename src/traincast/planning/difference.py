"""Two forecasts of one job: what changed in the answer, and what in the question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from traincast.errors import FileFormatError
from traincast.units import show_usd

# What is compared, in the order in which people ask.
NUMBERS = ("total_s", "cost_usd", "step_s", "samples_per_s", "peak_memory_bytes", "energy_j", "co2_kg")
_SETTINGS = (
    "model",
    "on",
    "n_devices",
    "strategy",
    "tensor_parallel",
    "pipeline_parallel",
    "batch_size",
    "accumulation_steps",
    "precision",
    "optimizer",
    "layout",
    "compiled",
    "method",
    "host",
    "input_samples_per_s",
    "n_samples",
    "n_epochs",
    "price_usd_per_hour",
    "version",
)
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
    if not isinstance(before.get("step_s"), (int, float)) or "bound_by" not in before:
        told = " (it has several: compare one)" if "forecasts" in before else ""
        raise FileFormatError(f"{source} is not what 'traincast forecast --json' prints for one choice{told}.")
    return Difference(
        numbers=tuple(Change(name, _number(before.get(name)), _number(after.get(name))) for name in NUMBERS),
        settings=tuple(
            (name, before[name], after[name])
            for name in _SETTINGS
            if name in before and name in after and before[name] != after[name]
        ),
        bound_by=(str(before["bound_by"]), str(after["bound_by"])),
        fits=(bool(before.get("fits")), bool(after.get("fits"))),
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _signed_usd(value: float) -> str:
    return show_usd(value) if value < 0 else f"+{show_usd(value)}"
