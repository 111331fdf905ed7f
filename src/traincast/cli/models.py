"""`traincast models`: which models are known by name?"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traincast.frontend.models.zoo_model import ZooModel
    from traincast.report.chart import Chart
    from traincast.report.document import Document


def models(
    text: Annotated[str, typer.Argument(help="Part of a name, such as resnet.", show_default=False)] = "",
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """Which models are known by name?

    Example: traincast models resnet
    """
    from traincast.cli.show import show
    from traincast.frontend.models.registry import ZOO

    found = [model for name, model in ZOO.items() if text.lower() in name.lower()]
    has_charts = html is not None or png is not None
    document = _document(found, text, n_known=len(ZOO), has_charts=has_charts)
    show(document, as_json=as_json, html=html, png=png, data={"models": [_data(model) for model in found]})


def _document(found: "Sequence[ZooModel]", text: str, *, n_known: int, has_charts: bool) -> "Document":
    from traincast.report.document import Document
    from traincast.report.table import Column, Table

    columns = (
        Column(key="name", header="model"),
        Column(key="title", header="what it is"),
        Column(key="n_parameters", header="parameters", show="integer"),
        Column(key="options", header="options"),
    )
    rows = tuple(
        (model.name, model.title, model.n_parameters, ", ".join(f"{k}={v}" for k, v in model.options.items()))
        for model in found
    )
    notes = ["Default options need no torch; others are captured anew and need the torch extra."]
    if has_charts:
        notes.append("The chart is of default options; a multiply-add is 2 flop.")
    if not found:
        notes = [f"No zoo model has '{text}' in its name; 'traincast models' lists all."]
    return Document(
        title="Models",
        subtitle=f"{len(found)} of {n_known}",
        tables=(Table(title="Models", columns=columns, rows=rows),),
        charts=(_chart(found),) if found and has_charts else (),
        notes=tuple(notes),
    )


def _chart(found: "Sequence[ZooModel]") -> "Chart":
    """What they hold against what they compute, as counted in their traces."""
    from traincast.api.models import load_model
    from traincast.report.chart import Chart, Series
    from traincast.units import show_count, show_flop

    flop = {model.name: load_model(model.name).forward_flop(1) for model in found}
    series = []
    for kind, has_images in (("images", True), ("text", False)):
        own = [model for model in found if (model.task == "image") == has_images]
        names, sizes = [model.name for model in own], [model.n_parameters for model in own]
        work = [flop[name] for name in names]
        told = [
            f"{name}: {show_count(size)} parameters, {show_flop(each)}"
            for name, size, each in zip(names, sizes, work, strict=True)
        ]
        series += [Series(name=kind, x=sizes, y=work, text=told, labels=names)] if own else []
    return Chart(
        title="Size and work of the models",
        kind="scatter",
        series=tuple(series),
        x_label="parameters",
        y_label="forward pass of one sample",
        x_show="count",
        y_show="flop",
        log_x=True,
        log_y=True,
    )


def _data(model: "ZooModel") -> dict[str, Any]:
    return {
        "name": model.name,
        "title": model.title,
        "source": model.source,
        "n_parameters": model.n_parameters,
        "options": model.options,
        "multiply_adds": None if model.gmacs is None else round(model.gmacs * 1e9),
        "multiply_adds_source": model.gmacs_source,
    }
