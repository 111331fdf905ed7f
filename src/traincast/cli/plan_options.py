"""Options of `traincast plan` alone."""

from pathlib import Path
from typing import Annotated

import typer

from traincast.cli.options import usd
from traincast.errors import InputError
from traincast.units import MEGA


def _accuracy(text: str | float) -> float:
    """As people write it: 0.92 or 92%."""
    written = str(text).strip()
    try:
        return float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is no accuracy: write 0.92 or 92%.") from None


Deadline = Annotated[str | None, typer.Option(metavar="TIME", help="The run is to be over by then: 12h, 90min, 1d12h.")]
Budget = Annotated[float | None, typer.Option(metavar="USD", parser=usd, help="What it may cost at most.")]
Confidence = Annotated[
    str, typer.Option(metavar="SHARE", help="How likely a plan has to keep them, from 0.5: 90% or 0.9.")
]
TargetAccuracy = Annotated[
    float | None,
    typer.Option(
        "--target-accuracy",
        metavar="<float>",
        parser=_accuracy,
        help="Train until this accuracy (with --curve) instead of --epochs.",
    ),
]
Curve = Annotated[Path | None, typer.Option(metavar="LOG", help="Log of an earlier run, at --batch-size.")]
BatchSize = Annotated[
    int | None,
    typer.Option("--batch-size", help="Samples of one update of all GPUs. Default: 256.", show_default=False),
]
BatchSizes = Annotated[
    str | None, typer.Option("--batch-sizes", metavar="RANGE", help="Batches to choose from: 128:1024 or 128,192,256.")
]
NoiseScale = Annotated[
    float | None, typer.Option("--noise-scale", help="Pollux' gradient noise in samples: what larger batches cost.")
]
Precisions = Annotated[
    str | None,
    typer.Option("--precision", metavar="NAME[,NAME...]", help="Default: fp32 and what a device's units speed up."),
]
Strategies = Annotated[
    str | None,
    typer.Option(
        "--strategy", metavar="NAME[,NAME...]", help="Default: ddp, and fsdp where that does not fit at once."
    ),
]
Provider = Annotated[list[str] | None, typer.Option("--provider", help="AWS, GCP, ...; again for more. Default: all.")]
Spot = Annotated[bool, typer.Option("--spot", help="Also spot machines, with interruptions and checkpoints.")]
PricesFile = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="CSV: offer or device, usd_per_hour, date.")
]
MaxGpus = Annotated[int, typer.Option("--max-gpus", help="Devices of a plan at most.")]
MaxNodes = Annotated[int, typer.Option("--max-nodes", help="Machines of a plan at most.")]
Setup = Annotated[str, typer.Option(metavar="TIME", help="From renting to the first step, and to restart.")]
InterruptionsPerDay = Annotated[
    float | None, typer.Option("--interruptions-per-day", help="Of one spot machine. Default: a table by provider.")
]
CheckpointRate = Annotated[
    float | None, typer.Option("--checkpoint-mb-per-s", help="Rate at which checkpoints are written. Default: 131.")
]
AsJob = Annotated[
    str | None, typer.Option("--as", metavar="KIND", help="Print the plan as sky (YAML), slurm or torchrun.")
]


def batch_range(text: str) -> list[int]:
    """'128:1024' doubles from one end to the other, which it has both; '128,192' is a list."""
    try:
        if ":" in text:
            low, high = (int(part) for part in text.split(":"))
            found = (
                {low << n for n in range(high.bit_length()) if low << n <= high} | {high} if 1 <= low <= high else set()
            )
        else:
            found = {int(part) for part in text.split(",")}
    except ValueError:
        found = set()
    if not found or min(found) < 1:
        raise InputError(f"--batch-sizes '{text}' is no range of whole numbers from 1: write 128:1024 or 128,192,256.")
    return sorted(found)


def megabytes(rate: float) -> float:
    """Bytes a second of a rate in MB a second."""
    return rate * MEGA
