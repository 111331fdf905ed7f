"""The whole answer to "what will the curve of that size be?": the prediction, how wrong it is here, and rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traincast.curves.size_transfer.fits import Fit, usable
from traincast.curves.size_transfer.held_out import HeldOut, Law, each_held_out, law_of
from traincast.curves.size_transfer.ridge import codes_of, ridge
from traincast.curves.size_transfer.runs import KnownRun
from traincast.curves.size_transfer.transferred import QUANTITIES, Transferred, predict_parameters
from traincast.curves.size_transfer.workers_curve import WorkersCurve
from traincast.logs.counting import of_all

_N_SIZES = 7


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Study:
    """A prediction from runs of other models. Runs of the model itself are compared with, and not learned from."""

    predicted: Transferred
    runs: tuple[KnownRun, ...]  # that were learned from
    own: tuple[KnownRun, ...]  # of the model that was asked for
    ridge: Mapping[str, float]  # what a plain regression says, on average over the hardware
    held_out: tuple[HeldOut, ...]
    steps_per_epoch: float | None
    warnings: tuple[str, ...]
    workers: tuple[WorkersCurve, ...] = ()  # the time to the target, by numbers of parameter servers
    speeds: str = ""  # where the speeds of these are from

    @property
    def unit(self) -> str:
        """Of the steps of all curves: "step", or "epoch" where logs count these only."""
        return self.runs[0].unit

    @property
    def ridge_curve(self) -> Law:
        return law_of(*(self.ridge[name] for name in ("b0", "b1", "b2")))

    @property
    def fitted(self) -> tuple[Fit, ...]:
        """What the model's own runs showed, as far as that can be compared with."""
        return tuple(run.fit for run in self.own if not run.fit.is_degenerate)

    def mean(self, quantity: str) -> float | None:
        """Of these; None where there are none."""
        known = [getattr(fit, quantity) for fit in self.fitted if getattr(fit, quantity) is not None]
        return float(np.mean(known)) if known else None

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {
            **self.predicted.to_dict(),
            "unit": self.unit,
            "steps_per_epoch": self.steps_per_epoch,
            "ridge": dict(self.ridge),
            "fitted": {name: self.mean(name) for name in (*QUANTITIES, "b2")} if self.fitted else None,
            "held_out": [each.to_dict() for each in self.held_out],
            "workers": [curve.to_dict() for curve in self.workers],
            "speeds": self.speeds,
            "warnings": list(self.warnings),
        }

    def _repr_html_(self) -> str:
        return self.predicted._repr_html_()


def study(
    runs: Sequence[KnownRun], size: int, *, total_steps: float, family: str | None = None, size_name: str = "layers"
) -> Study:
    """`family` may be left out where there is one, or where the model of that size is in the table."""
    of_size = {run.fit.family for run in runs if run.fit.n_layers == size}
    if family is None and len(of_size) == 1:
        family = next(iter(of_size))
    own = tuple(run for run in runs if run.fit.n_layers == size and run.fit.family == (family or run.fit.family))
    others = tuple(run for run in runs if run not in own)
    seen = [run.fit for run in others]
    predicted = predict_parameters(seen, size, total_steps=total_steps, family=family, size_name=size_name)
    held_out, remarks = each_held_out([run.fit for run in runs], total_steps=total_steps, size_name=size_name)
    codes = codes_of([run.fit for run in runs])
    learned, _ = usable(seen)
    known = {name: [ridge(learned, (size, gpu), name, codes) for gpu in codes] for name in (*QUANTITIES, "b2")}
    steps_per_epoch = [run.steps_per_epoch for run in runs if run.steps_per_epoch]
    return Study(
        predicted=predicted,
        runs=others,
        own=own,
        ridge={name: float(np.mean(found)) for name, found in known.items() if None not in found},  # type: ignore[arg-type]
        held_out=held_out,
        steps_per_epoch=float(np.median(steps_per_epoch)) if steps_per_epoch else None,
        warnings=(
            *predicted.warnings,
            *_not_compared(own),
            *remarks,
            *dict.fromkeys(text for run in runs for text in run.remarks),
        ),
    )


def _not_compared(own: Sequence[KnownRun]) -> tuple[str, ...]:
    n_lost = sum(run.fit.is_degenerate for run in own)
    many = of_all(n_lost, len(own), "runs of the model itself", "is a degenerate fit", "are degenerate fits")
    return (f"{many}, and nothing is compared with it.",) if n_lost else ()


def over_sizes(found: Study) -> tuple[Transferred, ...]:
    """The same for sizes from the smallest to the largest, evenly apart in logarithms, of the family asked for."""
    asked = found.predicted
    known = [asked.n_layers, *(run.fit.n_layers for run in (*found.runs, *found.own))]
    between = np.geomspace(min(known), max(known), _N_SIZES).tolist()
    return tuple(
        predict_parameters(
            [run.fit for run in found.runs],
            size,
            total_steps=asked.curve.last_step,
            family=asked.family,
            size_name=asked.size_name,
        )
        for size in sorted({asked.n_layers, *map(round, between)})
    )
