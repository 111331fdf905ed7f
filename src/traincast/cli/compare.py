"""`traincast compare`: how wrong are we?"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile


def compare(
    data: Annotated[
        Path,
        typer.Option("--data", metavar="DIR", help="Public measurements: folder with ops/, e2e/, layers/."),
    ],
    traces: Annotated[
        Path | None,
        typer.Option(
            "--traces",
            metavar="DIR",
            help="Traces of their models, by benchmarks/capture_models.py; else ~/.cache/traincast/traces.",
            show_default=False,
        ),
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME", help="Only this set; again for more.")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", metavar="NAME", help="Only this method; again for more.")
    ] = None,
    by: Annotated[
        Literal["device", "family", "precision", "part", "op"] | None,
        typer.Option(help="Also one row a GPU, family and so on.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """How wrong are we, and how wrong are others, on what was measured?

    The first call takes over ten minutes: it lowers every captured model and fits without each GPU and family. What it
    finds is kept beside the traces. Example: traincast compare --data DIR --set gemm --by device
    """
    from traincast.cli.show import show
    from traincast.kernels.refit.folders import USUAL_TRACES
    from traincast.validation.document import check_names, choose, data_of, document_of
    from traincast.validation.score import score_all

    check_names(sets or [], methods or [])
    chosen = choose(score_all(data, traces or USUAL_TRACES).sets, sets or [], methods or [])
    show(
        document_of(chosen, by=by),
        as_json=as_json,
        html=html,
        png=png,
        data=data_of(chosen, by=by) if as_json else None,
    )
