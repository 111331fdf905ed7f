"""`traincast transfer`: what will the learning curve of another size be, before it runs?"""

from pathlib import Path
from typing import Annotated

import typer

from traincast.cli import converge_options as of_log
from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.errors import InputError


def transfer(
    runs: Annotated[
        Path,
        typer.Argument(
            metavar="RUNS",
            help="CSV or JSON table of runs: model, depth, hardware, and b0, b1, b2 and epochs, or a log.",
        ),
    ],
    predict: Annotated[
        str, typer.Option("--predict", metavar="COLUMN=N", help="The size that is asked for: depth=50.")
    ],
    family: Annotated[
        str | None, typer.Option(help="Of the models in the table: which kind is asked for.", show_default=False)
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Of a table with a column split: which rows.", show_default=False)
    ] = None,
    split: Annotated[str, typer.Option(help="Which loss of the logs: train, validation or test.")] = "train",
    target: of_log.Target = None,
    metric: Annotated[str, typer.Option(help="Of the logs: what the target is of.")] = "accuracy",
    total_steps: of_log.TotalSteps = None,
    epochs: of_log.RunEpochs = None,
    steps_per_epoch: of_log.StepsPerEpoch = None,
    workers: Annotated[
        str | None,
        typer.Option("--workers", metavar="N[,N...]", help="Time to the target by workers: 1-32.", show_default=False),
    ] = None,
    servers: Annotated[
        str | None,
        typer.Option("--servers", metavar="N[,N...]", help="Parameter servers. Default: 2,4.", show_default=False),
    ] = None,
    optimus: Annotated[
        str | None,
        typer.Option(
            "--optimus",
            metavar="SPEEDS",
            help="paper-sync, paper-async (default) or CSV with servers, workers, steps_per_s.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Global batch of synchronous workers.", show_default=False)] = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What will the learning curve of another size be, and how many epochs does it need?

    Learns from runs of other sizes; a model of the size that is in the table already is compared with. Examples:
    traincast transfer runs.csv --predict depth=50 --epochs 350 --steps-per-epoch 391; the same with --workers 1-32
    --servers 2,4 --optimus paper-sync --batch 128
    """
    from traincast.api.transferring import transfer as ask
    from traincast.cli.show import show
    from traincast.cli.transfer_document import document_of, times_of

    if workers is None and not (servers is None and optimus is None and batch is None):
        raise InputError("--servers, --optimus and --batch are about the time by workers: add --workers.")
    by, size = _size(predict)
    found = ask(
        runs,
        size,
        by=by,
        family=family,
        rows=rows,
        split=split,
        target=target,
        metric=metric,
        total_steps=total_steps,
        n_epochs=epochs,
        steps_per_epoch=steps_per_epoch,
    )
    times = () if workers is None else times_of(found, workers, servers or "2,4", optimus or "paper-async", batch)
    data = {**found.to_dict(), "workers": [curve.to_dict() for curve in times]} if as_json else None
    has_charts = html is not None or png is not None
    show(document_of(found, times, has_charts=has_charts), as_json=as_json, html=html, png=png, data=data)


def _size(predict: str) -> tuple[str, int]:
    name, _, text = predict.partition("=")
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        value = 0.0
    if not name.strip() or not (value >= 1 and value.is_integer()):
        raise InputError(f"--predict '{predict}' should name a column and a whole number from 1, such as depth=50.")
    return name.strip(), int(value)
