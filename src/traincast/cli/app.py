"""All commands. A new one is one line here.

Only the command that is asked for is imported, and its options looked at; its module imports the rooms it needs inside
the function. That keeps every command fast, whatever the others need.
"""

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from traincast import __version__
from traincast.errors import shortened

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
_COMPLETING = "_TRAINCAST_COMPLETE"  # set by the script that --install-completion leaves with the shell


# Of click, which newer typers bring along under another name.
_USAGE_ERROR: type[Any] = typer.BadParameter.__bases__[0]


def run_line(arguments: Sequence[str]) -> int:
    """Runs a command line and gives its exit code. A mistake in the line itself is one sentence, like any other."""
    try:
        code = app_for(arguments)(args=list(arguments), prog_name="traincast", standalone_mode=False)
    except typer.Abort:
        typer.echo("Aborted!", err=True)
        return 1
    except _USAGE_ERROR as error:
        return _tell_usage_error(error)
    return code if isinstance(code, int) else 0


def _tell_usage_error(error: Any) -> int:
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the whole help
        typer.echo(message, err=True)
        return int(error.exit_code)
    where = "traincast" if error.ctx is None else error.ctx.command_path
    ends = message if message.endswith((".", "?")) else f"{message}."
    typer.echo(f"Error: {shortened(' '.join(ends.split()))} Try '{where} --help'.", err=True)
    return int(error.exit_code)


def make_app(
    commands: Iterable[str] = COMMANDS, *, of_group: Sequence[str] = (), completes: bool = True
) -> typer.Typer:
    """The application with these commands; `of_group` is what is asked of a group of commands."""
    app = typer.Typer(
        add_completion=completes, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
    )
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
    is_completing = _COMPLETING in os.environ
    words = _words_so_far() if is_completing else arguments
    if not words or words[0] not in COMMANDS:
        return make_app()
    return make_app(words[:1], of_group=words[1:2], completes=is_completing)


def _words_so_far() -> list[str]:
    """Of a line that a shell wants to complete, after the program's name and before the word that is not complete."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    words = line.split()[1:]
    is_open = os.environ.get("COMP_CWORD", "") == str(len(words)) if "COMP_WORDS" in os.environ else line[-1:].strip()
    return words[:-1] if is_open else words


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
