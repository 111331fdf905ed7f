"""`traincast train collect`: many training runs, and the curves through their logs."""

from typing import TYPE_CHECKING, Any

import typer

from traincast.api.collecting import collect as train_all
from traincast.api.collecting import plan_collection
from traincast.cli.command import CommandLine, command
from traincast.cli.train_flow import train_own

if TYPE_CHECKING:
    from traincast.api.collecting import Collection, CollectionPlan
    from traincast.records.campaign import Progress


_IN_VAIN = 1


@command(plan_collection, train_all, own=train_own)
def collect(line: CommandLine) -> None:
    """Train a grid of models, lengths and seeds from scratch: a folder of logs, and the curve through each.

    Resumable: the same line again does what is missing. The exit code is 1 if no run came to its end. Example:
    traincast train collect --models cifar_resnet20,cifar_resnet32 --epochs 2,4,8 --seeds 3
    """
    from traincast.api.run_memory import check_memory
    from traincast.cli.show import show
    from traincast.cli.train_flow import downloading
    from traincast.views.train import with_forecasts
    from traincast.views.train_collect import collection_document, plan_document

    with downloading() as tell_bytes:
        plan = plan_collection(**line.options_of(plan_collection), on_download=tell_bytes)
    is_here = line.options["on_ray"] is None
    if is_here and not line.own["forecast_only"]:
        plan.check_devices()
    before = plan_document(plan.grid, len(plan.stages), plan.forecast)
    if line.own["forecast_only"]:
        line.show(before, plan.to_dict)
        return
    if not line.as_json:
        show(before)
    if plan.forecast_here is not None and is_here:
        check_memory(plan.forecast_here)
    collection = _run(plan, line.options_of(train_all))
    document = page = collection_document(collection, plan.forecast_here)
    if plan.forecast is not None and plan.forecast_here is not None:
        document, page = with_forecasts(document, plan.forecast, plan.forecast_here)
    line.show(document, lambda: plan.answer(collection), page=page)
    if collection.is_in_vain:
        raise typer.Exit(_IN_VAIN)


def _run(plan: "CollectionPlan", how: dict[str, Any]) -> "Collection":
    from traincast.cli.train_flow import counting, stopped

    def on_progress(progress: "Progress") -> None:
        tell(progress.n_done, progress.n_tasks)

    with (
        stopped(f"Runs that are done are in '{plan.folder}'; the same command again does the rest."),
        counting("runs") as tell,
    ):
        return train_all(plan.grid, plan.folder, **how, on_progress=on_progress)
