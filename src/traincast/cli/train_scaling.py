"""`traincast train scaling`: epochs on 1, 2, 4 ... devices at several batch sizes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.cli.train_options import (
    Data,
    Download,
    ForecastOnly,
    ImageSide,
    LearningRate,
    ModelName,
    Out,
    Price,
    Seed,
    TrainOptimizer,
    TrainPrecision,
    out_folder,
)
from traincast.hardware.host import THIS_MACHINE
from traincast.recipes.usual import DATA, MODEL, SCALING_DEVICES, SCALING_EPOCHS, SCRATCH

if TYPE_CHECKING:
    from traincast.api.scaling_experiment import ScalingExperiment, ScalingResult


def scaling(
    data: Data = DATA,
    model: ModelName = MODEL,
    n_devices: Annotated[
        str, typer.Option("--n-devices", metavar="1,N...", help="Processes on a CPU, GPUs with --device cuda.")
    ] = ",".join(map(str, SCALING_DEVICES)),
    batch_sizes: Annotated[
        str,
        typer.Option(
            "--batch-sizes", metavar="N[,N...]", help="Of a device, and of all. 32,... : fourfold until memory ends."
        ),
    ] = "32,...",
    epochs: Annotated[int, typer.Option("--epochs", help="Of each run; the first is not counted.")] = SCALING_EPOCHS,
    n_samples: Annotated[int | None, typer.Option("--samples", help="Images of an epoch. Default: all.")] = None,
    learning_rate: LearningRate = SCRATCH.learning_rate,
    optimizer: TrainOptimizer = SCRATCH.optimizer,
    precision: TrainPrecision = "fp32",
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    link: Annotated[
        str | None,
        typer.Option("--link", metavar="LINK", help="What joins the devices: PCIe3 x16, 12GB/s. Default: measured."),
    ] = None,
    seed: Seed = 0,
    out: Out = None,
    image_side: ImageSide = None,
    download: Download = False,
    on: Annotated[
        str, typer.Option("--on", metavar="DEVICE", help="What the forecast is for: this-machine, T4, ...")
    ] = THIS_MACHINE,
    price: Price = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try again runs whose memory ended.")] = False,
    forecast_only: ForecastOnly = False,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What do more devices bring? Real epochs, each batch size as that of a device (weak) and of all (strong).

    Example: traincast train scaling --n-devices 1,2 --batch-sizes 32,128
    """
    from functools import partial

    from traincast.api.runnables import require_torch
    from traincast.api.scaling_experiment import plan_scaling
    from traincast.cli.show import show
    from traincast.cli.train_flow import downloading
    from traincast.hardware.link_table import find_link_inside
    from traincast.options.typed import WHOLE_NUMBERS
    from traincast.views.train_scaling import result_document
    from traincast.views.train_scaling_forecast import forecast_document, with_forecast

    require_torch("Training", extra="recipes")
    sizes = batch_sizes.removesuffix(",...")
    rate = None if link is None else find_link_inside(link).bytes_per_s
    plan = partial(
        plan_scaling,
        model,
        data,
        batch_sizes=WHOLE_NUMBERS.of(sizes, "--batch-sizes"),
        grows=sizes != batch_sizes,
        n_devices=WHOLE_NUMBERS.of(n_devices, "--n-devices"),
        device=device,
        n_samples=n_samples,
        image_side=image_side,
        download=download,
        n_epochs=epochs,
        learning_rate=learning_rate,
        optimizer=optimizer,
        precision=precision,
        seed=seed,
    )
    with downloading() as tell:
        asked = plan(on=on, price_usd_per_hour=price, on_download=tell)
    if forecast_only:
        show(forecast_document(asked), as_json=as_json, html=html, png=png, data=asked.to_dict())
        return
    if not as_json:
        show(forecast_document(asked))
    # Where another device was asked about, what runs here is compared with here.
    here = asked if on == THIS_MACHINE or device != "cpu" else plan()
    folder = out_folder(out, "scaling", model, data)
    result = _run(here, folder, rate, retry_failed)
    answer = result.to_dict()
    if here is not asked:
        answer |= {"forecast": asked.forecast.to_dict(), "forecast_here": here.forecast.to_dict()}
    document = result_document(result, folder)
    page = with_forecast(document, here)
    if here is not asked:
        document, page = with_forecast(document, asked), with_forecast(page, asked)
    show(document, as_json=as_json, html=html, png=png, data=answer, page=page)


def _run(
    experiment: "ScalingExperiment", folder: Path, link_bytes_per_s: float | None, retry_failed: bool
) -> "ScalingResult":
    from traincast.api.scaling_experiment import run_scaling
    from traincast.cli.train_flow import counting, stopped

    with (
        stopped(f"Runs that are done are in '{folder}'; the same command again does the rest."),
        counting("scaling") as tell,
    ):
        return run_scaling(
            experiment, folder, link_bytes_per_s=link_bytes_per_s, retry_failed=retry_failed, on_progress=tell
        )
