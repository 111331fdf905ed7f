"""All commands. A new one is one line here; its module imports the rooms it needs inside the function, which
keeps `traincast --help` and every other command fast.
"""

from typing import Annotated

import typer

from traincast import __version__
from traincast.cli.compare import compare
from traincast.cli.devices import devices
from traincast.cli.forecast import forecast
from traincast.cli.layers import layers
from traincast.cli.memory import memory
from traincast.cli.models import models
from traincast.cli.scale import scale

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"traincast {__version__}")
        raise typer.Exit


@app.callback()
def _traincast(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """What will this training run take, before you rent the GPUs?"""


app.command()(forecast)
app.command()(scale)
app.command()(layers)
app.command()(memory)
app.command()(models)
app.command()(devices)
app.command()(compare)
