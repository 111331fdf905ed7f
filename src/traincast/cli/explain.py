"""`traincast explain`: why does a step take what it takes, what would help, and why not what was predicted?"""

from typing import Annotated

import typer

from traincast.cli.options import (
    Accumulate,
    AsJson,
    Batch,
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
    Optimizer,
    PngFile,
    Ppp,
    Precision,
    SeqLen,
    Strategy,
    model_options,
)


def explain(
    model: Model,
    batch: Batch,
    on: Annotated[
        str, typer.Option("--on", metavar="PLACE", help="What is predicted for: this-machine, T4, 4xT4, ...")
    ] = "this-machine",
    measured: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|here",
            help="A trace of torch.profiler, a store, a CSV table, JSON of 'traincast measure'; here: profile it.",
        ),
    ] = None,
    precision: Precision = None,
    optimizer: Optimizer = None,
    layout: Layout = "nchw",
    compiled: Compiled = False,
    accumulate: Accumulate = 1,
    strategy: Strategy = "ddp",
    method: Method = "traincast",
    ppp: Ppp = None,
    host: Host = None,
    input_samples_per_s: InputSamplesPerS = None,
    n_classes: NClasses = None,
    image_size: ImageSize = None,
    seqlen: SeqLen = None,
    head: Head = None,
    devices_file: DevicesFile = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """Why does a step take so long, what would help, and where is the difference to the forecast?

    Examples: traincast explain resnet50 --on T4 --batch 32; traincast explain resnet50 --on T4 --batch 32 --measured
    trace.json.gz; traincast explain cifar_resnet20 --batch 32 --measured here
    """
    from traincast.api.explaining import advise
    from traincast.api.explaining import explain as run
    from traincast.cli.explain_document import data_of, document_of
    from traincast.cli.show import show

    gap = run(
        model,
        on,
        batch,
        measured=measured,
        precision=precision,
        optimizer=optimizer,
        layout=layout,
        compiled=compiled,
        accumulation_steps=accumulate,
        strategy=strategy,
        method=method,
        ppp=ppp,
        host=host,
        input_samples_per_s=input_samples_per_s,
        devices=devices_file,
        **model_options(n_classes=n_classes, image_size=image_size, seqlen=seqlen, head=head),
    )
    advice = advise(gap.forecast)
    data = data_of(gap, advice) if as_json else None
    show(document_of(gap, advice), as_json=as_json, html=html, png=png, data=data)
