"""What is trained."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from traincast.options.option import Option

if TYPE_CHECKING:
    from traincast.trace.trace import Trace

Model = Annotated[
    "str | Path | Trace",
    Option(
        help="A zoo name, a .trace, .onnx, .keras or config.json file, or file.py:factory.",
        is_argument=True,
        job="model.name",
    ),
]
NClasses = Annotated[
    int | None,
    Option(help="Classes of the last layer.", flag="--n-classes", at_least=1, job="model.n_classes", is_on_page=False),
]
ImageSize = Annotated[
    int | None, Option(help="Side of a square image, in pixels.", at_least=1, job="model.image_size", is_on_page=False)
]
SeqLen = Annotated[
    int | None,
    Option(
        label="Sequence length",
        help="Tokens in a sequence. Default: the model's usual length.",
        at_least=1,
        at_most_on_page=1_048_576,
        job="model.seqlen",
    ),
]
Head = Annotated[
    str | None, Option(help="What the model is trained for: qa, mlm, causal, ...", job="model.head", is_on_page=False)
]


class ModelOptions(TypedDict, total=False):
    """How a model of the zoo or of a config.json is built; None: as it usually is."""

    n_classes: NClasses
    image_size: ImageSize
    seqlen: SeqLen
    head: Head


OneDevice = Annotated[
    str | None, Option(help="A device, or a machine with one: T4, rtx3090, g4dn.xlarge.", flag="--on", metavar="DEVICE")
]
By = Annotated[
    str,
    Option(
        help="One row per module, or per kind of module: module or kind.", choices=("module", "kind"), is_on_page=False
    ),
]
Tree = Annotated[bool, Option(help="Also the modules around the layers, with totals.", is_on_page=False)]
Sort = Annotated[
    str,
    Option(
        help="The model's order, or the largest first: model, flop, bytes or parameters.",
        choices=("model", "flop", "bytes", "parameters"),
        is_on_page=False,
    ),
]
Top = Annotated[int | None, Option(help="Show only this many rows.", at_least=1, is_on_page=False)]
