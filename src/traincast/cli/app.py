"""All commands. A new one is one line here.

Only the command that is asked for is imported, and its options looked at; its module imports the rooms it needs inside
the function. That keeps every command fast, whatever the others need.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated

import typer

from traincast import __version__

# In the order of `traincast --help`. Each is a function of its own name in a module of its own name.
COMMANDS = (
    "forecast",
    "scale",
    "plan",
    "layers",
    "memory",
    "explain",
    "models",
    "devices",
    "measure",
    "calibrate",
    "train",
    "bench",
    "records",
    "converge",
    "watch",
    "transfer",
    "simulate",
    "schedule",
    "serve",
    "compare",
    "course",
)


_GROUPS = ("train",)


def make_app(commands: Iterable[str] = COMMANDS, *, of_group: Sequence[str] = ()) -> typer.Typer:
    """The application with these commands; `of_group` is what is asked of a group of commands."""
    app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(_traincast)
    for name in commands:
        module = import_module(f"traincast.cli.{name}")
        if name in _GROUPS:
            app.add_typer(module.make_group(of_group))
        else:
            app.command()(getattr(module, name))
    return app


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The application with the command that the line begins with; with all of them where it begins otherwise."""
    if not arguments or arguments[0] not in COMMANDS:
        return make_app()
    return make_app(arguments[:1], of_group=arguments[1:2])


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"traincast {__version__}")
        raise typer.Exit


def _traincast(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """What will this training run take, before you rent the GPUs?"""
