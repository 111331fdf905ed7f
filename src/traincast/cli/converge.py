"""`traincast converge`: where will this run end, and when is it good enough?"""

from pathlib import Path
from typing import Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile


def converge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Logs of training runs: CSV, JSONL, ...")],
    target: Annotated[float | None, typer.Option(help="The loss or accuracy to reach.", show_default=False)] = None,
    metric: Annotated[
        str | None, typer.Option(help="loss, accuracy or a column's name. Default: a loss.", show_default=False)
    ] = None,
    split: Annotated[str | None, typer.Option(help="train, validation or test.", show_default=False)] = None,
    total_steps: Annotated[
        float | None, typer.Option("--total-steps", help="Length of the run. Default: as logged.", show_default=False)
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="Length of the run in epochs.", show_default=False)] = None,
    lr: Annotated[
        str | None,
        typer.Option(
            "--lr",
            metavar="SCHEDULE",
            help="constant, linear, cosine, linear:0.4 (last 40 %), or 0.1,0.01@32000. Default: as logged.",
            show_default=False,
        ),
    ] = None,
    family: Annotated[str, typer.Option(help="auto or optimus.")] = "auto",
    usd_per_hour: Annotated[
        float | None, typer.Option("--price", metavar="USD", help="Of all devices, an hour.", show_default=False)
    ] = None,
    step_s: Annotated[
        float | None, typer.Option("--step-s", help="Seconds of a step, instead of the log's.", show_default=False)
    ] = None,
    pattern: Annotated[
        str | None, typer.Option(help="Regular expression with named groups, for text logs.", show_default=False)
    ] = None,
    run: Annotated[str | None, typer.Option(help="Of a file with several runs: which.", show_default=False)] = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """Where will a run end, when does it reach a target, and how sure is that?

    Examples: traincast converge metrics.csv --target 0.92 --metric accuracy --epochs 90; traincast converge
    trainer_state.json --target 3.0 --price 12.5
    """
    from traincast.api.converging import converge as ask
    from traincast.cli.converge_document import document_of
    from traincast.cli.show import show

    found = [
        ask(
            file,
            metric=metric,
            split=split,
            target=target,
            family=family,
            total_steps=total_steps,
            n_epochs=epochs,
            learning_rate=lr,
            step=step_s,
            usd_per_hour=usd_per_hour,
            reading={"pattern": pattern, "run": run},
        )
        for file in files
    ]
    data = {"runs": [one.to_dict() for one in found]} if as_json else None
    show(document_of(found), as_json=as_json, html=html, png=png, data=data)
