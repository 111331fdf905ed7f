"""Options that several commands share, so that they read alike everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from traincast.cli.output_files import image_file, page_file

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in base units instead of text.")]
HtmlFile = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", callback=page_file, help="Also write an HTML page with charts."),
]
PngFile = Annotated[
    Path | None,
    typer.Option("--png", metavar="FILE", callback=image_file, help="Also write the chart as an image."),
]
DevicesFile = Annotated[
    Path | None, typer.Option("--devices", metavar="FILE", help="CSV or TOML file with devices of your own.")
]

Model = Annotated[
    str,
    typer.Argument(help="A zoo name, a .trace, .onnx, .keras or config.json file, or file.py:factory."),
]
Batch = Annotated[int, typer.Option("--batch", help="Samples in one step.")]
OnDevice = Annotated[
    str | None,
    typer.Option("--on", metavar="DEVICE", help="A device, or a machine with one: T4, rtx3090, g4dn.xlarge."),
]
Precision = Annotated[
    str | None, typer.Option(help="fp32, tf32, amp-fp16, amp-bf16 or bf16. Default: as captured.", show_default=False)
]
Optimizer = Annotated[
    str | None,
    typer.Option(help="none, sgd, momentum, adam, adamw, ... Default: as captured.", show_default=False),
]
NSamples = Annotated[int | None, typer.Option("--samples", help="Samples of one epoch.")]
NEpochs = Annotated[int, typer.Option("--epochs", help="Epochs of the run.")]
Layout = Annotated[str, typer.Option(help="How images lie in memory: nchw or nhwc.")]
Compiled = Annotated[bool, typer.Option("--compiled", help="The model runs under torch.compile.")]
Strategy = Annotated[
    str, typer.Option(help="On many devices: ddp, dp, mirrored, ps:P, ps-async:P, fsdp, zero1 to zero3.")
]
Accumulate = Annotated[int, typer.Option(help="Passes that share the batch of one update.")]
Method = Annotated[str, typer.Option(help="traincast, roofline, paleo or layerwise.")]
Ppp = Annotated[float | None, typer.Option(help="Fraction of the peaks that paleo reaches.", show_default=False)]
Host = Annotated[
    str | None, typer.Option(help="What dispatches the ops: torch-eager, tf1-session, tf2-keras, this-machine.")
]
InputSamplesPerS = Annotated[float | None, typer.Option("--input-samples-per-s", help="What the data loader delivers.")]
NClasses = Annotated[int | None, typer.Option("--n-classes", help="Classes of the last layer.")]
ImageSize = Annotated[int | None, typer.Option("--image-size", help="Side of a square image, in pixels.")]
SeqLen = Annotated[int | None, typer.Option("--seqlen", help="Tokens in a sequence.")]
Head = Annotated[str | None, typer.Option("--head", help="What the model is trained for: qa, mlm, causal, ...")]
Region = Annotated[str | None, typer.Option(help="A country or a cloud's region, for CO2: us-east-1, Germany.")]
GridFactor = Annotated[
    float | None, typer.Option("--grid-g-per-kwh", help="CO2 of a kilowatt-hour, instead of the region's.")
]
Pue = Annotated[float, typer.Option(help="What the site draws for each joule of its devices.")]
CurveFile = Annotated[
    Path | None, typer.Option("--curve", metavar="LOG", help="An earlier run of the same model, for --target.")
]


def usd(text: str | float) -> float:
    """An amount as people write it: 200, $200 or 1,500.50."""
    try:
        return float(str(text).strip().removeprefix("$").replace(",", ""))
    except ValueError:
        raise typer.BadParameter(f"'{text}' is no amount in US dollars: write 200 or 12.50.") from None


def model_options(**options: int | str | None) -> dict[str, int | str]:
    """Those that the user gave."""
    return {name: value for name, value in options.items() if value is not None}
