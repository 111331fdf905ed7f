"""`traincast forecast`: what will this run take?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from traincast.cli.converge_options import MetricName, Target
from traincast.cli.options import (
    Accumulate,
    AsJson,
    Compiled,
    CurveFile,
    DevicesFile,
    GridFactor,
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
    Pue,
    Region,
    SeqLen,
    Strategy,
    usd,
)

if TYPE_CHECKING:
    from traincast.planning.answer import Answer
    from traincast.planning.difference import Difference
    from traincast.planning.gates import Gates

_BROKEN_LIMIT = 3


def forecast(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            help="A zoo name, a .trace, .onnx, .keras or config.json file, file.py:factory, or a job file (.toml)."
        ),
    ],
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="PLACE", help="T4, 4xT4, 2x4xT4@50Gb/s, p3.16xlarge, FILE.toml; again for more."),
    ] = None,
    batch: Annotated[
        str | None, typer.Option("--batch", metavar="N[,N...]", help="Samples of one update; several: a table.")
    ] = None,
    n_samples: NSamples = None,
    n_epochs: NEpochs = 1,
    precision: Precision = None,
    optimizer: Optimizer = None,
    layout: Layout = "nchw",
    compiled: Compiled = False,
    accumulate: Accumulate = 1,
    strategy: Strategy = "ddp",
    tensor_parallel: Annotated[int, typer.Option(help="Devices of a node that share each block.")] = 1,
    pipeline_parallel: Annotated[int, typer.Option(help="Stages that share the blocks of a transformer.")] = 1,
    method: Method = "traincast",
    ppp: Ppp = None,
    host: Host = None,
    input_samples_per_s: InputSamplesPerS = None,
    price: Annotated[
        float | None, typer.Option("--price", metavar="USD", parser=usd, help="Price of a device and hour.")
    ] = None,
    region: Region = None,
    grid_g_per_kwh: GridFactor = None,
    pue: Pue = 1.0,
    curve: CurveFile = None,
    target: Target = None,
    metric: MetricName = None,
    n_classes: NClasses = None,
    image_size: ImageSize = None,
    seqlen: SeqLen = None,
    head: Head = None,
    devices_file: DevicesFile = None,
    fail_over: Annotated[
        str | None,
        typer.Option(metavar="LIMITS", help="budget=200,hours=12,memory=90%: exit code 3 where one is broken."),
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What --json printed earlier: show the differences.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="REF", help="Another commit of the job file: show the differences.")
    ] = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What will this run take: time, memory, money, energy?

    Examples: traincast forecast resnet50 --on V100-PCIe-32GB --batch 128; traincast forecast bert-base --on T4 --on A10
    --batch 8,16,32 --precision amp-fp16 --samples 100000 --epochs 3; traincast forecast job.toml --fail-over budget=200
    """
    from traincast.api.answering import answers
    from traincast.cli.forecast_flags import asked_of
    from traincast.cli.show import show

    asked = asked_of(context)
    found = answers(**asked.options)
    earlier = asked.earlier()
    difference = None if earlier is None else _difference(earlier[1], found, earlier[0])
    broken = _broken(asked.gates, found)
    show(
        _document(found, difference, "" if earlier is None else earlier[0]),
        as_json=as_json,
        html=html,
        png=png,
        data=_data(found, difference, broken) if as_json else None,
    )
    for sentence in broken:
        typer.echo(f"Over the limit: {sentence}", err=True)
    if broken:
        raise typer.Exit(_BROKEN_LIMIT)


def _document(found: "tuple[Answer, ...]", difference: "Difference | None", source: str) -> Any:
    from dataclasses import replace

    from traincast.cli.forecast_document import document_of

    document = document_of(found)
    if difference is None:
        return document
    from traincast.cli.difference_document import difference_table

    return replace(document, tables=(difference_table(difference, source), *document.tables))


def _data(found: "tuple[Answer, ...]", difference: "Difference | None", broken: tuple[str, ...]) -> dict[str, Any]:
    answers = [answer.to_dict() for answer in found]
    data: dict[str, Any] = answers[0] if len(answers) == 1 else {"forecasts": answers}
    if difference is not None:
        data["difference"] = difference.to_dict()
    return {**data, "broken_limits": list(broken)}


def _difference(earlier: dict[str, Any], found: "tuple[Answer, ...]", source: str) -> "Difference":
    from traincast.planning.difference import difference_of
    from traincast.report.json_ import plain

    return difference_of(earlier, plain(found[0].to_dict()), source=source)


def _broken(gates: "Gates", found: "tuple[Answer, ...]") -> tuple[str, ...]:
    """Sentences about several choices name theirs."""
    sentences = []
    for answer in found:
        own = answer.forecast
        prefix = f"{own.place}, batch {own.batch_size:,}: " if len(found) > 1 else ""
        sentences += [f"{prefix}{sentence}" for sentence in gates.broken(own)]
    return tuple(sentences)
