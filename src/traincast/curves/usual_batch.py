"""How many more samples a larger batch needs where nobody measured the gradient's noise: as in MLPerf's runs.

    samples(m) / samples(m0) = (k + m / m0) / (k + 1),    k = phi / m0

The law of `batch_efficiency.py`; what other workloads tell is how many times the batch the noise scale phi usually is.
`python -m lab.refit.curves.batches --data DIR` fits the two numbers again.
"""

from __future__ import annotations

import importlib.resources
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from traincast.errors import InputError
from traincast.estimate import Estimate
from traincast.lognormal import P90_SDS


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualBatch:
    """The noise scale over the batch of a run: its median, and the standard deviation of its logarithm."""

    ratio: float
    log_sd: float
    provenance: str = ""

    def samples_needed(self, growth: float) -> Estimate:
        """For the same target at so many times the batch, relative to those at the run's own."""
        if not (math.isfinite(growth) and growth > 0):
            raise InputError(f"A batch size is finite and above 0, not {growth:g} times another.")
        needed = sorted(
            (ratio + growth) / (ratio + 1.0)
            for ratio in (self.ratio * math.exp(sds * self.log_sd) for sds in (-P90_SDS, 0.0, P90_SDS))
        )
        return Estimate(*needed)

    @classmethod
    def from_dict(cls, data: Mapping[str, float | str]) -> UsualBatch:
        return cls(ratio=float(data["ratio"]), log_sd=float(data["log_sd"]), provenance=str(data["provenance"]))


@lru_cache(maxsize=1)
def shipped() -> UsualBatch:
    """What traincast comes with."""
    text = importlib.resources.files("traincast").joinpath("data/curves/batch.json").read_text(encoding="utf-8")
    return UsualBatch.from_dict(json.loads(text))
