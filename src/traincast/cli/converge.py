"""`traincast converge`: where will this run end, and when is it good enough?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traincast.cli import converge_options as of_log
from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.convergence.at_batch import AtBatch
    from traincast.convergence.watching import Status


def converge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Logs of training runs: CSV, JSONL, ...")],
    target: of_log.Target = None,
    metric: of_log.MetricName = None,
    relation_from: of_log.RelationFrom = None,
    like: of_log.Like = None,
    split: of_log.Split = None,
    total_steps: of_log.TotalSteps = None,
    epochs: of_log.RunEpochs = None,
    steps_per_epoch: of_log.StepsPerEpoch = None,
    lr: of_log.Rates = None,
    family: of_log.Family = "auto",
    usd_per_hour: of_log.UsdPerHour = None,
    step_s: Annotated[
        float | None, typer.Option("--step-s", help="Seconds of a step, instead of the log's.", show_default=False)
    ] = None,
    batch_to: Annotated[
        float | None,
        typer.Option(
            "--batch-to", metavar="N", help="Also at that batch size: needs --noise-scale.", show_default=False
        ),
    ] = None,
    noise_scale: Annotated[
        float | None,
        typer.Option(help="Of the gradient, in samples: how much a larger batch is worth.", show_default=False),
    ] = None,
    batch: Annotated[
        float | None, typer.Option(help="Batch of the run. Default: as logged.", show_default=False)
    ] = None,
    pattern: of_log.Pattern = None,
    format: of_log.Format = None,
    column: of_log.Columns = None,
    run: of_log.OneRun = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """Where will a run end, when does it reach a target, and how sure is that?

    Examples: traincast converge metrics.csv --target 0.92 --metric accuracy --epochs 90; traincast converge
    trainer_state.json --target 3.0 --price 12.5
    """
    from traincast.api.converging import converge as ask
    from traincast.cli.show import show
    from traincast.views.converge import document_of

    if (batch_to is None) != (noise_scale is None) or (batch is not None and batch_to is None):
        raise InputError("--batch-to and --noise-scale go together, and --batch goes with them.")
    reading = {"pattern": pattern, "format": format, "columns": of_log.columns_of(column), "run": run}
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
            like=like or (),
            relation_from=relation_from or (),
            reading={**reading, "steps_per_epoch": steps_per_epoch},
        )
        for file in files
    ]
    others = [_at(one, batch_to, noise_scale, batch) for one in found]
    data = {
        "runs": [
            {**one.to_dict(), "at_batch": other and other.to_dict()} for one, other in zip(found, others, strict=True)
        ]
    }
    show(document_of(found, others), as_json=as_json, html=html, png=png, data=data)


def _at(
    status: "Status", batch_to: float | None, noise_scale: float | None, own_batch_size: float | None
) -> "AtBatch | None":
    from traincast.convergence.at_batch import at_batch

    if batch_to is None or noise_scale is None:
        return None
    return at_batch(status, batch_to, noise_scale=noise_scale, own_batch_size=own_batch_size)
