"""How a step is run, and how its time is predicted."""

from pathlib import Path
from typing import Annotated, TypedDict

from traincast.options.model import ModelOptions
from traincast.options.option import Option
from traincast.options.typed import COUNT
from traincast.trace.settings import MODES, OPTIMIZERS, PRECISIONS

BatchSize = Annotated[
    int,
    Option(
        label="Batch",
        help="Samples of one optimizer update, over all devices.",
        flag="--batch",
        metavar="N",
        typed=COUNT,
        at_least=1,
        at_most_on_page=1_048_576,
        job="training.batch",
    ),
]
Precision = Annotated[
    str | None,
    Option(
        label="Precision",
        help="fp32, tf32, amp-fp16, amp-bf16 or bf16. Default: as captured (fp32 for zoo models).",
        choices=PRECISIONS,
        shows_default=False,
        job="training.precision",
    ),
]
Optimizer = Annotated[
    str | None,
    Option(
        label="Optimizer",
        help="none, sgd, momentum, adam, adamw, ... Default: as captured (sgd for zoo models).",
        choices=OPTIMIZERS,
        shows_default=False,
        job="training.optimizer",
    ),
]
Mode = Annotated[
    str,
    Option(
        help="train: whole training steps; inference: forward passes of the trained model.",
        default="train",
        choices=MODES,
        is_on_page=False,
        job="training.mode",
    ),
]
Layout = Annotated[
    str,
    Option(
        help="Memory layout of images: nchw or nhwc (channels last).",
        default="nchw",
        choices=("nchw", "nhwc"),
        job="training.layout",
    ),
]
Compiled = Annotated[
    bool,
    Option(
        label="Under torch.compile", help="The model runs under torch.compile.", default=False, job="training.compiled"
    ),
]
AccumulationSteps = Annotated[
    int,
    Option(
        help="Gradient accumulation: passes per optimizer update.",
        default=1,
        flag="--accumulate",
        at_least=1,
        at_most_on_page=4096,
        job="training.accumulate",
    ),
]
Counts = Annotated[
    bool, Option(help="Also how many parameters, gradients and optimizer states there are.", is_on_page=False)
]
Method = Annotated[
    str,
    Option(
        help="How times are predicted: traincast, roofline, paleo or layerwise.",
        default="traincast",
        choices=("traincast", "roofline", "paleo", "layerwise"),
        is_on_page=False,
        job="method.name",
    ),
]
Ppp = Annotated[
    float | None,
    Option(
        help="With the method paleo: platform percent of peak, as a fraction.",
        above=0,
        shows_default=False,
        is_on_page=False,
        job="method.ppp",
    ),
]
LayerWeights = Annotated[
    str | Path | None,
    Option(
        help="With the method layerwise: weights that 'traincast train layer-model' wrote.",
        flag="--weights",
        metavar="FILE",
        shows_default=False,
        is_on_page=False,
        job="method.weights",
    ),
]
Host = Annotated[
    str | None,
    Option(
        help="What dispatches the ops: torch-eager, tf1-session, tf2-keras, this-machine.",
        is_on_page=False,
        job="cluster.host",
    ),
]
InputSamplesPerS = Annotated[
    float | None,
    Option(
        help="Samples per second that the data loader delivers.",
        above=0,
        at_most_on_page=1e9,
        job="data.input_samples_per_s",
    ),
]
Devices = Annotated[
    str | Path | None,
    Option(
        help="CSV or TOML file with your own devices.",
        flag="--devices",
        metavar="FILE",
        is_on_page=False,
        job="cluster.devices",
    ),
]


class Settings(TypedDict, total=False):
    """Precision and optimizer."""

    precision: Precision
    optimizer: Optimizer


class MemoryOptions(Settings, ModelOptions, total=False):
    """What the memory of a step depends on."""

    devices: Devices


class LayerOptions(ModelOptions, total=False):
    """What layers ask for depends on the model alone; their ideal time on precision and device."""

    precision: Precision
    devices: Devices


class MethodOptions(TypedDict, total=False):
    """How ops are run and timed, whatever is chosen about the run."""

    mode: Mode
    layout: Layout
    compiled: Compiled
    method: Method
    ppp: Ppp
    layer_weights: LayerWeights
    host: Host
    input_samples_per_s: InputSamplesPerS
    devices: Devices


class StepOptions(Settings, MethodOptions, total=False):
    """How one device runs the step."""

    accumulation_steps: AccumulationSteps
