"""The flags of `traincast measure` that only sweeps have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from traincast.errors import InputError

# What each flag is about; with any other sweep it would be left out quietly.
_SWEEP_OF = {
    "--max-step-s": "batch",
    "--data": "workers",
    "--sample-ms": "workers",
    "--sample-waits": "workers",
    "--epochs": "optimizers",
}

Sweep = Annotated[
    str | None,
    typer.Option(
        "--sweep",
        metavar="WHAT",
        help="Change one thing: batch, workers, optimizers, norm, device, precision or compile.",
        show_default=False,
    ),
]
MaxStepS = Annotated[
    float | None,
    typer.Option(
        "--max-step-s", help="Sweep of batch: stop at a step longer than this. Default: 20.", show_default=False
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="FILE.py:FUNCTION",
        help="Sweep of workers, or --epoch-samples: gives the data set. Default: made-up; of a sweep, 'dataset' of "
        "the model's file.",
        show_default=False,
    ),
]
SampleMs = Annotated[
    float | None,
    typer.Option("--sample-ms", help="Sweep of workers: cost of a made-up sample. Default: 1.", show_default=False),
]
SampleWaits = Annotated[bool, typer.Option("--sample-waits", help="That cost is waiting, not CPU work.")]
Epochs = Annotated[
    int | None,
    typer.Option("--epochs", help="Sweep of optimizers: also learn for so many epochs.", show_default=False),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFlags:
    """Their values; None is what was not given."""

    max_step_s: float | None = None
    data: str | None = None
    sample_ms: float | None = None
    sample_waits: bool = False
    epochs: int | None = None

    def check(self, sweep: str | None, others: Mapping[str, bool]) -> None:
        """No flag is left out quietly; `others` are those that no sweep has, and whether they were given."""
        given = {
            "--max-step-s": self.max_step_s is not None,
            "--data": self.data is not None,
            "--sample-ms": self.sample_ms is not None,
            "--sample-waits": self.sample_waits,
            "--epochs": self.epochs is not None,
        }
        for flag, is_given in given.items():
            if is_given and _SWEEP_OF[flag] != sweep:
                now = "a single step" if sweep is None else f"--sweep {sweep}"
                raise InputError(f"{flag} is of --sweep {_SWEEP_OF[flag]} and does not go with {now}.")
        for flag, is_given in others.items():
            if is_given and sweep is not None:
                raise InputError(f"{flag} does not go with --sweep: leave one of them out.")
        if self.sample_waits and self.sample_ms is None:
            raise InputError("--sample-waits says how --sample-ms are spent: give --sample-ms too.")
