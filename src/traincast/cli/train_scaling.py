"""`traincast train scaling`: epochs on 1, 2, 4 ... devices at several batch sizes."""

from typing import Annotated

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
    Seed,
    TrainPrecision,
    out_folder,
)


def scaling(
    data: Data = "digits",
    model: ModelName = "cifar_resnet20",
    n_devices: Annotated[
        str, typer.Option("--n-devices", metavar="1,N...", help="Processes on a CPU, GPUs with --device cuda.")
    ] = "1,2",
    batch_sizes: Annotated[
        str,
        typer.Option(
            "--batch-sizes", metavar="N[,N...]", help="Of a device, and of all. 32,... : fourfold until memory ends."
        ),
    ] = "32,...",
    epochs: Annotated[int, typer.Option("--epochs", help="Of each run; the first is not counted.")] = 2,
    n_samples: Annotated[int | None, typer.Option("--samples", help="Images of an epoch. Default: all.")] = None,
    learning_rate: LearningRate = 0.1,
    optimizer: Annotated[str, typer.Option(help="sgd, momentum, nesterov, adam, adamw, ...")] = "momentum",
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
    ] = "this-machine",
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
    from traincast.api.scaling_experiment import plan_scaling, run_scaling
    from traincast.cli.counted import counted
    from traincast.cli.numbers import whole_numbers
    from traincast.cli.show import show
    from traincast.cli.train_scaling_document import forecast_document, result_document
    from traincast.hardware.host import THIS_MACHINE
    from traincast.hardware.link_table import find_link_inside

    require_torch("Training")
    sizes = batch_sizes.removesuffix(",...")
    rate = None if link is None else find_link_inside(link).bytes_per_s
    plan = partial(
        plan_scaling,
        model,
        data,
        batch_sizes=whole_numbers(sizes, "--batch-sizes"),
        grows=sizes != batch_sizes,
        n_devices=whole_numbers(n_devices, "--n-devices"),
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
    experiment = plan(on=on)
    if forecast_only:
        answer = experiment.to_dict()
        show(forecast_document(experiment), as_json=as_json, html=html, png=png, data=answer)
        return
    if not as_json:
        show(forecast_document(experiment))
    if on != THIS_MACHINE and device == "cpu":  # another device was asked about; what runs here is compared with here
        experiment = plan()
    folder = out_folder(out, "scaling", model, data)
    try:
        with counted("Training") as tell:
            result = run_scaling(experiment, folder, link_bytes_per_s=rate, on_progress=tell)
    except KeyboardInterrupt:
        typer.echo(f"Stopped. Runs that are done are in '{folder}'; the same command again does the rest.", err=True)
        raise typer.Exit(130) from None
    show(result_document(result, folder), as_json=as_json, html=html, png=png, data=result.to_dict())
