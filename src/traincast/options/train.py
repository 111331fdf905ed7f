"""What recipes train, on what, how, and what their forecast is for."""

from collections.abc import Sequence
from pathlib import Path
from types import EllipsisType
from typing import Annotated, TypedDict

from traincast.hardware.host import THIS_MACHINE
from traincast.options.option import Option
from traincast.options.run import PriceUsdPerHour
from traincast.options.typed import COUNT, GROWING_NUMBERS, NAMES, NUMBER, SECONDS, SHARE, WHOLE_NUMBERS
from traincast.recipes.usual import CHECKPOINT_S
from traincast.trace.settings import OPTIMIZERS, PRECISIONS

_LARGEST_SEED = 2**31 - 1

# What is trained, on what.
Data = Annotated[
    str | Path,
    Option(help="digits or shapes (offline), cifar10, or a path: CIFAR-10 files, or folders of images by class."),
]
ImageSide = Annotated[int | None, Option(help="Side of the images in pixels. Default: that of the data.", at_least=1)]
Download = Annotated[bool, Option(help="Fetch the data set if it is not here yet.", default=False)]
TrainedModel = Annotated[str, Option(help="cifar_resnet18, 20, 32, 44, 56, 110 or resnet50.", flag="--model")]
TrainedModels = Annotated[
    Sequence[str], Option(help="cifar_resnet20,cifar_resnet32, ...", flag="--models", typed=NAMES)
]
Teacher = Annotated[str, Option(help="The network that learns from the labels first.")]
Student = Annotated[str, Option(help="The network that learns from the teacher.")]
Weights = Annotated[
    str | Path | None,
    Option(help="Weights of a trained network. Default: train on half of the classes first.", metavar="FILE"),
]

# How.
TrainEpochs = Annotated[int, Option(help="Passes over the training images.", at_least=1)]
EpochsOfEach = Annotated[int, Option(help="Epochs of each run; the first is not counted.", at_least=1)]
PretrainingEpochs = Annotated[
    int, Option(help="Epochs of the first training, each as long as the training set.", at_least=1)
]
SourceEpochs = Annotated[int, Option(help="Passes over the first half of the classes.", at_least=1)]
EpochCounts = Annotated[Sequence[int], Option(help="Epochs of the runs.", typed=WHOLE_NUMBERS)]
BatchOfStep = Annotated[
    int, Option(help="Images per step.", flag="--batch", aliases=("--batch-size",), typed=COUNT, at_least=1)
]
BatchesOfDevice = Annotated[
    Sequence[int | EllipsisType],
    Option(
        help="Batch sizes per device, and of all devices. 32,... multiplies by 4 until memory or data end.",
        typed=GROWING_NUMBERS,
        at_least=1,
    ),
]
LearningRate = Annotated[float, Option(help="Learning rate of the first steps.", above=0)]
RatesToTry = Annotated[
    Sequence[float] | None,
    Option(
        help="Learning rate; repeat for more. Default: 1 (not for fine-tune), 0.1, 0.01, 0.001.",
        flag="--rate",
        metavar="RATE",
        typed=NUMBER,
        is_repeated=True,
        above=0,
    ),
]
Approaches = Annotated[
    Sequence[str] | None, Option(help="fine-tune, frozen or cached; repeat for more. Default: all.", flag="--approach")
]
TrainOptimizer = Annotated[
    str,
    Option(
        help="sgd, momentum, nesterov, adam, adamw, ...", choices=tuple(name for name in OPTIMIZERS if name != "none")
    ),
]
WeightDecay = Annotated[float, Option(help="Weight decay, as a fraction of the learning rate.", at_least=0)]
Augment = Annotated[bool, Option(help="Random crops, and mirrored images except of digits.")]
Seeds = Annotated[int, Option(help="Number of seeds: everything is run once with each.", at_least=1)]
TrainPrecision = Annotated[
    str, Option(help="fp32, tf32, amp-fp16, amp-bf16 or bf16.", default="fp32", choices=PRECISIONS)
]
Seed = Annotated[
    int, Option(help="Decides first weights, order and augmentation.", default=0, at_least=0, at_most=_LARGEST_SEED)
]
TrainDevice = Annotated[str, Option(help="What it is trained on here: cpu, cuda, cuda:1.", default="cpu")]
CheckpointS = Annotated[
    float,
    Option(
        help="At most so long between two checkpoints: 30, 90s, 5min.",
        default=CHECKPOINT_S,
        flag="--checkpoint-every",
        typed=SECONDS,
        at_least=0,
    ),
]
Out = Annotated[
    str | Path | None,
    Option(help="Folder for logs, checkpoints and results. Default: runs/RECIPE-MODEL-DATA.", metavar="FOLDER"),
]

