"""PNG images need kaleido and a Chrome; without them, one sentence says so."""

import importlib.util

import plotly.io
import pytest

from traincast.errors import MissingExtraError, TraincastError
from traincast.report.chart import Chart, Series
from traincast.report.png import to_png

CHART = Chart(title="t", kind="bar", series=(Series(name="s", x=["a"], y=[1.0]),), x_label="x", y_label="y")


def test_without_kaleido_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs the 'png' extra: pip install 'traincast\[png\]'"):
        to_png(CHART)


def test_without_a_chrome_the_reason_is_one_line(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("\nKaleido requires Google Chrome to be installed.\n\nEither download ...")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(plotly.io, "to_image", fail)
    with pytest.raises(TraincastError) as caught:
        to_png(CHART)
    assert str(caught.value) == (
        "No PNG could be drawn (Kaleido requires Google Chrome to be installed); an HTML page needs no Chrome."
    )


def test_the_titled_figure_is_what_is_drawn(monkeypatch):
    drawn = []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(plotly.io, "to_image", lambda figure, **options: drawn.append((figure, options)) or b"png")
    assert to_png(CHART) == b"png"
    figure, options = drawn[0]
    assert figure["layout"]["title"]["text"] == "t"
    assert options["format"] == "png"
