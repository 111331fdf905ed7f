"""`traincast scale`: what do more GPUs bring?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from traincast.cli.options import (
    AsJson,
    DevicesFile,
    Head,
    HtmlFile,
    ImageSize,
    NClasses,
    Optimizer,
    PngFile,
    Precision,
    SeqLen,
    model_options,
)

if TYPE_CHECKING:
    from traincast.report.document import Document


# What each of the three questions has a use for, besides the outputs; anything else is refused, not ignored.
_OUTPUTS = {"as_json", "html", "png"}
_MODEL = {"model", "n_classes", "image_size", "seqlen", "head"}
_USED = {
    "--measured": {"measured", "n_parameters", "n_samples", "link"} | _MODEL | _OUTPUTS,
    "--optimus": {"optimus", "batch", "n_steps", "workers", "servers"} | _OUTPUTS,
}
_ONLY_ELSEWHERE = {"n_parameters": "--measured", "n_steps": "--optimus", "workers": "--optimus", "servers": "--optimus"}


def scale(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            help="A zoo name, a .trace, .onnx, .keras or config.json file, or file.py:factory.", show_default=False
        ),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="PLACE", help="T4, 2x4xT4@50Gb/s, p3.16xlarge, a cluster's TOML file."),
    ] = None,
    gpus: Annotated[
        str | None,
        typer.Option("--gpus", metavar="N[,N...]", help="Numbers of GPUs. Default: 1,2,4,... up to 8 or all."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", help="Strong scaling: samples of one update of all GPUs.")
    ] = None,
    batch_per_gpu: Annotated[
        int | None, typer.Option("--batch-per-gpu", help="Weak scaling: samples of one update of each GPU.")
    ] = None,
    n_samples: Annotated[int | None, typer.Option("--samples", help="Samples of one epoch.")] = None,
    n_epochs: Annotated[int, typer.Option("--epochs", help="Epochs of the run.")] = 1,
    price: Annotated[float | None, typer.Option("--price", metavar="USD", help="Price of a GPU and hour.")] = None,
    compare: Annotated[
        Path | None,
        typer.Option("--compare", metavar="FILE", help="CSV of measured runs: gpus and epoch_s or total_s."),
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="ddp, dp, mirrored, ps:P, ps-async:P, fsdp, zero1, zero2 or zero3.")
    ] = "ddp",
    algorithm: Annotated[
        str,
        typer.Option(
            help="All-reduce: nccl, best, ring, double-tree, hierarchical; in one node also tree, butterfly, "
            "recursive-doubling, master."
        ),
    ] = "nccl",
    link: Annotated[
        str | None, typer.Option("--link", metavar="LINK", help="Replaces the link inside a node: PCIe3 x8, 10GB/s.")
    ] = None,
    precision: Precision = None,
    optimizer: Optimizer = None,
    layout: Annotated[str, typer.Option(help="How images lie in memory: nchw or nhwc.")] = "nchw",
    compiled: Annotated[bool, typer.Option("--compiled", help="The model runs under torch.compile.")] = False,
    accumulate: Annotated[int, typer.Option(help="Passes that share the batch of one update.")] = 1,
    method: Annotated[str, typer.Option(help="traincast, roofline, paleo or layerwise.")] = "traincast",
    ppp: Annotated[
        float | None, typer.Option(help="Fraction of the peaks that paleo reaches.", show_default=False)
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="What dispatches the ops: torch-eager, tf1-session, tf2-keras, this-machine."),
    ] = None,
    input_samples_per_s: Annotated[
        float | None, typer.Option("--input-samples-per-s", help="What the data loader delivers.")
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option("--measured", metavar="FILE", help="Instead of a forecast: CSV with batch, gpus, epoch_s."),
    ] = None,
    n_parameters: Annotated[
        int | None, typer.Option("--parameters", help="Of the model of --measured, instead of MODEL.")
    ] = None,
    optimus: Annotated[
        str | None,
        typer.Option(
            "--optimus",
            metavar="SPEEDS",
            help="Instead: Optimus' model. paper-sync, paper-async or CSV with servers, workers, steps_per_s.",
        ),
    ] = None,
    n_steps: Annotated[int, typer.Option("--steps", help="With --optimus: steps to be done.")] = 100_000,
    workers: Annotated[str, typer.Option("--workers", metavar="N[,N...]", help="With --optimus.")] = "1-20",
    servers: Annotated[str, typer.Option("--servers", metavar="N[,N...]", help="With --optimus.")] = "2,4",
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
    from traincast.errors import InputError

    if measured is not None and optimus is not None:
        raise InputError("--measured and --optimus are two questions: ask one at a time.")
    _refuse_unused(context, "--measured" if measured is not None else "--optimus" if optimus is not None else "")
    options = model_options(n_classes=n_classes, image_size=image_size, seqlen=seqlen, head=head)
    if optimus is not None:
        from traincast.cli.scale_optimus_document import optimus_answer

        document, data = optimus_answer(optimus, batch_size=batch, n_steps=n_steps, workers=workers, servers=servers)
    elif measured is not None:
        from traincast.cli.scale_measured_document import measured_answer

        document, data = measured_answer(
            measured, model=model, options=options, n_parameters=n_parameters, n_samples=n_samples, link=link
        )
    else:
        document, data = _forecast(
            _needed(model, "a model"),
            _needed(on, "--on, such as --on V100-SXM2-16GB"),
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


def _forecast(
    model: str, on: str, options: dict[str, Any], *, gpus: str | None, compare: Path | None, **run: Any
) -> "tuple[Document, dict[str, Any]]":
    from traincast.api.forecasts import scale as answer
    from traincast.api.models import load_model
    from traincast.cli.numbers import whole_numbers
    from traincast.cli.scale_document import document_of
    from traincast.forecasting.scale_compare import compare as beside

    counts = None if gpus is None else whole_numbers(gpus, "--gpus")
    scaling = answer(load_model(model, **options), on, counts, **run)
    is_weak = run["batch_size"] is None and run["batch_size_per_gpu"] is not None
    comparison = None if compare is None else beside(scaling, compare, is_weak=is_weak)
    data = scaling.to_dict() | {"measured": None if comparison is None else comparison.to_dict()}
    return document_of(scaling, comparison), data


def _needed(value: str | None, what: str) -> str:
    from traincast.errors import InputError

    if value is None:
        raise InputError(f"Scaling needs {what}; or measured epochs (--measured), or speeds (--optimus).")
    return value


def _refuse_unused(context: typer.Context, question: str) -> None:
    """A flag that changes nothing was meant for something: say so."""
    from traincast.errors import InputError

    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        flag = parameter.opts[0] if parameter.opts[0].startswith("-") else f"The model '{context.params[name]}'"
        if question and name not in _USED[question]:
            raise InputError(f"{flag} means nothing to {question}: leave it out.")
        if not question and name in _ONLY_ELSEWHERE:
            raise InputError(f"{flag} belongs to {_ONLY_ELSEWHERE[name]}: leave it out, or ask that.")
