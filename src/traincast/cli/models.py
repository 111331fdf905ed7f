"""`traincast models`: which models are known by name?"""

from typing import Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile


def models(
    text: Annotated[str, typer.Argument(help="Part of a name, such as resnet.", show_default=False)] = "",
    as_json: AsJson = False,
    html: HtmlFile = None,
) -> None:
    """Which models are known by name?

    Example: traincast models resnet
    """
    from traincast.cli.show import show
    from traincast.frontend.models.registry import ZOO
    from traincast.report.document import Document
    from traincast.report.table import Column, Table

    found = [model for name, model in ZOO.items() if text.lower() in name.lower()]
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
    data = [
        {
            "name": model.name,
            "title": model.title,
            "source": model.source,
            "n_parameters": model.n_parameters,
            "options": model.options,
            "multiply_adds": None if model.gmacs is None else round(model.gmacs * 1e9),
            "multiply_adds_source": model.gmacs_source,
        }
        for model in found
    ]
    notes = ("Default options need no torch; others are captured anew and need the torch extra.",)
    if not found:
        notes = (f"No zoo model has '{text}' in its name; 'traincast models' lists all.",)
    table = Table(title="Models", columns=columns, rows=rows)
    document = Document(title="Models", subtitle=f"{len(found)} of {len(ZOO)}", tables=(table,), notes=notes)
    show(document, as_json=as_json, html=html, data={"models": data})
