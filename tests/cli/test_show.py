"""The last step of every command."""

import datetime
import html
import json
import shlex
from dataclasses import replace

import pytest

from traincast import __version__
from traincast.__main__ import run
from traincast.cli.show import show
from traincast.errors import InputError
from traincast.report import png as png_module
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Table

TABLE = Table(title="Step", columns=(Column(key="step_s", header="step", show="duration"),), rows=((0.25,),))
CHART = Chart(title="c", kind="bar", series=(Series(name="s", x=["a"], y=[1.0]),), x_label="x", y_label="y")
DOCUMENT = Document(title="Step", tables=(TABLE,), charts=(CHART, CHART))


def test_text_is_for_people_and_json_for_programs(capsys):
    show(DOCUMENT)
    assert "250 ms" in capsys.readouterr().out
    show(DOCUMENT, as_json=True)
    assert json.loads(capsys.readouterr().out)["tables"][0]["rows"] == [{"step_s": 0.25}]
    show(DOCUMENT, as_json=True, data={"step_s": 0.5})
    assert json.loads(capsys.readouterr().out) == {"step_s": 0.5}


def test_assumptions_are_counted_and_shown_on_request(capsys):
    document = replace(DOCUMENT, assumptions=("Prices stay.", "Nobody else trains."))
    show(document)
    short = capsys.readouterr().out
    assert short.endswith("\n2 assumptions not shown; add --verbose to see them.\n")
    assert "Prices stay." not in short
    show(document, verbose=True)
    assert capsys.readouterr().out.endswith("\n- Prices stay.\n- Nobody else trains.\n")
    show(document, as_json=True)
    assert json.loads(capsys.readouterr().out)["notes"] == ["Prices stay.", "Nobody else trains."]


def test_where_the_page_is_goes_to_stderr_so_that_json_stays_json(capsys, tmp_path):
    path = tmp_path / "page.html"
    show(DOCUMENT, as_json=True, html=path)
    captured = capsys.readouterr()
    json.loads(captured.out)
    assert captured.err == f"Wrote {path}\n"
    assert path.read_text().startswith("<!DOCTYPE html>")


def test_a_page_says_how_to_make_it_again(tmp_path, capsys):
    path = tmp_path / "my page.html"
    command = ["memory", "mnist_cnn", "--batch", "8", "--html", str(path)]
    assert run(command) == 0
    today = datetime.date.today().isoformat()
    assert f"Made with traincast {__version__} on {today}: traincast memory mnist_cnn --batch 8" in path.read_text()
    assert html.escape(shlex.quote(str(path))) in path.read_text()


def test_every_chart_becomes_an_image(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(png_module, "to_png", lambda chart: b"png")
    show(DOCUMENT, png=tmp_path / "c.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c-2.png", "c.png"]
    assert capsys.readouterr().err == f"Wrote {tmp_path / 'c.png'}\nWrote {tmp_path / 'c-2.png'}\n"


def test_an_answer_without_a_chart_has_no_image(tmp_path):
    with pytest.raises(InputError, match="'Step' has no chart to write to"):
        show(Document(title="Step", tables=(TABLE,)), png=tmp_path / "c.png")
