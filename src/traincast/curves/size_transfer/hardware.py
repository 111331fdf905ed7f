"""Does the GPU matter for convergence? It must not, and a test says whether these rows contradict that.

Runs of one model on several GPUs differ by chance (seeds, order of sums) or by the GPU. If by chance, the GPUs of a
model may change names: the test permutes them within each model and asks how often their means are as far apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.curves.size_transfer.fits import Fit

_PERMUTATIONS = 9_999
_LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareTest:
    """Of one quantity: how far apart the GPUs are, and the probability of that by chance."""

    quantity: str
    n_rows: int
    n_models: int
    n_gpus: int
    spread_fraction: float  # highest over lowest GPU, on (geometric) average over models, minus 1
    p_value: float

    @property
    def is_rejected(self) -> bool:
        return self.p_value < _LEVEL

    @property
    def least_p_value(self) -> float:
        """If the kinds were as far apart as can be: with few runs, no difference can be told from chance."""
        n_orders = math.factorial(max(self.n_rows // self.n_models, 1)) ** self.n_models
        return min(math.factorial(self.n_gpus) / n_orders, 1.0)

    def to_dict(self) -> dict[str, float | str]:
        return {name: getattr(self, name) for name in self.__slots__}


def hardware_test(fits: Sequence[Fit], quantity: str) -> HardwareTest | None:
    """Of models that ran on several GPUs; None where none did."""
    known = [fit for fit in fits if getattr(fit, quantity)]
    gpus_of: dict[str, set[str]] = {}
    for fit in known:
        gpus_of.setdefault(fit.model, set()).add(fit.gpu)
    rows = [fit for fit in known if len(gpus_of[fit.model]) > 1]
    if not rows:
        return None
    models = _numbered([fit.model for fit in rows])
    gpus = _numbered([fit.gpu for fit in rows])
    logs = np.array([math.log(getattr(fit, quantity)) for fit in rows])
    around = logs - (np.bincount(models, logs) / np.bincount(models))[models]
    seen = _between(around[None, :], gpus)[0]
    shuffled = _shuffled(around, models, np.random.default_rng(0))
    n_as_far = int((_between(shuffled, gpus) >= seen * (1 - 1e-9)).sum())
    means = np.bincount(gpus, around) / np.bincount(gpus)
    return HardwareTest(
        quantity=quantity,
        n_rows=len(rows),
        n_models=int(models.max()) + 1,
        n_gpus=int(gpus.max()) + 1,
        spread_fraction=float(math.exp(means.max() - means.min()) - 1),
        p_value=(1 + n_as_far) / (1 + _PERMUTATIONS),
    )


def _numbered(names: Sequence[str]) -> NDArray[np.int64]:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _between(around: NDArray[np.float64], gpus: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum of squares between GPUs, of each row of values."""
    member = np.equal.outer(gpus, np.arange(gpus.max() + 1)).astype(float)
    return ((around @ member) ** 2 / member.sum(axis=0)).sum(axis=1)


def _shuffled(values: NDArray[np.float64], models: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Many orders, one a row: within each model, any."""
    place = models + rng.random((_PERMUTATIONS, len(values)))
    shuffled = np.empty(place.shape)
    shuffled[:, np.argsort(models, kind="stable")] = values[np.argsort(place, axis=1)]
    return shuffled
