"""The HTML page: complete, offline, and never confused by the names it shows."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from plotly.offline import get_plotlyjs

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.html import to_html
from traincast.report.table import Column, Table

EVIL = "</script><script>alert('1')</script><img src=x>&amp;"


class Tags(HTMLParser):
    """Collects tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self._inside = [], "", ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.text += data


def a_document(text="conv1", *, n_charts=0):
    table = Table(
        title=f"Table {text}",
        columns=(Column(key="name", header=text), Column(key="step_s", header="time", show="duration")),
        rows=((text, 0.0123),),
        notes=(f"Table note {text}",),
    )
    series = (Series(name=text, x=[text], y=[1.0]),)
    charts = tuple(
        Chart(title=f"Chart {i} {text}", kind="bar", series=series, x_label=text, y_label=text) for i in range(n_charts)
    )
    return Document(title=f"Page {text}", subtitle=text, tables=(table,), charts=charts, notes=(f"Page note {text}",))


def test_the_page_shows_titles_tables_and_notes():
    page = Tags(to_html(a_document()))
    for words in ("Page conv1", "Table conv1", "12.3 ms", "Table note conv1", "Page note conv1"):
        assert words in page.text
    assert ("td", {"class": "number"}) in page.tags
    assert ("td", {"class": "name"}) in page.tags


def test_only_long_text_may_wrap():
    answers = Table(
        title="",
        columns=(Column(key="what", header=""), Column(key="p50", header="p50")),
        rows=(
            ("time until then", "35.0 min"),
            ("the catch", "Needs a gradient scaler; check the accuracy."),
        ),
    )
    tags = Tags(to_html(Document(title="Run", tables=(answers,)))).tags
    assert [with_["class"] for tag, with_ in tags if tag == "td"] == ["name", "text"] * 2


def test_a_part_of_the_row_above_stays_set_in():
    table = Table(title="Tree", columns=(Column(key="name", header="layer"),), rows=(("layer1",), ("  conv1",)))
    cells = re.findall(r"<td[^>]*>(.*?)</td>", to_html(Document(title="Page", tables=(table,))))
    assert cells == ["layer1", "&nbsp;&nbsp;conv1"]


def test_names_stay_text_everywhere():
    page = to_html(a_document(EVIL, n_charts=1))
    parsed = Tags(page)
    assert parsed.text.count(EVIL) >= 6
    assert [tag for tag, _ in parsed.tags].count("script") == 2
    assert "img" not in [tag for tag, _ in parsed.tags]


def test_nothing_is_loaded_from_anywhere():
    page = to_html(a_document(n_charts=2))
    tags = Tags(page).tags
    assert [attributes for _, attributes in tags if {"src", "href", "data", "action"} & set(attributes)] == []
    own = page.replace(get_plotlyjs(), "")
    assert "http:" not in own
    assert "https:" not in own
    assert "@import" not in own
    policy = next(a["content"] for tag, a in tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize(("n_charts", "n_plotly"), [(0, 0), (1, 1), (3, 1)])
def test_plotly_is_inside_once_and_only_where_there_are_charts(n_charts, n_plotly):
    page = to_html(a_document(n_charts=n_charts))
    assert page.count(get_plotlyjs()) == n_plotly
    assert len(re.findall(r'id="chart-\d+"', page)) == n_charts


def test_the_figures_on_the_page_are_valid_json():
    page = to_html(a_document(EVIL, n_charts=2))
    figures = json.loads(re.search(r"const figures = (\[.*\]);", page)[1])
    assert len(figures) == 2
    assert figures[0]["data"][0]["y"] == [1.0]


def test_light_and_dark_readers_are_both_served():
    assert "prefers-color-scheme: dark" in to_html(a_document())


def test_where_it_comes_from_is_at_its_foot():
    page = to_html(a_document(), provenance=f"Made with {EVIL}")
    assert f"Made with {EVIL}" in Tags(page).text
    assert "<footer>" not in to_html(a_document())


def test_a_page_opens_with_the_verdict_and_folds_what_is_assumed():
    page = to_html(replace(a_document(), verdict="Fits <b>.", warnings=("slow",), assumptions=("steady & dear",)))
    assert page.index("Fits &lt;b&gt;.") < page.index("<table>") < page.index("Warning: slow") < page.index("<details>")
    assert "<summary>Assumptions (1)</summary>" in page
    assert "<li>steady &amp; dear</li>" in page.partition("<details>")[2].partition("</details>")[0]
