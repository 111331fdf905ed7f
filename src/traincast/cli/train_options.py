"""Options that the recipes of `traincast train` share."""

import re
from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Option("--data", help="digits (offline), cifar10, or a path: CIFAR-10 files, or folders of images by class."),
]
ImageSide = Annotated[
    int | None, typer.Option("--image-side", help="Side of the images in pixels. Default: that of the data.")
]
Download = Annotated[bool, typer.Option("--download", help="Fetch the data set if it is not here yet.")]
ModelName = Annotated[str, typer.Option("--model", help="cifar_resnet18, 20, 32, 44, 56, 110 or resnet50.")]
Epochs = Annotated[int, typer.Option("--epochs", help="Passes over the training images.")]
BatchSize = Annotated[int, typer.Option("--batch-size", help="Images in one step.")]
LearningRate = Annotated[float, typer.Option("--learning-rate", help="Of the first steps.")]
TrainOptimizer = Annotated[str, typer.Option("--optimizer", help="sgd, momentum, nesterov, adam, adamw, ...")]
WeightDecay = Annotated[float, typer.Option("--weight-decay", help="How much weights shrink, as a share of the rate.")]
Augment = Annotated[bool, typer.Option(help="Random crops, and mirror images but of digits.")]
Seed = Annotated[int, typer.Option("--seed", help="Decides first weights, order and augmentation.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FOLDER", help="Log, checkpoint and result. Default: runs/RECIPE-MODEL-DATA."),
]
On = Annotated[
    str, typer.Option("--on", metavar="PLACE", help="What the forecast is for: this-machine, T4, 4xT4, FILE.toml.")
]
TrainDevice = Annotated[str, typer.Option("--device", help="What it is trained on here: cpu, cuda, cuda:1.")]
TrainPrecision = Annotated[str, typer.Option("--precision", help="fp32, tf32, amp-fp16, amp-bf16 or bf16.")]
CheckpointEvery = Annotated[
    float, typer.Option("--checkpoint-every", metavar="SECONDS", help="At most so long between two checkpoints.")
]
Price = Annotated[float | None, typer.Option("--price", metavar="USD", help="Price of a device and hour.")]
ForecastOnly = Annotated[bool, typer.Option("--forecast-only", help="Say what it would take, and train nothing.")]


def out_folder(out: Path | None, *parts: str) -> Path:
    """The folder that was asked for, or runs/ and what tells the run from others; a path counts by its last name."""
    names = [re.sub(r"[^A-Za-z0-9_.]+", "-", Path(part).name or part) for part in parts]
    return out if out is not None else Path("runs") / "-".join(names)
