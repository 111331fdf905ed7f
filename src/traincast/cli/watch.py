"""`traincast watch`: when will a running job finish, and will it reach its target?"""

from typing import TYPE_CHECKING

import typer

from traincast.api.watching import watch as question
from traincast.cli.command import CommandLine, command
from traincast.options import catalog as o

if TYPE_CHECKING:
    from traincast.curves.status.watch_loop import Watch

_INTERRUPTED = 130


def _own(*, once: o.Once = False) -> None:
    """Options of the command alone."""


@command(question, own=_own)
def watch(line: CommandLine) -> None:
    """When will a running job finish, and will it reach its target?

    Follows a log that grows until the run is over: a screen on a terminal, a line for each update elsewhere. --html and
    --png show what was seen last, also after Ctrl-C. Examples:
    traincast watch metrics.csv --total-steps 10000 --target 3.0; traincast watch metrics.csv --epochs 90 --target 0.76
    --metric accuracy --stop-if "p(target) < 0.05"

    Exit codes: 0 the run is over; 3 --stop-if holds, and no other code means that the training should be stopped; 2 a
    mistake in the command line (with --strict or --once also a log that cannot be watched); 130 Ctrl-C; 1 nobody reads
    the output any more.
    """
    from traincast.cli.watch_screen import display_for

    once = line.own["once"]
    display = display_for(as_json=line.as_json, once=once)
    watched = question(**line.options, display=display)
    with display:
        try:
            code = watched.once() if once else watched.follow()
        except KeyboardInterrupt:
            code = _INTERRUPTED
    if line.html is not None or line.png is not None:
        code = _written(watched, line, code)
    raise typer.Exit(code)


def _written(watched: "Watch", line: CommandLine, code: int) -> int:
    """The page of `converge`, of the last look. Without one the exit code says so, unless it says more already."""
    from traincast.cli.show import write_files
    from traincast.errors import InputError, TraincastError
    from traincast.views.converge import document_of

    try:
        if watched.status is None or watched.status.curve is None:
            raise InputError(f"'{watched.path}' has too little yet for a forecast, so there is no page of it.")
        write_files(document_of([watched.status]), html=line.html, png=line.png)
    except TraincastError as error:
        if not code:
            raise
        typer.echo(str(error), err=True)
    return code
