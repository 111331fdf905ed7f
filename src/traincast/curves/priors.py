"""What other runs tell of a run before it has shown it: fitted numbers, with where they come from.

`python -m lab.refit.curves --data DIR` fits them again.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from traincast.curves.unknown_rate import Scale, UnknownRate

_LOG_MOST_DROP = float(np.log(3.5))  # further down no published run fell


@dataclass(frozen=True, slots=True, kw_only=True)
class Annealing:
    """How much a curve falls when the rate comes down to a hundredth: the logarithm of `drop` is linear in two logs.

    A noisy accuracy is one that the rate holds up, so it rises far. A low loss has little floor below it. One fall is
    not like the next: the logarithm of what is to come over what was seen, for the same fall of the rate, is linear in
    the logarithm of the level too.
    """

    intercept: float
    per_log_level: float
    log_sd: float
    per_log_noise: float = 0.0  # of accuracies alone
    next_intercept: float = 0.0
    next_per_log_level: float = 0.0
    next_log_sd: float = 0.5

    def log_drop(self, noise: float, level: float) -> float:
        found = self.intercept + self.per_log_noise * np.log(noise) + self.per_log_level * np.log(level)
        return float(min(found, _LOG_MOST_DROP))

    def next_log_ratio(self, level: float) -> float:
        return float(self.next_intercept + self.next_per_log_level * np.log(level))


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """Of losses, and of errors (one minus an accuracy)."""

    loss: Annealing
    error: Annealing
    unknown_rate: UnknownRate  # of a run whose learning rate nobody tells
    provenance: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Priors:
        unknown = dict(data["unknown_rate"])
        below, above = (Scale(**unknown.pop(side)) for side in ("below", "above"))
        return cls(
            loss=Annealing(**data["loss"]),
            error=Annealing(**data["error"]),
            unknown_rate=UnknownRate(**unknown, below=below, above=above),
            provenance=data["provenance"],
        )


@lru_cache(maxsize=1)
def shipped() -> Priors:
    """Those that traincast comes with."""
    text = importlib.resources.files("traincast").joinpath("data/curves/priors.json").read_text(encoding="utf-8")
    return Priors.from_dict(json.loads(text))
