"""Parameters and curve of a model before it runs: draws of Optimus' parameters from what its siblings showed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.curves.curve import Curve
from traincast.curves.size_transfer.fits import Fit, usable
from traincast.curves.size_transfer.hardware import HardwareTest, hardware_test
from traincast.curves.size_transfer.siblings import Siblings
from traincast.errors import InputError
from traincast.logs.gate import MOST_VALUE
from traincast.units import show_things

Floats = NDArray[np.float64]
QUANTITIES = ("b0", "b1", "epochs")
_MOST_LOG = math.log(MOST_VALUE)  # a depth far from those of the siblings leads beyond all numbers
_N_DRAWS = 4_000
_SEED = 0
_FLOOR = 1e-6  # a lowest loss below this is a parameter at its bound, not a measured one
_SHOWN_STEPS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A median with its p10 and p90: what one run of the model will show."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        return {"value": self.value, "p10": self.low, "p90": self.high}


@dataclass(frozen=True, eq=False, slots=True)
class OptimusDraws:
    """Optimus curves, one a draw."""

    b0: Floats
    b1: Floats
    b2: Floats

    def values(self, steps: Floats) -> Floats:
        return 1 / (self.b0[:, None] * steps + self.b1[:, None]) + self.b2[:, None]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Transferred:
    """What the siblings say about a model of so many layers."""

    n_layers: int
    size_name: str  # what that number is of
    family: str
    estimates: Mapping[str, Estimate]  # b0, b1, b2 and, where siblings have them, epochs
    curve: Curve
    hardware: tuple[HardwareTest, ...]
    n_models: int
    n_rows: int
    warnings: tuple[str, ...]

    @property
    def parameters(self) -> dict[str, float]:
        """The medians."""
        return {name: estimate.value for name, estimate in self.estimates.items()}

    def to_dict(self) -> dict[str, Any]:
        steps = np.linspace(self.curve.first_step, self.curve.last_step, _SHOWN_STEPS)
        low, high = self.curve.interval(steps)
        return {
            "size": self.n_layers,
            "size_name": self.size_name,
            "family": self.family,
            "parameters": {name: estimate.to_dict() for name, estimate in self.estimates.items()},
            "curve": {"step": steps, "loss": self.curve.predict(steps), "loss_p10": low, "loss_p90": high},
            "hardware": [test.to_dict() for test in self.hardware],
            "n_models": self.n_models,
            "n_rows": self.n_rows,
            "warnings": list(self.warnings),
        }

    @property
    def sized(self) -> str:
        """'50 layers', '1 layer'; what another column counts has its name."""
        is_one_layer = self.n_layers == 1 and self.size_name == "layers"
        return "1 layer" if is_one_layer else f"{self.n_layers:,} {self.size_name}"

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook

        rows = [
            (name, *(f"{value:.4g}" for value in (one.value, one.low, one.high)))
            for name, one in self.estimates.items()
        ]
        runs, models = show_things(self.n_rows, "run"), show_things(self.n_models, "model")
        title = f"{self.family}, {self.sized}, from {runs} of {models}"
        return to_notebook(title, rows, header=("", "p50", "p10", "p90"), notes=self.warnings)


def predict_parameters(
    fits: Sequence[Fit], n_layers: int, *, total_steps: float, family: str | None = None, size_name: str = "layers"
) -> Transferred:
    """The parameters of a model of that depth and family, hence its curve to `total_steps`, from fits of its siblings.

    Fits on several GPUs are pooled; a warning says so where the GPUs differ by more than chance.
    """
    rows, remarks = usable(fits)
    family = _family(rows, family)
    if n_layers < 1 or not 0 < total_steps < math.inf:
        raise InputError(f"A model needs {size_name} and a run needs steps: {n_layers} and {total_steps} cannot be.")
    draws = {name: _draws(rows, name, n_layers, family, seed=_SEED + place) for place, name in enumerate(QUANTITIES)}
    drawn: dict[str, Floats] = {name: found for name, found in draws.items() if found is not None}
    drawn["b2"] = _lowest_loss(rows, n_layers, family)
    estimates = {name: _estimate(found) for name, found in drawn.items()}
    tests = tuple(test for name in drawn if name in QUANTITIES and (test := hardware_test(rows, name)))
    warnings = (*remarks, *_warnings(rows, n_layers, family, tests, size_name))
    curve = Curve(
        family="optimus",
        members=OptimusDraws(drawn["b0"], drawn["b1"], drawn["b2"]),
        weights=np.full(_N_DRAWS, 1 / _N_DRAWS),
        first_step=1.0,
        last_step=float(total_steps),
        total_steps=float(total_steps),
        parameters={name: estimates[name].value for name in ("b0", "b1", "b2")},
        warnings=warnings,
    )
    return Transferred(
        n_layers=n_layers,
        size_name=size_name,
        family=family,
        estimates=estimates,
        curve=curve,
        hardware=tests,
        n_models=len(_models(rows)),
        n_rows=len(rows),
        warnings=warnings,
    )


def _family(rows: Sequence[Fit], family: str | None) -> str:
    known = sorted({fit.family for fit in rows})
    if family is not None and family not in known:
        raise InputError(f"No fit is of family '{family}'; there is {', '.join(repr(name) for name in known)}.")
    if family is None and len(known) > 1:
        raise InputError(f"The fits are of {len(known)} families ({', '.join(known)}): say which one to predict.")
    return known[0] if family is None else family


def _models(rows: Sequence[Fit]) -> list[tuple[str, int, str]]:
    return sorted({(fit.family, fit.n_layers, fit.model) for fit in rows})


def _draws(rows: Sequence[Fit], quantity: str, n_layers: int, family: str, *, seed: int) -> Floats | None:
    """None where fewer than 2 models tell."""
    known = [fit for fit in rows if getattr(fit, quantity)]
    models = _models(known)
    if len(models) < 2:
        return None
    siblings = Siblings(
        log_values=np.array([math.log(getattr(fit, quantity)) for fit in known]),
        model_of=np.array([models.index((fit.family, fit.n_layers, fit.model)) for fit in known]),
        log_depths=np.log([depth for _, depth, _ in models]),
        families=tuple(name for name, *_ in models),
    )
    draws = siblings.draws(math.log(n_layers), family, n_draws=_N_DRAWS, seed=seed)
    return np.exp(np.clip(draws, -_MOST_LOG, _MOST_LOG))


def _lowest_loss(rows: Sequence[Fit], n_layers: int, family: str) -> Floats:
    """Like the others where every fit has one; else that of any row of the family: a bound has no logarithm."""
    seed = _SEED + len(QUANTITIES)
    if all(fit.b2 > _FLOOR for fit in rows):
        drawn = _draws(rows, "b2", n_layers, family, seed=seed)
        assert drawn is not None  # usable() has seen to 2 models
        return drawn
    seen = np.array([fit.b2 if fit.b2 > _FLOOR else 0.0 for fit in rows if fit.family == family])
    return np.random.default_rng(seed).choice(seen, size=_N_DRAWS)


def _estimate(drawn: Floats) -> Estimate:
    low, value, high = np.quantile(drawn, (0.1, 0.5, 0.9)).tolist()
    return Estimate(value=value, low=low, high=high)


def _warnings(
    rows: Sequence[Fit], n_layers: int, family: str, tests: Sequence[HardwareTest], size_name: str
) -> tuple[str, ...]:
    own = sorted({fit.n_layers for fit in rows if fit.family == family})
    name = f"family '{family}'" if family else "family"
    found = []
    if len(own) == 1:
        found.append(
            f"Of this {name} only one model was run ({own[0]:,} {size_name}): how it changes with size is a guess."
        )
    elif not own[0] <= n_layers <= own[-1]:
        found.append(
            f"{n_layers:,} {size_name} are outside the range seen for this {name} ({own[0]:,} to {own[-1]:,})."
        )
    found += [
        f"{test.quantity} differs between GPUs by {test.spread_fraction:.1%}, more than chance explains (p = "
        f"{test.p_value:.3f}, {test.n_rows} rows); the GPUs are pooled nevertheless."
        for test in tests
        if test.is_rejected
    ]
    if any(fit.b2 <= _FLOOR for fit in rows):
        found.append("In some fits b2 is at its bound of 0: the prediction uses the typical b2 of its family.")
    return tuple(found)
