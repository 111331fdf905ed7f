"""What may be rented, and what a plan has to keep."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from traincast.options.model import ModelOptions
from traincast.options.option import Option
from traincast.options.run import STRATEGIES_OF_THE_PAGE
from traincast.options.step import MethodOptions, TrainedAsOptions
from traincast.options.typed import (
    ACCURACY,
    COUNT,
    DOUBLING,
    DURATION,
    DURATION_OR_NONE,
    MEGABYTES_PER_S,
    NAMES,
    PROBABILITY,
    USD,
)
from traincast.trace.settings import PRECISIONS

NeededSamples = Annotated[
    int, Option(help="Samples per epoch.", typed=COUNT, at_least=1, at_most=10**15, at_most_on_page=10**12)
]
DeadlineS = Annotated[
    float | None,
    Option(
        label="Deadline",
        help="The run is to be over by then: 12h, 90min, 1d12h.",
        flag="--deadline",
        typed=DURATION,
        above=0,
        at_most_on_page=1e9,
    ),
]
BudgetUsd = Annotated[
    float | None,
    Option(
        label="Budget, USD", help="The most that it may cost.", flag="--budget", typed=USD, above=0, at_most_on_page=1e9
    ),
]
Confidence = Annotated[
    float,
    Option(
        help="How likely a plan has to keep deadline and budget, from 0.5: 90% or 0.9.",
        typed=PROBABILITY,
        at_least=0.5,
        at_most=0.99,
    ),
]
TargetAccuracy = Annotated[
    float | None,
    Option(help="Train until this accuracy (with --curve) instead of --epochs.", typed=ACCURACY, is_on_page=False),
]
FixedBatch = Annotated[
    int | None,
    Option(
        label="Batch",
        help="Samples of one optimizer update, over all GPUs. Default: 256.",
        flag="--batch",
        aliases=("--batch-size",),
        typed=COUNT,
        at_least=1,
        at_most_on_page=1_048_576,
    ),
]
BatchChoices = Annotated[
    Sequence[int] | None,
    Option(help="Batches to choose from: 128:1024 or 128,192,256.", typed=DOUBLING, is_on_page=False),
]
NoiseScale = Annotated[
    float | None, Option(help="Pollux' gradient noise in samples: what larger batches cost.", is_on_page=False)
]
Precisions = Annotated[
    str | Sequence[str] | None,
    Option(help="Default: fp32 and what a device's units speed up.", typed=NAMES, choices_on_page=PRECISIONS),
]
Strategies = Annotated[
    str | Sequence[str] | None,
    Option(
        help="Default: ddp, and fsdp where that does not fit at once.",
        typed=NAMES,
        choices_on_page=STRATEGIES_OF_THE_PAGE,
    ),
]
Providers = Annotated[
    str | Sequence[str] | None,
    Option(label="Provider", help="AWS, GCP, ...; repeat for more. Default: all.", flag="--provider"),
]
OfferedOn = Annotated[
    str | Sequence[str] | None,
    Option(
        label="Devices or machines",
        help="Compare only these: A100-SXM4-80GB, 8xT4, p3.16xlarge; repeat for more. Default: all.",
        flag="--on",
        metavar="NAME",
        is_on_page=False,
    ),
]
Spot = Annotated[bool, Option(label="Spot prices too", help="Also spot machines, with interruptions and checkpoints.")]
Prices = Annotated[
    str | Path | None, Option(help="CSV: offer or device, usd_per_hour, date.", metavar="FILE", is_on_page=False)
]
MaxGpus = Annotated[int, Option(help="Most devices of a plan.", at_least=1, at_most_on_page=64)]
MaxNodes = Annotated[int, Option(help="Most machines of a plan.", at_least=1, at_most_on_page=8)]
SetupS = Annotated[
    float,
    Option(
        help="From renting to the first step, and to restart.",
        flag="--setup",
        typed=DURATION_OR_NONE,
        at_least=0,
        is_on_page=False,
    ),
]
InterruptionsPerDay = Annotated[
    float | None,
    Option(
        help="Interruptions of one spot machine per day. Default: a table by provider.",
        flag="--interruptions-per-day",
        at_least=0,
        is_on_page=False,
    ),
]
CheckpointBytesPerS = Annotated[
    float,
    Option(
        help="MB per second at which checkpoints are written.",
        flag="--checkpoint-mb-per-s",
        typed=MEGABYTES_PER_S,
        above=0,
        is_on_page=False,
    ),
]
AsJob = Annotated[
    str | None, Option(help="Print the plan as sky (YAML), slurm or torchrun.", flag="--as", metavar="KIND")
]


class PlanOptions(TrainedAsOptions, MethodOptions, ModelOptions, total=False):
    """What stays the same in every plan."""
