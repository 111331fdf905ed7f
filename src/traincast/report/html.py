"""One HTML file that shows a document anywhere: no server, no network, plotly's JavaScript inside.

The page's own security policy forbids loading anything, so that "offline" is enforced by the browser.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

from traincast.report.figure import to_figure
from traincast.report.html_page import PAGE, SCRIPT, STYLE

if TYPE_CHECKING:
    from traincast.report.chart import Chart
    from traincast.report.document import Document
    from traincast.report.table import Column, Table

_SHORT = 24  # letters


def to_html(document: Document, *, provenance: str = "") -> str:
    """The whole page as text; `provenance` says at its foot where it comes from."""
    body = [f"<h1>{escape(document.title)}</h1>"]
    if document.subtitle:
        body.append(f'<p class="subtitle">{escape(document.subtitle)}</p>')
    if document.verdict:
        body.append(f'<p class="verdict">{escape(document.verdict)}</p>')
    body += [_chart(chart, number) for number, chart in enumerate(document.charts)]
    body += [_table(table, with_title=table.title != document.title) for table in document.tables]
    body += [_notes(document.remarks), _folded("Assumptions", document.assumptions)]
    if provenance:
        body.append(f"<footer>{escape(provenance)}</footer>")
    if document.charts:
        body += _scripts(document.charts)
    return PAGE.format(title=escape(document.title), style=STYLE, body="\n".join(part for part in body if part))


def _chart(chart: Chart, number: int) -> str:
    title = escape(chart.title)
    canvas = f'<div class="chart" id="chart-{number}" role="img" aria-label="{title}"></div>'
    return f"<figure><h2>{title}</h2>{canvas}</figure>"


def _table(table: Table, *, with_title: bool) -> str:
    cells = table.formatted()
    kinds = [_kind(column, [row[place] for row in cells]) for place, column in enumerate(table.columns)]
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(column.header)}</th>'
        for kind, column in zip(kinds, table.columns, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{_cell(cell)}</td>' for kind, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in cells
    )
    title = f"<h2>{escape(table.title)}</h2>" if with_title and table.title else ""
    return (
        f'<section>{title}<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{rows}</tbody></table></div>{_notes(table.notes)}</section>"
    )


def _kind(column: Column, cells: list[str]) -> str:
    """Numbers, names on one line, and text that may wrap where it is long: '35.0 min' reads badly on two lines."""
    if column.is_numeric:
        return "number"
    return "text" if column.may_wrap and any(len(cell) > _SHORT for cell in cells) else "name"


def _cell(text: str) -> str:
    """A part of the row above is set in by spaces, which a browser drops unless they are hard."""
    inner = text.lstrip(" ")
    return "&nbsp;" * (len(text) - len(inner)) + escape(inner)


def _notes(notes: tuple[str, ...]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{items}</ul>' if notes else ""


def _folded(title: str, notes: tuple[str, ...]) -> str:
    return f"<details><summary>{title} ({len(notes)})</summary>{_notes(notes)}</details>" if notes else ""


def _scripts(charts: tuple[Chart, ...]) -> list[str]:
    """Plotly itself, once, and the figures; '<' is spelt out so that no text can end the script."""
    from plotly.offline import get_plotlyjs

    figures = json.dumps([to_figure(chart, with_title=False) for chart in charts]).replace("<", "\\u003c")
    return [f"<script>{get_plotlyjs()}</script>", f"<script>const figures = {figures};\n{SCRIPT}</script>"]
