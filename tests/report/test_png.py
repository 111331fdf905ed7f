"""PNG images need kaleido and a Chrome; without them, one sentence says so."""

import importlib.util
import io
import os
import shutil

import plotly.io
import pytest
from PIL import Image

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


def test_a_chart_is_drawn_by_a_real_chrome(monkeypatch):
    chrome = os.environ.get("TRAINCAST_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    if importlib.util.find_spec("kaleido") is None or chrome is None:
        pytest.skip("A PNG is drawn by kaleido and a Chrome: pip install kaleido, apt-get install chromium.")
    monkeypatch.setenv("BROWSER_PATH", chrome)  # where kaleido looks first
    image = Image.open(io.BytesIO(to_png(CHART))).convert("RGB")
    assert image.size == (1920, 1080)
    n_pixels = dict((color, n) for n, color in image.getcolors(maxcolors=100_000))
    assert n_pixels[0x44, 0x77, 0xAA] > 100_000  # the only bar fills a good part of the picture
