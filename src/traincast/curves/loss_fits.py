"""Optimus' law through many logs: a row of parameters each, how well it fits, and when the target was there."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from traincast.curves.curve import weighted_quantiles
from traincast.curves.optimus_members import OptimusMembers
from traincast.estimate import Estimate
from traincast.logs.file_facts import FileFacts

if TYPE_CHECKING:
    from traincast.curves.curve import Curve
    from traincast.curves.status.arrival import Arrival
    from traincast.logs.log import Series

PARAMETERS = ("b0", "b1", "b2")
_LEVELS = (0.1, 0.5, 0.9)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class LossFit:
    """One log: loss = 1/(b0 k + b1) + b2."""

    path: str
    facts: FileFacts
    series: Series
    curve: Curve
    unit: str  # what k counts: step or epoch
    arrival: Arrival | None
    remarks: tuple[str, ...]

    @property
    def split(self) -> str:
        """Of the loss that was fitted; the file's name decides where the log does not."""
        return self.facts.split or self.series.split

    @property
    def parameters(self) -> dict[str, Estimate]:
        """The likeliest value of each, with p10 and p90."""
        members = self.curve.members
        assert isinstance(members, OptimusMembers)
        found = {}
        for name in PARAMETERS:
            low, _, high = weighted_quantiles(getattr(members, name)[:, None], self.curve.weights, _LEVELS)[:, 0]
            value = self.curve.parameters[name]
            found[name] = Estimate(p10=min(float(low), value), p50=value, p90=max(float(high), value))
        return found

    @property
    def r_squared(self) -> float | None:
        """Share of the variance of the logged losses that the curve explains; None where they are all alike."""
        b0, b1, b2 = (self.curve.parameters[name] for name in PARAMETERS)
        values = self.series.values
        total = float(np.sum((values - values.mean()) ** 2))
        if not total:
            return None
        with np.errstate(divide="ignore"):
            rest = values - (1 / (b0 * self.series.steps + b1) + b2)
        return 1 - float(rest @ rest) / total

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            **asdict(self.facts),
            "split": self.split,
            "unit": self.unit,
            "n_points": len(self.series),
            **{name: one.p50 for name, one in self.parameters.items()},
            "intervals": {name: one.ends for name, one in self.parameters.items()},
            "r_squared": self.r_squared,
            "arrival": None if self.arrival is None else self.arrival.to_dict(),
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class LossFits:
    """All of them, in groups of one model, GPU and split."""

    fits: tuple[LossFit, ...]
    target: float | None
    metric: str

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {"target": self.target, "metric": self.metric, "fits": [one.to_dict() for one in self.fits]}