# What the forecast is for.
ForecastPlace = Annotated[
    str,
    Option(
        help="What the forecast is for: this-machine, T4, 4xT4, FILE.toml.",
        default=THIS_MACHINE,
        flag="--on",
        metavar="PLACE",
    ),
]
ForecastDevice = Annotated[
    str,
    Option(help="What the forecast is for: this-machine, T4, ...", default=THIS_MACHINE, flag="--on", metavar="DEVICE"),
]
ForecastOnly = Annotated[bool, Option(help="Show the forecast and train nothing.")]
Picture = Annotated[
    str | Path | None, Option(help="Write a PNG with images of every class and their numbers.", metavar="FILE")
]

# Of teacher-student and weak.
Labeled = Annotated[float, Option(help="Share of the labels that are known.", flag="--labeled", typed=SHARE)]
KValues = Annotated[
    Sequence[int] | None,
    Option(
        help="Images selected per class; repeat for more. Default: 1/8, 1/2 and 2 times the unlabeled ones.",
        flag="--k",
        typed=COUNT,
        is_repeated=True,
    ),
]
PValues = Annotated[
    Sequence[int],
    Option(
        help="Likeliest classes that an image may serve; repeat for more.", flag="--p", typed=COUNT, is_repeated=True
    ),
]
Clean = Annotated[float, Option(help="Share of the labels that are clean.", flag="--clean", typed=SHARE)]
Noise = Annotated[
    Sequence[float],
    Option(help="Share of the tags that are replaced; repeat for more.", flag="--noise", typed=SHARE, is_repeated=True),
]
Imbalance = Annotated[float, Option(help="Images of the commonest class over those of the rarest.")]
Dropped = Annotated[float, Option(help="Share of the images that lack their true tag.", flag="--dropped", typed=SHARE)]
Added = Annotated[
    float, Option(help="Share of the images that have a tag of another class.", flag="--added", typed=SHARE)
]

# Of scaling and collect.
DeviceCounts = Annotated[
    Sequence[int],
    Option(
        help="Numbers of devices: processes on a CPU, GPUs with --device cuda.",
        flag="--n-devices",
        metavar="1,N...",
        typed=WHOLE_NUMBERS,
    ),
]
ScalingDevice = Annotated[str, Option(help="What it is trained on here: cpu or cuda.", flag="--device")]
ImagesPerEpoch = Annotated[int | None, Option(help="Images per epoch. Default: all.", typed=COUNT, at_least=1)]
JoiningLink = Annotated[
    str | None,
    Option(help="Link between the devices: PCIe3 x16, 12GB/s. Default: measured.", flag="--link", metavar="LINK"),
]
TrainDevices = Annotated[Sequence[str], Option(help="cpu, cuda, or both.", flag="--on-devices", typed=NAMES)]
OnRay = Annotated[str | None, Option(help="Run on this Ray cluster; 'local' starts one.", metavar="ADDRESS")]


class TrainingOptions(TypedDict, total=False):
    """What every command that trains is asked."""

    precision: TrainPrecision
    out: Out
    image_side: ImageSide
    download: Download
    price_usd_per_hour: PriceUsdPerHour


class RecipeOptions(TrainingOptions, total=False):
    """What recipes share that run here in one process."""

    seed: Seed
    device: TrainDevice
    checkpoint_s: CheckpointS
    on: ForecastPlace
