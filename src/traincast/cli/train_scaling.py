"""`traincast train scaling`: epochs on 1, 2, 4 ... devices at several batch sizes."""

from typing import TYPE_CHECKING, Any

from traincast.api.scaling_experiment import plan_scaling, run_scaling
from traincast.cli.command import CommandLine, command
from traincast.cli.train_flow import train_own
from traincast.hardware.host import THIS_MACHINE

if TYPE_CHECKING:
    from traincast.api.scaling_experiment import ScalingExperiment, ScalingResult

_HERE = {"on": THIS_MACHINE, "price_usd_per_hour": None}


@command(plan_scaling, run_scaling, own=train_own)
def scaling(line: CommandLine) -> None:
    """What do more devices bring? Real epochs, each batch size as that of a device (weak) and of all (strong).

    Example: traincast train scaling --n-devices 1,2 --batch-sizes 32,128
    """
    from traincast.cli.show import show
    from traincast.cli.train_flow import downloading
    from traincast.views.train_scaling import result_document
    from traincast.views.train_scaling_forecast import forecast_document, with_forecast

    options = line.options_of(plan_scaling)
    with downloading() as tell:
        asked = plan_scaling(**options, on_download=tell)
    if line.own["forecast_only"]:
        line.show(forecast_document(asked), asked.to_dict)
        return
    if not line.as_json:
        show(forecast_document(asked))
    # Where another device was asked about, what runs here is compared with here.
    here = asked if asked.is_here else plan_scaling(**(options | _HERE))
    result = _run(here, line.options_of(run_scaling))
    document = result_document(result, here.folder)
    page = with_forecast(document, here)
    if here is asked:
        line.show(document, result.to_dict, page=page)
    else:
        line.show(with_forecast(document, asked), lambda: result.to_dict(asked), page=with_forecast(page, asked))


def _run(experiment: "ScalingExperiment", how: dict[str, Any]) -> "ScalingResult":
    from traincast.cli.train_flow import counting, stopped

    go_on = f"Runs that are done are in '{experiment.folder}'; the same command again does the rest."
    with stopped(go_on), counting("scaling") as tell:
        return run_scaling(experiment, **how, on_progress=tell)
