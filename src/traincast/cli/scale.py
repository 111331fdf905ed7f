"""`traincast scale`: what do more GPUs bring?"""

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
from traincast.cli.scale_options import (
    Algorithm,
    BatchOfAll,
    BatchPerGpu,
    CompareFile,
    GpuPrice,
    Gpus,
    InsideLink,
    MaybeModel,
    MeasuredFile,
    NParameters,
    NSteps,
    OptimusSpeeds,
    Place,
    Servers,
    Strategy,
    Workers,
    refuse_unused,
)


def scale(
    context: typer.Context,
    model: MaybeModel = None,
    on: Place = None,
    gpus: Gpus = None,
    batch: BatchOfAll = None,
    batch_per_gpu: BatchPerGpu = None,
    n_samples: NSamples = None,
    n_epochs: NEpochs = 1,
    price: GpuPrice = None,
    compare: CompareFile = None,
    strategy: Strategy = "ddp",
    algorithm: Algorithm = "nccl",
    link: InsideLink = None,
    precision: Precision = None,
    optimizer: Optimizer = None,
    layout: Layout = "nchw",
    compiled: Compiled = False,
    accumulate: Accumulate = 1,
    method: Method = "traincast",
    ppp: Ppp = None,
    host: Host = None,
    input_samples_per_s: InputSamplesPerS = None,
    measured: MeasuredFile = None,
    n_parameters: NParameters = None,
    optimus: OptimusSpeeds = None,
    n_steps: NSteps = 100_000,
    workers: Workers = "1-20",
    servers: Servers = "2,4",
    n_classes: NClasses = None,
    image_size: ImageSize = None,
    seqlen: SeqLen = None,
    head: Head = None,
    devices_file: DevicesFile = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What do more GPUs bring: strong and weak scaling, communication, runtime, cost?

    Examples: traincast scale resnet50 --on V100-SXM2-16GB --gpus 1,2,4,8; traincast scale resnet50 --on 2x4xT4@50Gb/s
    --batch 256 --samples 1281167 --price 0.53 --compare runs.csv; traincast scale --measured epochs.csv --samples 50000
    --parameters 11173962; traincast scale --optimus paper-async --steps 100000 --servers 2,4
    """
    from traincast.cli.show import show

    refuse_unused(context)
    options = model_options(n_classes=n_classes, image_size=image_size, seqlen=seqlen, head=head)
    if optimus is not None:
        from traincast.cli.scale_optimus_document import optimus_answer

        document, data = optimus_answer(optimus, batch_size=batch, n_steps=n_steps, workers=workers, servers=servers)
    elif measured is not None:
        from traincast.views.measured_scaling import measured_answer

        document, data = measured_answer(
            measured, model=model, options=options, n_parameters=n_parameters, n_samples=n_samples, link=link
        )
    else:
        from traincast.cli.scale_document import forecast_answer

        document, data = forecast_answer(
            model,
            on,
            options,
            gpus=gpus,
            compare=compare,
            batch_size=batch,
            batch_size_per_gpu=batch_per_gpu,
            n_samples=n_samples,
            n_epochs=n_epochs,
            price_usd_per_hour=price,
            strategy=strategy,
            algorithm=algorithm,
            link=link,
            precision=precision,
            optimizer=optimizer,
            layout=layout,
            compiled=compiled,
            accumulation_steps=accumulate,
            method=method,
            ppp=ppp,
            host=host,
            input_samples_per_s=input_samples_per_s,
            devices=devices_file,
        )
    show(document, as_json=as_json, html=html, png=png, data=data)
