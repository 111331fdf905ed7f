"""How a step is run, and how its time is predicted."""

from pathlib import Path
from typing import Annotated, TypedDict

from traincast.options.model import ModelOptions
from traincast.options.option import Option
from traincast.options.typed import COUNT
from traincast.trace.settings import COMPILE_MODES, FORECAST_OPTIMIZERS, FORECAST_PRECISIONS, MODES, RECOMPUTE, STACKS

BatchSize = Annotated[
    int,
    Option(
        label="Batch",
        help="Samples of one optimizer update, over all devices.",
        flag="--batch",
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
        help="fp32, tf32, amp-fp16, amp-bf16, bf16 or fp8. Default: as captured (fp32 for zoo models).",
        choices=FORECAST_PRECISIONS,
        job="training.precision",
    ),
]
Optimizer = Annotated[
    str | None,
    Option(
        label="Optimizer",
        help="none, sgd, momentum, adam, adamw, adamw-8bit, lion, ... Default: as captured (sgd for zoo models).",
        choices=FORECAST_OPTIMIZERS,
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
Recompute = Annotated[
    str,
    Option(
        label="Recompute activations",
        help="Activations made again in backward: none, selective (what the stack does), full, full:2 (every second "
        "block), or reentrant (full, to the last op of a block).",
        default="none",
        choices_on_page=RECOMPUTE,
        job="training.recompute",
    ),
]
Stack = Annotated[
    str,
    Option(
        label="Software",
        help="What trains: torch, torch-compile (as --compiled) or megatron.",
        default="torch",
        choices=STACKS,
        job="training.stack",
    ),
]
AdapterText = Annotated[
    str | None,
    Option(
        label="Adapter",
        help="lora:16 (rank), lora:16:q,v (rank and layers) or qlora:16 (4-bit base). Default: all parameters are "
        "trained.",
        shows_default=False,
        job="training.adapter",
    ),
]
MasterWeights = Annotated[
    bool | None,
    Option(
        label="fp32 master weights",
        help="With bf16: fp32 weights and states behind them. Default: with sharded strategies and megatron.",
        shows_default=False,
        job="training.master_weights",
    ),
]
ClipGradients = Annotated[
    bool,
    Option(
        label="Clip gradients",
        help="Gradients are clipped by their norm.",
        default=False,
        job="training.clip_gradients",
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
CompileMode = Annotated[
    str,
    Option(
        help="Mode of torch.compile, with --compiled: default, reduce-overhead (CUDA graphs) or max-autotune.",
        default="default",
        choices=COMPILE_MODES,
        is_on_page=False,
        job="training.compile_mode",
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
Largest = Annotated[
    str,
    Option(
        help="What to make as large as fits: batch, or seqlen of a published language model.",
        choices=("batch", "seqlen"),
        is_on_page=False,
    ),
]
MaybeLargest = Annotated[
    str | None,
    Option(
        help="Instead: the largest batch, or the longest sequence (seqlen) of a published language model, that fits; "
        "here --on may be several devices (8xA100-SXM4-80GB).",
        choices=("batch", "seqlen"),
        is_on_page=False,
    ),
]
SmallestGpu = Annotated[bool, Option(help="Instead: the smallest GPU of the table that holds it.", is_on_page=False)]
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


class TrainedAsOptions(TypedDict, total=False):
    """How a model is trained, beside precision and optimizer."""

    recompute: Recompute
    adapter: AdapterText
    master_weights: MasterWeights
    clip_gradients: ClipGradients
    stack: Stack


class SettingsOptions(TrainedAsOptions, total=False):
    """Precision, optimizer and what people choose beside them."""

    precision: Precision
    optimizer: Optimizer


class MemoryOptions(SettingsOptions, ModelOptions, total=False):
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
    compile_mode: CompileMode
    method: Method
    ppp: Ppp
    layer_weights: LayerWeights
    host: Host
    input_samples_per_s: InputSamplesPerS
    devices: Devices


class StepOptions(SettingsOptions, MethodOptions, total=False):
    """How one device runs the step."""

    accumulation_steps: AccumulationSteps
