"""`traincast calibrate`: what can this machine do?"""

from pathlib import Path

import typer

from traincast.api.calibrating import calibrate as question
from traincast.cli.command import CommandLine, command
from traincast.errors import InputError, MeasurementError
from traincast.options import measure as o


def _own(*, export: o.ProfileFile = None, ppp_runs: o.PppRuns = None) -> None:
    """Options of the command alone."""


@command(question, own=_own)
def calibrate(line: CommandLine) -> None:
    """What can this machine do? Two minutes of benchmarks, kept as the profile that --on this-machine uses.

    With --device cuda a GPU is calibrated, which --on this-gpu then means; with --ppp nothing runs. Examples: traincast
    calibrate; traincast forecast cifar_resnet20 --on this-machine --batch 32; traincast calibrate --ppp runs.csv
    """
    if line.own["ppp_runs"] is not None:
        _show_ppp(line)
        return
    from traincast.cli.progress import ProgressBar
    from traincast.hardware.device_table import device_toml
    from traincast.report.files import check_writable, write_file
    from traincast.views.calibration import document_of

    export = line.own["export"]
    if export is not None:
        check_writable(Path(export))
    not_kept = None
    with ProgressBar("Calibrating") as bar:
        try:
            found = question(**line.options, on_progress=bar)
        except MeasurementError as error:
            if error.partial is None:
                raise
            found, not_kept = error.partial, error  # it is shown all the same
    line.show(document_of(found), found.to_dict)
    if export is not None:
        typer.echo(f"Wrote {write_file(Path(export), device_toml(found.device))}", err=True)
    if not_kept is not None:
        raise not_kept


def _show_ppp(line: CommandLine) -> None:
    """Paleo's PPP from measured steps: arithmetic alone, so it needs no torch."""
    from traincast.api.ppp import fit_ppp_to
    from traincast.views.ppp import document_of

    for name in line.typed - {"ppp_runs"} - line.outputs:
        raise InputError(f"{line.flags[name]} means nothing to --ppp, which runs nothing: leave it out.")
    found = fit_ppp_to(line.own["ppp_runs"])
    line.show(document_of(found), found.to_dict)
