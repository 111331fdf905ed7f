"""Other ways to guess a model's parameters from its siblings, for benchmarks/transfer.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from traincast.curves.size_transfer.fits import Fit
from traincast.curves.size_transfer.ridge import ridge as plain_ridge
from traincast.curves.size_transfer.siblings import SCALES, Siblings
from traincast.curves.size_transfer.transferred import QUANTITIES

GPU_CODES = {"Quadro RTX 8000": 0.0, "Tesla V100-PCIE-32GB": 1.0, "NVIDIA A100-PCIE-40GB": 2.0}
Rival = Callable[[Sequence[Fit], Fit, str], float]  # from the siblings, a quantity of the model of a fit


def ridge(seen: Sequence[Fit], asked: Fit, quantity: str) -> float:
    """The report's, with its numbers for the GPUs."""
    found = plain_ridge(seen, (asked.n_layers, asked.gpu), quantity, GPU_CODES)
    assert found is not None
    return found


def siblings(seen: Sequence[Fit], quantity: str, scales: tuple[float, ...]) -> Siblings:
    models = sorted({(fit.n_layers, fit.family) for fit in seen})
    return Siblings(
        log_values=np.array([math.log(getattr(fit, quantity)) for fit in seen]),
        model_of=np.array([models.index((fit.n_layers, fit.family)) for fit in seen]),
        log_depths=np.log([depth for depth, _ in models]),
        families=tuple(family for _, family in models),
        scales=scales,
    )


def ours(factor: float) -> Rival:
    """Ours with all prior scales times a factor."""

    found: dict[tuple[str, str], float] = {}  # the GPU does not matter: a model is asked for once

    def predict(seen: Sequence[Fit], asked: Fit, quantity: str) -> float:
        if (asked.model, quantity) not in found:
            known = siblings(seen, quantity, tuple(factor * scale for scale in SCALES))
            drawn = known.draws(math.log(asked.n_layers), asked.family, n_draws=4000, seed=QUANTITIES.index(quantity))
            found[asked.model, quantity] = math.exp(float(np.median(drawn)))
        return found[asked.model, quantity]

    return predict


def line(seen: Sequence[Fit], asked: Fit, quantity: str, *, with_family: bool) -> float:
    """Least squares of the logarithm on log depth, with or without an offset for the family."""

    def row(fit: Fit) -> list[float]:
        return [1.0, math.log(fit.n_layers), *([float(fit.family == "wide")] if with_family else [])]

    values = [math.log(getattr(fit, quantity)) for fit in seen]
    found = np.linalg.lstsq(np.array([row(fit) for fit in seen]), np.array(values), rcond=None)[0]
    return math.exp(float(np.array(row(asked)) @ found))


def nearest(seen: Sequence[Fit], asked: Fit, quantity: str) -> float:
    """The model of the same family that is nearest in depth."""
    own = [fit for fit in seen if fit.family == asked.family]
    least = min(abs(math.log(fit.n_layers / asked.n_layers)) for fit in own)
    alike = [fit for fit in own if abs(math.log(fit.n_layers / asked.n_layers)) <= least + 1e-9]
    return math.exp(float(np.mean([math.log(getattr(fit, quantity)) for fit in alike])))


RIVALS: dict[str, Rival] = {
    "**ours**": ours(1.0),
    "ours, prior scales halved": ours(0.5),
    "ours, prior scales doubled": ours(2.0),
    "the report's kernel ridge": ridge,
    "one line over log depth, no families": lambda seen, asked, what: line(seen, asked, what, with_family=False),
    "one slope, an offset for each family": lambda seen, asked, what: line(seen, asked, what, with_family=True),
    "the nearest of the family": nearest,
}
