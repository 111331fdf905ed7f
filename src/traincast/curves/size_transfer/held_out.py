"""Each model predicted from the others: how wrong a transfer among these runs is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.curves.size_transfer.fits import Fit
from traincast.curves.size_transfer.ridge import codes_of, ridge
from traincast.curves.size_transfer.transferred import QUANTITIES, OptimusDraws, Transferred, predict_parameters

Floats = NDArray[np.float64]
Law = Callable[[Floats], Floats]  # loss by step
_N_STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """Mean absolute relative errors: ours and the ridge's."""

    ours: float
    ridge: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """A model that was left out. `errors` are of b0, b1, epochs, and of the curve, at steps even and even in logs."""

    model: str
    n_layers: int
    n_rows: int
    errors: Mapping[str, Error]
    n_inside: int  # values of its rows within p10 to p90
    n_values: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "size": self.n_layers,
            "n_rows": self.n_rows,
            "errors": {name: {"ours": error.ours, "ridge": error.ridge} for name, error in self.errors.items()},
            "n_inside": self.n_inside,
            "n_values": self.n_values,
        }


def law_of(b0: float, b1: float, b2: float) -> Law:
    draws = OptimusDraws(*(np.array([value]) for value in (b0, b1, b2)))
    return lambda steps: draws.values(steps)[0]


def each_held_out(
    fits: Sequence[Fit], *, total_steps: float, size_name: str = "layers"
) -> tuple[tuple[HeldOut, ...], tuple[str, ...]]:
    """Of models whose family has others; and a remark on those that cannot be left out."""
    rows = [fit for fit in fits if not fit.is_degenerate]
    found, alone, codes = [], [], codes_of(rows)
    for family, size, model in sorted({(fit.family, fit.n_layers, fit.model) for fit in rows}):
        own = [fit for fit in rows if (fit.family, fit.n_layers, fit.model) == (family, size, model)]
        others = [fit for fit in rows if fit not in own]
        n_models = len({(fit.family, fit.n_layers, fit.model) for fit in others})
        if n_models < 2 or family not in {fit.family for fit in others}:
            alone.append(model)
        else:
            predicted = predict_parameters(others, size, total_steps=total_steps, family=family, size_name=size_name)
            found.append(_held_out(own, others, predicted, codes))
    remarks = (f"Without {' or '.join(alone)} too little is left to predict it from.",) if alone else ()
    return tuple(found), remarks


def _held_out(own: Sequence[Fit], others: Sequence[Fit], predicted: Transferred, codes: Mapping[str, float]) -> HeldOut:
    size, total_steps = predicted.n_layers, predicted.curve.last_step
    errors, inside = {}, []
    for name in QUANTITIES:
        known = [fit for fit in own if getattr(fit, name)]
        estimate = predicted.estimates.get(name)
        if estimate is None or not known:
            continue
        real = np.array([getattr(fit, name) for fit in known])
        theirs = np.array([ridge(others, (size, fit.gpu), name, codes) for fit in known], float)
        errors[name] = Error(ours=_mean(estimate.value, real), ridge=_mean(theirs, real))
        inside += [estimate.low <= value <= estimate.high for value in real.tolist()]
    places = {
        "curve": np.linspace(1.0, total_steps, _N_STEPS),
        "curve, log steps": np.geomspace(1.0, total_steps, _N_STEPS),
    }
    for name, steps in places.items():
        real_losses = np.array([law_of(fit.b0, fit.b1, fit.b2)(steps) for fit in own])
        their_losses = np.array([ridge_law(others, (size, fit.gpu), codes)(steps) for fit in own])
        mine = np.asarray(predicted.curve.predict(steps))
        errors[name] = Error(ours=_mean(mine, real_losses), ridge=_mean(their_losses, real_losses))
    return HeldOut(
        model=own[0].model,
        n_layers=size,
        n_rows=len(own),
        errors=errors,
        n_inside=sum(inside),
        n_values=len(inside),
    )


def ridge_law(seen: Sequence[Fit], asked: tuple[int, str], codes: Mapping[str, float]) -> Law:
    values = [ridge(seen, asked, name, codes) or 0.0 for name in ("b0", "b1", "b2")]
    return law_of(*values)


def _mean(found: Floats | float, real: Floats) -> float:
    return float(np.abs(found / real - 1).mean())
