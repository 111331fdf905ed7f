"""`traincast train collect`: many training runs, and the curves through their logs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.cli.train_options import (
    BatchSize,
    Data,
    Download,
    ForecastOnly,
    ImageSide,
    LearningRate,
    On,
    Out,
    Price,
    TrainOptimizer,
    TrainPrecision,
    WeightDecay,
    out_folder,
)
from traincast.hardware.host import THIS_MACHINE
from traincast.recipes.usual import COLLECTION_EPOCHS, DATA, MODEL, SCRATCH

if TYPE_CHECKING:
    from traincast.api.collecting import Collection
    from traincast.measurement.campaign import Progress
    from traincast.recipes.collection import Grid


_IN_VAIN = 1


def collect(
    data: Data = DATA,
    models: Annotated[
        str, typer.Option("--models", metavar="NAME[,NAME...]", help="cifar_resnet20,cifar_resnet32, ...")
    ] = MODEL,
    epochs: Annotated[str, typer.Option("--epochs", metavar="N[,N...]", help="Lengths of the runs.")] = ",".join(
        map(str, COLLECTION_EPOCHS)
    ),
    seeds: Annotated[int, typer.Option("--seeds", help="Runs of each kind, with seeds 0, 1, ...")] = 1,
    devices: Annotated[str, typer.Option("--on-devices", metavar="NAME[,NAME...]", help="cpu, cuda, or both.")] = "cpu",
    batch_size: BatchSize = SCRATCH.batch_size,
    learning_rate: LearningRate = SCRATCH.learning_rate,
    optimizer: TrainOptimizer = SCRATCH.optimizer,
    weight_decay: WeightDecay = SCRATCH.weight_decay,
    precision: TrainPrecision = "fp32",
    out: Out = None,
    image_side: ImageSide = None,
    download: Download = False,
    on: On = THIS_MACHINE,
    price: Price = None,
    on_ray: Annotated[
        str | None,
        typer.Option(
            "--on-ray", metavar="ADDRESS", help="On this Ray cluster; 'local' starts one.", show_default=False
        ),
    ] = None,
    cpus_per_task: Annotated[
        int | None, typer.Option("--cpus-per-task", help="On Ray: of a node. Default: all.", show_default=False)
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Do again what could not be done.")] = False,
    forecast_only: ForecastOnly = False,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """Train a grid of models, lengths and seeds from scratch: a folder of logs, and the curve through each.

    Resumable: the same line again does what is missing. The exit code is 1 if no run came to its end. Example:
    traincast train collect --models cifar_resnet20,cifar_resnet32 --epochs 2,4,8 --seeds 3
    """
    from traincast.api.collecting import collection_stages, forecast_collection
    from traincast.api.run_memory import check_memory
    from traincast.api.runnables import require_torch
    from traincast.cli.show import show
    from traincast.cli.train_flow import Forecasts, downloading
    from traincast.options.typed import WHOLE_NUMBERS
    from traincast.views.train_collect import collection_document, plan_document

    require_torch("Training", extra="recipes")
    from traincast.recipes.collection import Grid
    from traincast.recipes.engine.settings import check_device, check_whole

    check_whole("n_seeds", seeds, at_least=1)
    grid = Grid(
        models=_names(models),
        devices=_names(devices),
        n_epochs=tuple(WHOLE_NUMBERS.of(epochs, "--epochs")),
        seeds=tuple(range(seeds)),
        data=data,
        image_side=image_side,
        batch_size=batch_size,
        learning_rate=learning_rate,
        optimizer=optimizer,
        weight_decay=weight_decay,
        precision=precision,
    )
    folder = out_folder(out, "collect", data)
    with downloading() as tell_bytes:
        stages = collection_stages(grid, download=download, on_download=tell_bytes)
    for device in () if forecast_only or on_ray is not None else grid.devices:
        check_device(device)
    asked = forecast_collection(stages, on, price_usd_per_hour=price)
    plan = plan_document(grid, len(stages), asked)
    if forecast_only:
        answer = {"forecast": None if asked is None else asked.to_dict()}
        show(plan, as_json=as_json, html=html, png=png, data=answer)
        return
    if not as_json:
        show(plan)
    is_elsewhere = on != THIS_MACHINE and set(grid.devices) == {"cpu"}  # compared is with here
    here = forecast_collection(stages) if is_elsewhere else asked
    if here is not None and on_ray is None:
        check_memory(here)
    collection = _run(
        grid, folder, on_ray=on_ray, cpus_per_task=cpus_per_task, retry_failed=retry_failed, download=download
    )
    document = page = collection_document(collection, here)
    answer = {"forecast": None, **collection.to_dict()}
    if asked is not None and here is not None:
        forecasts = Forecasts(asked, here)
        document, page = forecasts.beside(document), forecasts.on_page(document)
        answer |= forecasts.to_dict()
    show(document, as_json=as_json, html=html, png=png, data=answer, page=page)
    if collection.is_in_vain:
        raise typer.Exit(_IN_VAIN)


def _run(grid: "Grid", folder: Path, **how: Any) -> "Collection":
    from traincast.api.collecting import collect as run_collection
    from traincast.cli.train_flow import counting, stopped

    def on_progress(progress: "Progress") -> None:
        tell(progress.n_done, progress.n_tasks)

    with (
        stopped(f"Runs that are done are in '{folder}'; the same command again does the rest."),
        counting("runs") as tell,
    ):
        return run_collection(grid, folder, **how, on_progress=on_progress)


def _names(text: str) -> tuple[str, ...]:
    """Each once, in the order given."""
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
