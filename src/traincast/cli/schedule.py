"""`traincast schedule`: a policy drives real elastic trainings on a Ray cluster."""

import contextlib
import sys
from typing import TYPE_CHECKING

import typer

from traincast.api import elastic
from traincast.cli.command import CommandLine, command

_GIVEN_UP = 1

if TYPE_CHECKING:
    from traincast.launch.elastic_events import Event


@command(elastic.schedule)
def schedule(line: CommandLine) -> None:
    """Train many jobs for real on a Ray cluster: a scheduling policy starts, grows, shrinks and finishes them.

    Run the same line again to continue where a killed scheduler stopped. The exit code is 1 if a job was given up.
    Example: traincast schedule jobs.csv --out runs --cpus 2
    """
    from traincast.views.schedule import document_of, line_of

    def tell(event: "Event") -> None:
        typer.echo(line_of(event), err=True)

    with contextlib.redirect_stdout(sys.stderr):  # where Ray prints that a worker died
        run = elastic.schedule(**line.options, on_event=tell)
    line.show(document_of(run), run.to_dict)
    if run.has_failed:
        raise typer.Exit(_GIVEN_UP)
