"""`traincast schedule`: a policy drives real elastic trainings on a Ray cluster."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile

_GIVEN_UP = 1

if TYPE_CHECKING:
    from traincast.launch.elastic_events import Event


def schedule(
    jobs: Annotated[
        Path,
        typer.Argument(help="CSV file: name, submit_s, model, batch_size, n_epochs, n_devices, max_devices."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="For checkpoints, logs and the store.")],
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="fifo, srtf, drf, tiresias, optimus, gavel, pollux, traincast.")
    ] = "optimus",
    interval: Annotated[float, typer.Option(help="Seconds between decisions.")] = 10.0,
    restart: Annotated[float, typer.Option(help="Seconds that a start is expected to take.")] = 5.0,
    on_ray: Annotated[
        str, typer.Option("--on-ray", metavar="ADDRESS", help="On this Ray cluster; 'local' starts one.")
    ] = "local",
    cpus: Annotated[
        int | None, typer.Option(help="Of a local cluster. Default: all of the machine.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """Train many jobs for real on a Ray cluster: a scheduling policy starts, grows, shrinks and finishes them.

    The same line again goes on where a killed scheduler was. The exit code is 1 if a job was given up.
    Example: traincast schedule jobs.csv --out runs --cpus 2
    """
    from traincast.api.elastic import schedule as run_schedule
    from traincast.api.runnables import require_torch
    from traincast.cli.show import show
    from traincast.views.schedule import document_of, line_of

    require_torch("Training", extra="ray")

    def tell(event: "Event") -> None:
        typer.echo(line_of(event), err=True)

    with contextlib.redirect_stdout(sys.stderr):  # where Ray prints that a worker died
        found = run_schedule(
            jobs, out, policy=policy, interval_s=interval, restart_s=restart, on_ray=on_ray, n_cpus=cpus, on_event=tell
        )
    data = {"policy": policy, "jobs": [one.to_dict() for one in found]} if as_json else None
    document = document_of(found, policy=policy, interval_s=interval, restart_s=restart)
    show(document, as_json=as_json, html=html, png=png, data=data)
    if any(one.error for one in found):
        raise typer.Exit(_GIVEN_UP)
