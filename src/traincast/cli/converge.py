"""`traincast converge`: where will this run end, and when is it good enough?"""

import typer

from traincast.api.converging import converge as question
from traincast.api.logs import read_log
from traincast.cli.command import CommandLine, command
from traincast.errors import InputError
from traincast.options import catalog as o
from traincast.options.option import declared


def _own(files: o.LogFiles, *, fits: o.Fits = False, export_to: o.FitsFile = None) -> None:
    """Options of the command alone: it may be asked about several logs."""


@command(question, read_log, own=_own)
def converge(line: CommandLine) -> None:
    """Where will a run end, when does it reach a target, and how sure is that?

    Examples: traincast converge metrics.csv --target 0.92 --metric accuracy --epochs 90; traincast converge
    trainer_state.json --target 3.0 --price 12.5; traincast converge resnet*_V100_train.csv --fits --export fits.csv
    """
    if line.own["fits"]:
        _show_fits(line)
        return
    if line.own["export_to"] is not None:
        raise InputError("--export writes the table of fits: ask for it with --fits.")
    from traincast.views.converge import document_of

    options, reading = line.options_of(question), line.options_of(read_log)
    found = [question(file, **options, reading=reading) for file in line.own["files"]]
    line.show(document_of(found), lambda: {"runs": [one.to_dict() for one in found]})


def _show_fits(line: CommandLine) -> None:
    """Parameters of many logs in one table, all curves in one chart."""
    from traincast.api.loss_fits import loss_fits, write_fits
    from traincast.views.loss_fits import document_of

    used = {"fits", "export_to", "files", "target", "metric", "split", *(one.name for one in declared(read_log))}
    for name in line.typed - used - line.outputs:
        raise InputError(f"{line.flags[name]} means nothing to --fits: leave it out.")
    options = {name: line.options[name] for name in ("target", "metric", "split")}
    reading = {name: value for name, value in line.options_of(read_log).items() if name != "metric"}
    found = loss_fits(line.own["files"], **options, reading=reading)
    if line.own["export_to"] is not None:
        typer.echo(f"Wrote {write_fits(found, line.own['export_to'])}", err=True)
    line.show(document_of(found), found.to_dict)
