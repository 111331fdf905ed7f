"""`traincast calibrate`: what can this machine do?"""

from pathlib import Path
from typing import Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.errors import MeasurementError


def calibrate(
    device: Annotated[
        str, typer.Option(help="What to calibrate: cpu, or cuda for a GPU, which --on this-gpu then means.")
    ] = "cpu",
    processes: Annotated[
        int, typer.Option(help="Processes side by side; from then on --on 2xthis-machine has a meaning.")
    ] = 1,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE.toml", help="Also write the profile as a device file for others."),
    ] = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What can this machine do? Two minutes of benchmarks, kept as what --on this-machine means.

    Example: traincast calibrate; traincast forecast cifar_resnet20 --on this-machine --batch 32
    """
    from traincast.api.calibrating import calibrate as answer
    from traincast.cli.progress import ProgressBar
    from traincast.cli.show import show
    from traincast.hardware.device_table import device_toml
    from traincast.report.files import check_writable, write_file
    from traincast.views.calibration import document_of

    if export is not None:
        check_writable(export)
    not_kept = None
    with ProgressBar("Calibrating") as bar:
        try:
            found = answer(device, n_processes=processes, on_progress=bar)
        except MeasurementError as error:
            if error.partial is None:
                raise
            found, not_kept = error.partial, error  # it is shown all the same
    show(document_of(found), as_json=as_json, html=html, png=png, data=found.to_dict() if as_json else None)
    if export is not None:
        typer.echo(f"Wrote {write_file(export, device_toml(found.device))}", err=True)
    if not_kept is not None:
        raise not_kept
