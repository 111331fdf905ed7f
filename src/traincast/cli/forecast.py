"""`traincast forecast`: what will this run take?"""

from typing import Annotated

import typer

from traincast.cli.options import (
    Accumulate,
    AsJson,
    Compiled,
    DevicesFile,
    Head,
    Host,
    HtmlFile,
    ImageSize,
    InputSamplesPerS,
    Layout,
    Method,
    Model,
    NClasses,
    NEpochs,
    NSamples,
    Optimizer,
    PngFile,
    Ppp,
    Precision,
    SeqLen,
    model_options,
)


def forecast(
    model: Model,
    on: Annotated[
        list[str],
        typer.Option("--on", metavar="PLACE", help="T4, 4xT4, 2x4xT4@50Gb/s, p3.16xlarge, FILE.toml; again for more."),
    ],
    batch: Annotated[str, typer.Option("--batch", metavar="N[,N...]", help="Samples of one update; several: a table.")],
    n_samples: NSamples = None,
    n_epochs: NEpochs = 1,
    precision: Precision = None,
    optimizer: Optimizer = None,
    layout: Layout = "nchw",
    compiled: Compiled = False,
    accumulate: Accumulate = 1,
    strategy: Annotated[
        str, typer.Option(help="On many devices: ddp, dp, mirrored, ps:P, ps-async:P, fsdp, zero1 to zero3.")
    ] = "ddp",
    tensor_parallel: Annotated[int, typer.Option(help="Devices of a node that share each block.")] = 1,
    pipeline_parallel: Annotated[int, typer.Option(help="Stages that share the blocks of a transformer.")] = 1,
    method: Method = "traincast",
    ppp: Ppp = None,
    host: Host = None,
    input_samples_per_s: InputSamplesPerS = None,
    price: Annotated[float | None, typer.Option("--price", metavar="USD", help="Price of a device and hour.")] = None,
    n_classes: NClasses = None,
    image_size: ImageSize = None,
    seqlen: SeqLen = None,
    head: Head = None,
    devices_file: DevicesFile = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What will this run take: time, memory, money?

    Examples: traincast forecast resnet50 --on V100-PCIe-32GB --batch 128; traincast forecast bert-base --on T4 --on A10
    --batch 8,16,32 --precision amp-fp16 --samples 100000 --epochs 3
    """
    from traincast.api.forecasts import forecast_many
    from traincast.api.models import load_model
    from traincast.cli.forecast_document import document_of
    from traincast.cli.show import show

    options = model_options(n_classes=n_classes, image_size=image_size, seqlen=seqlen, head=head)
    forecasts = forecast_many(
        load_model(model, **options),
        list(dict.fromkeys(on)),
        _batch_sizes(batch),
        n_samples=n_samples,
        n_epochs=n_epochs,
        precision=precision,
        optimizer=optimizer,
        layout=layout,
        compiled=compiled,
        accumulation_steps=accumulate,
        strategy=strategy,
        tensor_parallel=tensor_parallel,
        pipeline_parallel=pipeline_parallel,
        method=method,
        ppp=ppp,
        host=host,
        input_samples_per_s=input_samples_per_s,
        price_usd_per_hour=price,
        devices=devices_file,
    ).forecasts()
    answers = [answer.to_dict() for answer in forecasts] if as_json else []
    data = answers[0] if len(answers) == 1 else {"forecasts": answers}
    show(document_of(forecasts), as_json=as_json, html=html, png=png, data=data)


def _batch_sizes(text: str) -> list[int]:
    """Each once, in the order given."""
    from traincast.errors import InputError

    try:
        return list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        raise InputError(
            f"--batch '{text}' is not a whole number or a list of them: write 128, or 32,64,128."
        ) from None
