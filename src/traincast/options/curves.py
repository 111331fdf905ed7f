"""What is asked of the log of a run: how it is read, what is continued, and until when."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from traincast.options.option import Option
from traincast.options.run import Metric, Target
from traincast.options.typed import AMOUNT, COUNT, MEANING, NUMBER, SIZE_OF, USD, WHOLE_NUMBERS

if TYPE_CHECKING:
    from traincast.curves.schedule import LearningRate
    from traincast.forecasting.forecast import Forecast
    from traincast.logs.log import Log

_SPLITS = ("train", "validation", "test")
_FORMATS = ("csv", "jsonl", "json", "trainer_state", "tensorboard", "wandb", "mlperf", "text")
_MOST = 10**15  # steps, epochs, layers: nobody means more
_LONGEST_STEP_S = 1e9
_DEAREST_USD = 1e9

LogFiles = Annotated[
    Sequence[str], Option(help="Logs of training runs: CSV, JSONL, ...", metavar="FILE...", is_argument=True)
]
WatchedLog = Annotated[
    str | Path, Option(help="The log that a run is writing.", metavar="FILE", is_argument=True, is_on_page=False)
]
Split = Annotated[str | None, Option(help="train, validation or test.", choices=_SPLITS, is_on_page=False)]
TotalSteps = Annotated[
    float | None, Option(help="Steps of the whole run. Default: as logged.", typed=AMOUNT, above=0, at_most=_MOST)
]
RunEpochs = Annotated[
    float | None,
    Option(help="Epochs of the whole run. Default: as logged.", typed=AMOUNT, above=0, at_most=_MOST, is_on_page=False),
]
StepsPerEpoch = Annotated[
    float | None,
    Option(help="Steps per epoch. Default: as logged.", typed=AMOUNT, above=0, at_most=_MOST, is_on_page=False),
]
Rates = Annotated[
    "LearningRate | None",
    Option(
        help="constant, linear, cosine, linear:0.4 (last 40 %), or 0.1,0.01@32000. Default: as logged.",
        flag="--lr",
        metavar="SCHEDULE",
        is_on_page=False,
    ),
]
CurveFamily = Annotated[
    str,
    Option(help="Family of curves: auto or optimus.", default="auto", choices=("auto", "optimus"), is_on_page=False),
]
UsdPerHour = Annotated[
    float | None,
    Option(help="USD per hour for all devices together.", flag="--price", typed=USD, at_least=0, at_most=_DEAREST_USD),
]
Like = Annotated[
    "Sequence[Log | str | Path]",
    Option(
        help="Logs of whole runs of the same kind: continue this one as they went.",
        default=(),
        flag="--like",
        metavar="FILE",
        shows_default=False,
        is_on_page=False,
    ),
]
RelationFrom = Annotated[
    "Sequence[Log | str | Path]",
    Option(
        help="Logs with loss and accuracy: derive the accuracy from the loss.",
        default=(),
        flag="--relation-from",
        metavar="FILE",
        shows_default=False,
        is_on_page=False,
    ),
]

Fits = Annotated[
    bool,
    Option(help="A table of Optimus' fits instead: b0, b1, b2, R^2 and the target of every log.", is_on_page=False),
]
FitsFile = Annotated[
    str | Path | None,
    Option(help="With --fits: write its rows to a .csv file.", flag="--export", metavar="FILE", is_on_page=False),
]


class CurveOptions(TypedDict, total=False):
    """Which series of a run is continued, how far, and what for."""

    target: Target
    metric: Metric
    split: Split
    total_steps: TotalSteps
    n_epochs: RunEpochs
    learning_rate: Rates
    family: CurveFamily
    usd_per_hour: UsdPerHour
    like: Like
    relation_from: RelationFrom


StepTime = Annotated[
    "Forecast | float | None",
    Option(
        help="Seconds per step, instead of those in the log.",
        flag="--step-s",
        typed=NUMBER,
        above=0,
        at_most=_LONGEST_STEP_S,
        is_on_page=False,
    ),
]
BatchTo = Annotated[
    float | None,
    Option(
        help="Also when the target is reached at this batch size: needs --noise-scale.",
        typed=COUNT,
        above=0,
        is_on_page=False,
    ),
]
LoggedBatch = Annotated[
    float | None,
    Option(
        help="With --batch-to: batch size of the run. Default: as logged.",
        flag="--batch",
        typed=COUNT,
        above=0,
        is_on_page=False,
    ),
]

Format = Annotated[
    str | None,
    Option(
        help=f"{', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}. Default: recognised.", choices=_FORMATS, is_on_page=False
    ),
]
Pattern = Annotated[str | None, Option(help="Regular expression with named groups, for text logs.", is_on_page=False)]
Columns = Annotated[
    Mapping[str, str] | None,
    Option(
        help="What a column is: step=it, val_loss=l2. Repeat for more.",
        flag="--column",
        typed=MEANING,
        is_on_page=False,
    ),
]
OneRun = Annotated[
    str | None, Option(help="Which run to read, if a file holds several.", flag="--run", is_on_page=False)
]


class ReadingOptions(TypedDict, total=False):
    """How a log is read, whatever is asked of it."""

    format: Format
    pattern: Pattern
    columns: Columns
    steps_per_epoch: StepsPerEpoch


ExpectedStepS = Annotated[
    float | None,
    Option(
        help="Expected seconds per step: warns if the run is slower.",
        typed=NUMBER,
        above=0,
        at_most=_LONGEST_STEP_S,
        is_on_page=False,
    ),
]
IntervalS = Annotated[float, Option(help="Seconds between two looks.", flag="--interval", typed=NUMBER, above=0)]
StopIf = Annotated[
    str | None,
    Option(help="End with exit code 3 if p(target), loss, eta_s or slower is < or > a number.", metavar="RULE"),
]
Once = Annotated[bool, Option(help="Look once and end.")]
Strict = Annotated[
    bool, Option(help="End with exit code 2 where the watch could only wait: the log is gone or damaged.")
]


class WatchOptions(CurveOptions, ReadingOptions, total=False):
    """What is asked of a log that grows."""


TableOfRuns = Annotated[
    str | Path,
    Option(
        help="CSV or JSON table of runs: model, depth, hardware, and b0, b1, b2 and epochs, or a log.",
        metavar="RUNS",
        is_argument=True,
        is_on_page=False,
    ),
]
Size = Annotated[int, Option(help="The size to predict.", at_least=1, at_most=_MOST)]
SizeColumn = Annotated[str, Option(help="The column of the table that holds the size.")]
Predict = Annotated[str, Option(help="The size to predict, and its column: depth=50.", flag="--predict", typed=SIZE_OF)]
ModelFamily = Annotated[
    str | None, Option(help="Which family of models to predict, if the table holds several.", flag="--family")
]
Rows = Annotated[str | None, Option(help="Which rows to use, if the table has a column split.", flag="--rows")]
LossSplit = Annotated[str, Option(help="Which loss of the logs: train, validation or test.", choices=_SPLITS)]
TargetMetric = Annotated[str, Option(help="Metric of the target, in the logs.")]
TimedWorkers = Annotated[
    Sequence[int] | None, Option(help="Time to the target by number of workers: 1-32.", typed=WHOLE_NUMBERS, at_least=1)
]
TimedServers = Annotated[
    Sequence[int] | None,
    Option(help="With --workers: numbers of parameter servers. Default: 2,4.", typed=WHOLE_NUMBERS, at_least=1),
]
TimedBy = Annotated[
    str | None,
    Option(
        help="With --workers: paper-sync, paper-async (default), a CSV with servers, workers, steps_per_s, or "
        "MODEL@DEVICE: our forecast.",
        flag="--optimus",
        metavar="SPEEDS",
    ),
]
TimedBatch = Annotated[
    int | None,
    Option(help="With --workers: global batch of synchronous workers.", flag="--batch", typed=COUNT, at_least=1),
]
