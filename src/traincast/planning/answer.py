"""The whole answer for one choice: a forecast, and what follows from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from traincast import __version__
from traincast.forecasting.forecast import Forecast
from traincast.planning.assumptions import assumptions_of
from traincast.planning.energy import Energy

if TYPE_CHECKING:
    from traincast.convergence.answer import Range
    from traincast.planning.to_target import ToTarget


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """A forecast with its energy, its way to a target, its seconds by what bounds them, and its assumptions."""

    forecast: Forecast
    energy: Energy | None = None
    to_target: ToTarget | None = None

    @property
    def bound_s(self) -> dict[str, float]:
        """Seconds of a step by what they are spent on."""
        return self.forecast.bound_s

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        return assumptions_of(self.forecast, self.energy, self.to_target)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Those of the forecast, and whether the run is too short for its target."""
        if self.to_target is None:
            return self.forecast.warnings
        from traincast.planning.to_target import ends_before  # curves are loaded by those who ask for one

        short = ends_before(self.forecast, self.to_target)
        return self.forecast.warnings if short is None else (*self.forecast.warnings, short)

    def to_dict(self) -> dict[str, Any]:
        """What --json prints: the forecast's own numbers, and the rest beside them."""
        data: dict[str, Any] = self.forecast.to_dict()
        energy, intervals = self.energy, dict(data["intervals"])
        found: dict[str, Range | None] = {"power_w": None, "energy_j": None, "co2_kg": None}
        if energy is not None:
            found = {"power_w": energy.power_w, "energy_j": energy.total_j, "co2_kg": energy.co2_kg}
        intervals |= {name: (one.p10, one.p90) for name, one in found.items() if one is not None}
        return {
            **data,
            **{name: None if one is None else one.p50 for name, one in found.items()},
            "pue": None if energy is None else energy.pue,
            "grid": None if energy is None or energy.grid is None else asdict(energy.grid),
            "bound_s": self.bound_s,
            "to_target": None if self.to_target is None else self.to_target.to_dict(),
            "intervals": intervals,
            "assumptions": self.assumptions,
            "warnings": self.warnings,
            "version": __version__,
        }

    def _repr_html_(self) -> str:
        """The forecast's table, and a step by what bounds it."""
        from traincast.report.notebook import to_notebook
        from traincast.units import show_duration

        rows = [(name, show_duration(seconds)) for name, seconds in self.bound_s.items()]
        bounds = to_notebook("A step by what bounds it", rows, notes=self.assumptions)
        return f"{self.forecast._repr_html_()}{bounds}"
