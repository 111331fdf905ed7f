"""How long a run is, where it runs, what it costs, and when it is good enough."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from traincast.options.model import ModelOptions
from traincast.options.option import Option
from traincast.options.step import StepOptions
from traincast.options.typed import COUNT, NUMBERS_IN_ORDER, TARGET, USD

if TYPE_CHECKING:
    from traincast.hardware.cluster import Cluster
    from traincast.logs.log import Log

STRATEGIES_OF_THE_PAGE = ("ddp", "dp", "mirrored", "fsdp", "zero1", "zero2", "zero3")

Place = Annotated[
    "str | Cluster",
    Option(
        help="T4, 4xT4, 2x4xT4@50Gb/s, p3.16xlarge, FILE.toml, this-machine.",
        flag="--on",
        metavar="PLACE",
        job="cluster.on",
    ),
]
Places = Annotated[
    "Sequence[str | Cluster]",
    Option(
        help="T4, 4xT4, 2x4xT4@50Gb/s, p3.16xlarge, FILE.toml, this-machine; repeat to compare.",
        flag="--on",
        metavar="PLACE",
        job="cluster.on",
    ),
]
BatchSizes = Annotated[
    Sequence[int],
    Option(
        help="Samples of one optimizer update, over all devices; several: a table.",
        flag="--batch",
        typed=NUMBERS_IN_ORDER,
        at_least=1,
        job="training.batch",
    ),
]
MaybeBatchSizes = Annotated[
    Sequence[int] | None,
    Option(
        help="Samples of one optimizer update, over all devices; several: a table. Default for language models: as "
        "many as fit.",
        flag="--batch",
        metavar="N[,N...]",
        typed=NUMBERS_IN_ORDER,
        at_least=1,
        shows_default=False,
        job="training.batch",
    ),
]
NSamples = Annotated[
    int | None,
    Option(
        label="Samples of one epoch",
        help="Samples per epoch.",
        typed=COUNT,
        at_least=1,
        at_most=10**15,
        at_most_on_page=10**12,
        job="data.samples",
    ),
]
NEpochs = Annotated[
    int,
    Option(
        label="Epochs",
        help="Epochs to train.",
        default=1,
        at_least=1,
        at_most=10**15,
        at_most_on_page=100_000,
        job="training.epochs",
    ),
]
NTokens = Annotated[
    int | None,
    Option(
        help="Tokens of the whole run, instead of samples and epochs: 300B, 15T.",
        label="Tokens of the run",
        typed=COUNT,
        at_least=1,
        at_most=10**18,
        job="data.tokens",
    ),
]
Strategy = Annotated[
    str,
    Option(
        help="How devices share the work: ddp, dp, mirrored, ps:P, ps-async:P, fsdp, hsdp:N, zero1, zero2 or zero3.",
        default="ddp",
        choices_on_page=STRATEGIES_OF_THE_PAGE,
        job="cluster.strategy",
    ),
]
TensorParallel = Annotated[
    int,
    Option(
        help="Devices of a node that share each block.",
        default=1,
        at_least=1,
        is_on_page=False,
        job="cluster.tensor_parallel",
    ),
]
PipelineParallel = Annotated[
    int,
    Option(
        help="Pipeline stages that share the blocks of a transformer.",
        default=1,
        at_least=1,
        is_on_page=False,
        job="cluster.pipeline_parallel",
    ),
]
ContextParallel = Annotated[
    int,
    Option(
        help="Devices that share every sequence, each with its part of the positions.",
        default=1,
        at_least=1,
        is_on_page=False,
        job="cluster.context_parallel",
    ),
]
ContextKind = Annotated[
    str,
    Option(
        help="How those exchange keys and values: ring or ulysses.",
        default="ring",
        is_on_page=False,
        job="cluster.context_kind",
    ),
]
PipelineSchedule = Annotated[
    str,
    Option(
        help="Order of a pipeline's passes: 1f1b, gpipe, interleaved:V or zero-bubble.",
        default="1f1b",
        is_on_page=False,
        job="cluster.pipeline_schedule",
    ),
]
PriceUsdPerHour = Annotated[
    float | None,
    Option(
        help="USD per device and hour.",
        flag="--price",
        typed=USD,
        above=0,
        at_most_on_page=10_000,
        job="cluster.price_usd_per_hour",
    ),
]
Region = Annotated[
    str | None,
    Option(help="Country or cloud region, for CO2: us-east-1, Germany.", is_on_page=False, job="cluster.region"),
]
GridGPerKwh = Annotated[
    float | None,
    Option(
        help="Grams of CO2 per kWh, instead of the region's.",
        at_least=0,
        is_on_page=False,
        job="cluster.grid_g_per_kwh",
    ),
]
Pue = Annotated[
    float,
    Option(
        help="Power usage effectiveness: site power over device power.",
        default=1.0,
        at_least=1,
        is_on_page=False,
        job="cluster.pue",
    ),
]
Curve = Annotated[
    "Log | str | Path | None",
    Option(
        help="Log of an earlier run of the same model and data, for a target.",
        metavar="LOG",
        is_on_page=False,
        job="target.curve",
    ),
]
Target = Annotated[
    float | None, Option(help="Loss or accuracy to reach.", typed=TARGET, is_on_page=False, job="target.value")
]
Metric = Annotated[
    str | None,
    Option(
        label="Metric",
        help="Metric of curve and target: loss, accuracy, f1 or a column's name. Default: a loss.",
        is_on_page=False,
        job="target.metric",
    ),
]
Measured = Annotated[
    str | Path | None,
    Option(
        help="A trace of torch.profiler, a store, a CSV table, JSON of 'traincast measure'; here: profile it now.",
        metavar="FILE|here",
        is_on_page=False,
    ),
]

LayerSum = Annotated[
    bool,
    Option(help="Instead: its layers timed alone and added up, against the whole model.", is_on_page=False),
]


class ExplainOptions(StepOptions, ModelOptions, total=False):
    """One step, on one device or many."""

    strategy: Strategy


FailOver = Annotated[
    str | None,
    Option(
        help="budget=200,hours=12,memory=90%: exit code 3 if the forecast exceeds one.",
        metavar="LIMITS",
        is_on_page=False,
    ),
]
CompareWith = Annotated[
    str | Path | None,
    Option(
        help="What --json printed earlier: show the differences.", flag="--compare", metavar="FILE", is_on_page=False
    ),
]
Against = Annotated[
    str | None, Option(help="Another commit of the job file: show the differences.", metavar="REF", is_on_page=False)
]


class RunOptions(StepOptions, ModelOptions, total=False):
    """A run of such steps."""

    n_samples: NSamples
    n_epochs: NEpochs
    n_tokens: NTokens
    price_usd_per_hour: PriceUsdPerHour


class BesideOptions(TypedDict, total=False):
    """What is told beside the time of a run: CO2, and the way to a target."""

    region: Region
    grid_g_per_kwh: GridGPerKwh
    pue: Pue
    curve: Curve
    target: Target
    metric: Metric


class PlacedOptions(RunOptions, total=False):
    """A run on devices that share the work."""

    strategy: Strategy
    tensor_parallel: TensorParallel
    pipeline_parallel: PipelineParallel
    context_parallel: ContextParallel
    context_kind: ContextKind
    pipeline_schedule: PipelineSchedule


class ForecastOptions(PlacedOptions, BesideOptions, total=False):
    """All that a forecast can be asked beside its model, its place and its batch."""
