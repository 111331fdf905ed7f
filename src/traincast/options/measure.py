"""What is timed for real: on this machine, in many rows, in several processes, or over published measurements."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from traincast.options.model import ModelOptions
from traincast.options.option import Option
from traincast.options.typed import COUNT, MILLISECONDS
from traincast.trace.settings import OPTIMIZERS, PRECISIONS

TorchDevice = Annotated[str, Option(help="cpu, cuda or cuda:1.", default="cpu")]
UsedOptimizer = Annotated[str, Option(help="none, sgd, momentum, adam, adamw, ...", default="sgd", choices=OPTIMIZERS)]
UsedPrecision = Annotated[
    str, Option(help="fp32, tf32, amp-fp16, amp-bf16 or bf16.", default="fp32", choices=PRECISIONS)
]
TimedSteps = Annotated[
    int | None,
    Option(help="Steps to time. Default: 5 to 100, about two seconds.", flag="--steps", at_least=1, at_most=10**9),
]

# A model that runs. Several processes may measure the link between them without one.
_MODEL = Option(
    help="A zoo name, an .onnx, .keras or config.json file, or file.py:factory; none for --all-reduce alone.",
    is_argument=True,
    shows_default=False,
)
ModelToRun = Annotated[str | Path, _MODEL]
MaybeModelToRun = Annotated[str | Path | None, _MODEL]
_BATCH = Option(help="Samples of one step, over all processes.", flag="--batch", typed=COUNT, at_least=1)
BatchToRun = Annotated[int, _BATCH]
MaybeBatchToRun = Annotated[int | None, _BATCH]
RunsCompiled = Annotated[bool, Option(help="Run the model under torch.compile.", flag="--compiled")]
DefaultMalloc = Annotated[bool, Option(help="Let the C library return memory to the system between steps.")]
NRepeats = Annotated[
    int, Option(help="Fresh processes to measure in, one after the other.", flag="--repeat", at_least=1)
]
EpochSamples = Annotated[
    int,
    Option(
        help="Measure an epoch of so many samples, made up or from --data, over a loader.",
        flag="--epoch-samples",
        typed=COUNT,
        at_least=1,
    ),
]
LoaderWorkers = Annotated[
    int, Option(help="Processes of that loader. Default: none of its own.", at_least=0, shows_default=False)
]
DataFunction = Annotated[
    str | None,
    Option(
        help="Data set for --epoch-samples or --sweep workers. Default: made up; of a sweep, 'dataset' of the model's "
        "file. For --epochs of a sweep: CIFAR-10 files or folders of images instead of digits.",
        metavar="FILE.py:FUNCTION",
    ),
]
Processes = Annotated[
    int | None, Option(help="Train in so many processes at once, which share the batch (DDP).", at_least=2)
]
AllReduce = Annotated[bool, Option(help="Measure the link between the processes, by message size.")]
SWEEPS = ("batch", "workers", "optimizers", "norm", "device", "precision", "compile")
Sweep = Annotated[
    str,
    Option(
        help="Change one thing: batch, workers, optimizers, norm, device, precision or compile.",
        flag="--sweep",
        metavar="WHAT",
        choices=SWEEPS,
        shows_default=False,
    ),
]
MaxStepS = Annotated[
    float | None, Option(help="Sweep of batch: stop at a step longer than this many seconds. Default: 20.", above=0)
]
SampleCostS = Annotated[
    float | None,
    Option(
        help="Sweep of workers: milliseconds that a made-up sample costs. Default: 1.",
        flag="--sample-ms",
        typed=MILLISECONDS,
        at_least=0,
    ),
]
SampleWaits = Annotated[bool, Option(help="That cost is waiting, not CPU work.")]
LearnedEpochs = Annotated[
    int | None, Option(help="Sweep of optimizers or norm: also learn for so many epochs.", flag="--epochs", at_least=0)
]
StoreFile = Annotated[
    str | Path | None, Option(help="Keep the result in a store of records.", flag="--store", metavar="FILE.db")
]


class HowToRun(TypedDict, total=False):
    """How a step is run, whatever the model."""

    optimizer: UsedOptimizer
    precision: UsedPrecision
    device: TorchDevice


class NamedRunOptions(HowToRun, ModelOptions, total=False):
    """How a named model is built and its step run."""


CalibratedProcesses = Annotated[
    int, Option(help="Processes side by side; --on 2xthis-machine then means two of them.", at_least=1)
]
PppRuns = Annotated[
    str | Path | None,
    Option(
        help="Instead: fit Paleo's platform percent of peak to a CSV with model, device, batch, step_s.",
        flag="--ppp",
        metavar="FILE",
    ),
]
ProfileFile = Annotated[
    str | Path | None,
    Option(help="Also write the profile as a device file for others.", flag="--export", metavar="FILE.toml"),
]

Benchmarks = Annotated[
    str,
    Option(
        help="Whole layers with backward, or single ops.",
        is_argument=True,
        metavar="layers|ops",
        choices=("layers", "ops"),
    ),
]
StoreToWrite = Annotated[str | Path, Option(help="Where records go: one SQLite file.", flag="--store", metavar="FILE")]
BenchStore = Annotated[
    str | Path, Option(help="A store with layers that 'traincast bench layers' timed.", flag="--from", metavar="STORE")
]
WeightsFile = Annotated[str | Path, Option(help="Where the weights are written.", metavar="FILE")]
NRows = Annotated[int, Option(help="Random layers or ops to time.", at_least=1)]
RowsSeed = Annotated[int, Option(help="The same seed draws the same rows.")]
Campaign = Annotated[str | None, Option(help="Its name in the store. Default: layers or ops.", metavar="NAME")]
CpusPerTask = Annotated[int | None, Option(help="On Ray: CPUs of a node per task or run. Default: all.", at_least=1)]
RetryFailed = Annotated[bool, Option(help="Run again what failed before.")]

PublicData = Annotated[
    str | Path, Option(help="Public measurements: folder with ops/, e2e/, layers/.", flag="--data", metavar="DIR")
]
TracesFolder = Annotated[
    str | Path | None,
    Option(
        help="Traces of their models, by benchmarks/capture_models.py; else ~/.cache/traincast/traces.", metavar="DIR"
    ),
]
SetNames = Annotated[
    "Sequence[str] | None", Option(help="Only this set; repeat for more.", flag="--set", metavar="NAME")
]
MethodNames = Annotated[
    "Sequence[str] | None", Option(help="Only this method; repeat for more.", flag="--method", metavar="NAME")
]
BrokenDownBy = Annotated[
    str | None,
    Option(
        help="Also one row per device, family, precision, part or op.",
        choices=("device", "family", "precision", "part", "op"),
    ),
]
