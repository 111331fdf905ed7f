"""What `traincast models` shows: models of the zoo, with their size and their work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traincast.api.models import load_model
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.units import show_count, show_flop

if TYPE_CHECKING:
    from traincast.api.listings import ModelList
    from traincast.frontend.models.named import NamedModel
    from traincast.frontend.models.zoo_model import ZooModel

_COLUMNS = columns_of("name: model, title: what it is, n_parameters: parameters, options")


def document_of(found: ModelList, *, with_charts: bool = True) -> Document:
    """One row per model. The chart needs the trace of each, and is made only where it is looked at."""
    rows = tuple(
        (model.name, model.title, model.n_parameters, ", ".join(f"{k}={v}" for k, v in model.options.items()))
        for model in found.models
    )
    notes = [
        "Default options need no torch, nor does any seqlen of a published model (from llama-2-7b on); other options "
        "capture the model again and need the torch extra."
    ]
    if with_charts:
        notes.append("The chart shows default options; a multiply-add counts as 2 flop.")
    if not found.models:
        notes = [f"No zoo model has '{found.text}' in its name; 'traincast models' lists all."]
    return Document(
        title="Models",
        subtitle=f"{len(found.models)} of {found.n_known}",
        tables=(Table(title="Models", columns=_COLUMNS, rows=rows),),
        charts=(_chart(found.models),) if found.models and with_charts else (),
        notes=tuple(notes),
    )


def _chart(found: Sequence[ZooModel | NamedModel]) -> Chart:
    """What they hold against what they compute, as counted in their traces."""
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
