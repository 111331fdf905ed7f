"""The answer: what to rent, for how long and how much, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from traincast.errors import InputError
from traincast.forecasting.forecast import Forecast
from traincast.forecasting.question import Question
from traincast.forecasting.sweep import forecast_step
from traincast.hardware.machines import Machine
from traincast.lognormal import p90_factor
from traincast.planning.candidates import Candidates, Length, Terms
from traincast.planning.pareto import Limits
from traincast.planning.space import Space
from traincast.planning.steps import StepTable
from traincast.units import show_duration, show_usd

_S_PER_H = 3600.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice:
    """One way to do it. Times and costs are those to expect; `interval` gives p10 and p90."""

    offer: Machine
    question: Question
    is_spot: bool
    usd_per_hour: float  # of all machines together
    total_s: float
    median_s: float  # after the start, if no data loader holds it up
    log_sd: float
    least_s: float  # what the loader needs
    setup_s: float
    probability: float  # of keeping the limits
    n_epochs: float
    checkpoint_interval_s: float | None = None
    n_interruptions: float = 0.0

    @property
    def place(self) -> str:
        """What to rent, as --on reads it; a machine of one's own prices has its name in their file alone."""
        n_nodes = self.n_nodes
        return self.offer.name if n_nodes == 1 else f"{n_nodes}x{self.offer.name}"

    @property
    def n_nodes(self) -> int:
        return 1 if self.question.cluster is None else self.question.cluster.n_nodes

    @property
    def n_devices(self) -> int:
        return self.question.n_devices

    @property
    def strategy(self) -> str | None:
        return self.question.strategy.name if self.n_devices > 1 else None

    @property
    def cost_usd(self) -> float:
        return self.usd_per_hour * self.total_s / _S_PER_H

    def interval(self, name: str) -> tuple[float, float]:
        """p10 and p90 of `total_s` or `cost_usd`."""
        factor = p90_factor(self.log_sd)
        low, high = (self.setup_s + max(self.median_s * by, self.least_s) for by in (1 / factor, factor))
        price = self.usd_per_hour / _S_PER_H if name == "cost_usd" else 1.0
        return price * low, price * high

    @cached_property
    def forecast(self) -> Forecast:
        """The step in full: phases, memory, what binds, warnings."""
        return forecast_step(self.question)

    def to_dict(self) -> dict[str, Any]:
        question = self.question
        return {
            "offer": self.offer.name,
            "provider": self.offer.provider,
            "device": question.device.name,
            "n_devices": self.n_devices,
            "n_nodes": self.n_nodes,
            "is_spot": self.is_spot,
            "batch_size": question.batch_size,
            "batch_size_per_device": question.micro_batch_size * question.accumulation_steps,
            "accumulation_steps": question.accumulation_steps,
            "precision": question.settings.precision,
            "strategy": self.strategy,
            "usd_per_hour": self.usd_per_hour,
            "price_date": self.offer.price_date,
            "region": self.offer.region,
            "n_epochs": self.n_epochs,
            "step_s": self.forecast.step_s,
            "samples_per_s": self.forecast.samples_per_s,
            "bound_by": self.forecast.bound_by,
            "peak_memory_bytes": self.forecast.peak_memory_bytes,
            "total_s": self.total_s,
            "cost_usd": self.cost_usd,
            "intervals": {name: self.interval(name) for name in ("total_s", "cost_usd")},
            "probability": self.probability,
            "checkpoint_interval_s": self.checkpoint_interval_s,
            "n_interruptions": self.n_interruptions,
            "warnings": self.forecast.warnings,
        }

    def __repr__(self) -> str:
        spot = ", spot" if self.is_spot else ""
        return f"Choice({self.place}{spot}: {show_duration(self.total_s)}, {show_usd(self.cost_usd)})"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Plan:
    """What `plan` gives. `cheapest` and `fastest` keep the limits; None where nothing does: `nearest` comes closest."""

    model: str
    optimizer: str
    length: Length
    limits: Limits
    terms: Terms
    pareto: tuple[Choice, ...]  # fastest first
    cheapest: Choice | None
    fastest: Choice | None
    nearest: Choice | None
    space: Space
    steps: StepTable
    candidates: Candidates  # all that were compared
    remarks: tuple[str, ...] = ()  # what was assumed
    warnings: tuple[str, ...] = ()

    @property
    def recommended(self) -> Choice | None:
        """The fastest where only money is limited, else the cheapest."""
        only_money = self.limits.budget_usd is not None and self.limits.deadline_s is None
        return self.fastest if only_money else self.cheapest

    def job(self) -> Choice:
        """What to start: the recommended plan, or a sentence that there is none."""
        if self.recommended is None:
            close = (
                "nothing" if self.nearest is None else f"{self.nearest.place} at {100 * self.nearest.probability:.0f} %"
            )
            raise InputError(f"No plan keeps its limits: the nearest is {close}. Give it more time or money.")
        return self.recommended

    @property
    def price_dates(self) -> tuple[str, str]:
        """Of the oldest and of the newest price that was compared."""
        days = [offer.price_date for offer in self.space.offers if offer.price_date]
        return min(days, default=""), max(days, default="")

    @property
    def interruptions_per_day(self) -> dict[str, float]:
        """Of one machine, as assumed of the providers with a spot price; none where spot was not asked for."""
        names = sorted({offer.provider for offer in self.space.offers if offer.spot_usd_per_hour is not None})
        return {name: self.terms.per_day[name] for name in names} if self.terms.with_spot else {}

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "n_samples": self.length.n_samples,
            "n_epochs": self.length.n_epochs,
            "batch_sizes": list(self.space.batch_sizes),
            "noise_scale": self.length.noise_scale,
            "deadline_s": self.limits.deadline_s,
            "budget_usd": self.limits.budget_usd,
            "confidence": self.limits.confidence,
            "n_candidates": len(self.candidates),
            "n_offers": len(self.space.offers),
            "n_too_large": self.steps.n_too_large,
            "price_dates": list(self.price_dates),
            "setup_s": self.terms.setup_s,
            "checkpoint_s": self.terms.checkpoint_s if self.terms.with_spot else None,
            "interruptions_per_day": self.interruptions_per_day if self.terms.with_spot else None,
            "cheapest": _told(self.cheapest),
            "fastest": _told(self.fastest),
            "nearest": _told(self.nearest),
            "pareto": [choice.to_dict() for choice in self.pareto],
            "remarks": self.remarks,
            "warnings": self.warnings,
        }

    def __repr__(self) -> str:
        found = f"cheapest {self.cheapest}, fastest {self.fastest}"
        return f"Plan({self.model!r}: {len(self.candidates):,} candidates, {found})"

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook

        named = {"cheapest": self.cheapest, "fastest": self.fastest, "none: nearest is": self.nearest}
        named |= {f"front, {place}": one for place, one in enumerate(self.pareto, start=1)}
        rows = [
            (
                name,
                f"{one.place}{' (spot)' if one.is_spot else ''}",
                show_duration(one.total_s),
                show_usd(one.cost_usd),
                f"{100 * one.probability:.0f} %",
            )
            for name, one in named.items()
            if one is not None
        ]
        title = f"{self.model}, prices of {' to '.join(dict.fromkeys(self.price_dates))}"
        notes = (*self.remarks, *self.warnings)
        return to_notebook(title, rows, header=("", "rent", "time", "cost", "limits kept"), notes=notes)


def _told(choice: Choice | None) -> dict[str, Any] | None:
    return None if choice is None else choice.to_dict()
