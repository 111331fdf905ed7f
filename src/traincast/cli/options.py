"""Options that several commands share, so that they read alike everywhere."""

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON in base units instead of text.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write an HTML page with charts.")]
PngFile = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Also write the chart as an image.")]
DevicesFile = Annotated[
    Path | None, typer.Option("--devices", metavar="FILE", help="CSV or TOML file with devices of your own.")
]
