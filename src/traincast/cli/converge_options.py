"""The options that `converge` and `watch` share: what is asked of a log, and how it is read."""

from pathlib import Path
from typing import Annotated

import typer

from traincast.errors import InputError


def _target(text: str | float) -> float:
    """Without a unit: the metric is another option, and by itself a loss, which has no percent."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is no number: write 0.92 (an accuracy of 92 % is --target 0.92 --metric accuracy)."
        ) from None


Target = Annotated[
    float | None,
    typer.Option(metavar="<float>", parser=_target, help="The loss or accuracy to reach.", show_default=False),
]
MetricName = Annotated[
    str | None, typer.Option(help="loss, accuracy, f1 or a column's name. Default: a loss.", show_default=False)
]
Split = Annotated[str | None, typer.Option(help="train, validation or test.", show_default=False)]
TotalSteps = Annotated[
    float | None, typer.Option("--total-steps", help="Length of the run. Default: as logged.", show_default=False)
]
RunEpochs = Annotated[float | None, typer.Option(help="Length of the run in epochs.", show_default=False)]
StepsPerEpoch = Annotated[
    float | None, typer.Option("--steps-per-epoch", help="Default: as logged.", show_default=False)
]
Rates = Annotated[
    str | None,
    typer.Option(
        "--lr",
        metavar="SCHEDULE",
        help="constant, linear, cosine, linear:0.4 (last 40 %), or 0.1,0.01@32000. Default: as logged.",
        show_default=False,
    ),
]
RelationFrom = Annotated[
    list[Path] | None,
    typer.Option(
        "--relation-from",
        metavar="FILE",
        help="Logs with loss and accuracy: tell the accuracy from the loss.",
        show_default=False,
    ),
]
Like = Annotated[
    list[Path] | None,
    typer.Option(
        "--like",
        metavar="FILE",
        help="Logs of whole runs of the same kind: continue this one as they went.",
        show_default=False,
    ),
]
Family = Annotated[str, typer.Option(help="auto or optimus.")]
UsdPerHour = Annotated[
    float | None, typer.Option("--price", metavar="USD", help="Of all devices, an hour.", show_default=False)
]
Pattern = Annotated[
    str | None, typer.Option(help="Regular expression with named groups, for text logs.", show_default=False)
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="csv, jsonl, json, trainer_state, tensorboard, wandb, mlperf or text. Default: found.",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="MEANING=NAME",
        help="What a column is: step=it, val_loss=l2. May be repeated.",
        show_default=False,
    ),
]
OneRun = Annotated[str | None, typer.Option(help="Of a file with several runs: which.", show_default=False)]


def columns_of(given: list[str] | None) -> dict[str, str] | None:
    """What was said of columns, by meaning."""
    found = {}
    for text in given or []:
        meaning, equals, name = text.partition("=")
        if not (equals and meaning.strip() and name.strip()):
            raise InputError(f"--column '{text}' should be a meaning and a column's name, such as step=it.")
        found[meaning.strip()] = name.strip()
    return found or None
