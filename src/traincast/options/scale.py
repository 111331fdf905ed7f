"""Scaling: numbers of GPUs, what is kept while they grow, and its questions beside the forecast."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from traincast.options.option import Option
from traincast.options.typed import COUNT, WHOLE_NUMBERS

if TYPE_CHECKING:
    from traincast.trace.trace import Trace

Gpus = Annotated[
    Sequence[int] | None,
    Option(
        help="Numbers of GPUs. Default: 1,2,4,... up to 8 or all.",
        typed=WHOLE_NUMBERS,
        is_on_page=False,  # which asks for n_devices
    ),
]
BatchOfAll = Annotated[
    int | None,
    Option(
        help="Strong scaling: samples of one update, over all GPUs.",
        flag="--batch",
        typed=COUNT,
        at_least=1,
        at_most_on_page=1_048_576,
    ),
]
BatchPerGpu = Annotated[
    int | None,
    Option(
        help="Weak scaling: samples of one update on each GPU.",
        flag="--batch-per-gpu",
        typed=COUNT,
        at_least=1,
        is_on_page=False,
    ),
]
Algorithm = Annotated[
    str,
    Option(
        help="All-reduce: nccl, best, ring, double-tree, hierarchical; in one node also tree, butterfly, "
        "recursive-doubling, master.",
        is_on_page=False,
    ),
]
InsideLink = Annotated[
    str | None,
    Option(help="Replaces the link inside a node: PCIe3 x8, 10GB/s.", flag="--link", metavar="LINK", is_on_page=False),
]
MaybeModel = Annotated[
    "str | Path | Trace | None",
    Option(help="A zoo name, a .trace, .onnx, .keras or config.json file, or file.py:factory.", is_argument=True),
]
CompareFile = Annotated[
    str | Path | None,
    Option(
        help="CSV of measured runs: gpus and epoch_s or total_s.", flag="--compare", metavar="FILE", is_on_page=False
    ),
]
MeasuredEpochsFile = Annotated[
    str | Path,
    Option(
        help="Instead of a forecast: CSV with batch, gpus, epoch_s.",
        flag="--measured",
        metavar="FILE",
        is_on_page=False,
    ),
]
NParameters = Annotated[
    int | None,
    Option(
        help="With --measured: parameters of the model, instead of MODEL.", typed=COUNT, at_least=1, is_on_page=False
    ),
]
OptimusSpeeds = Annotated[
    str,
    Option(
        help="Instead: Optimus' model. paper-sync, paper-async or CSV with servers, workers, steps_per_s.",
        flag="--optimus",
        metavar="SPEEDS",
        is_on_page=False,
    ),
]
NSteps = Annotated[
    int, Option(help="With --optimus: steps to be done.", typed=COUNT, at_least=1, at_most=10**12, is_on_page=False)
]
Workers = Annotated[
    Sequence[int], Option(help="With --optimus: numbers of workers.", typed=WHOLE_NUMBERS, is_on_page=False)
]
Servers = Annotated[
    Sequence[int], Option(help="With --optimus: numbers of parameter servers.", typed=WHOLE_NUMBERS, is_on_page=False)
]
