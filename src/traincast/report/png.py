"""A chart as a PNG image, for papers and mails. Needs kaleido, which needs a Chrome."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from traincast.errors import MissingExtraError, TraincastError
from traincast.report.figure import to_figure

if TYPE_CHECKING:
    from traincast.report.chart import Chart

_SIZE = {"width": 960, "height": 540, "scale": 2}


def to_png(chart: Chart) -> bytes:
    """The image, 1920 pixels wide."""
    require_kaleido()
    import plotly.io

    try:
        image: bytes = plotly.io.to_image(to_figure(chart, with_title=True), format="png", **_SIZE)
    except RuntimeError as error:  # kaleido's own, among them that there is no Chrome; it says more than a line
        reason = str(error.args[0] if error.args else error).strip().split("\n")[0].rstrip(".")
        raise TraincastError(f"No PNG could be drawn ({reason}); an HTML page needs no Chrome.") from error
    return image


def require_kaleido() -> None:
    """Told before the work whose chart is to be drawn. Whether there is a Chrome shows when it is drawn."""
    if importlib.util.find_spec("kaleido") is None:
        raise MissingExtraError("A PNG image of a chart", extra="png")
