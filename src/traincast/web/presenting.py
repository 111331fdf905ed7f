"""Answers as JSON for the page: tables with their cells as people read them, charts as plotly figures.

What an answer shows is decided once, by the documents of `views`, which terminal, files and notebooks show, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from traincast.report.figure import to_figure
from traincast.report.json_ import plain
from traincast.report.table import show_value

if TYPE_CHECKING:
    from traincast.report.document import Document
    from traincast.report.table import Table

_MOST_ROWS = 400  # a table that is longer is cut, with a note: nobody scrolls further


def shown(
    document: Document,
    data: Any,
    *,
    cards: Sequence[dict[str, object]] = (),
    problems: Sequence[dict[str, str]] = (),
    metrics: Sequence[str] = (),
    told: Sequence[str] = (),
) -> bytes:
    """The body of a reply. `told` are remarks beside those of the document."""
    content = {
        "title": document.title,
        "subtitle": document.subtitle,
        "verdict": document.verdict,
        "cards": list(cards),
        "problems": list(problems),
        "metrics": list(metrics),
        "tables": [_table(table) for table in document.tables],
        "charts": [
            {"title": chart.title, "figure": to_figure(chart, with_title=False)}
            for chart in document.charts
            if chart.series
        ],
        "notes": [*told, *document.remarks, *document.assumptions],
        "data": plain(data),
    }
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode()


def _table(table: Table) -> dict[str, Any]:
    rows = [
        [show_value(value, column.show) for column, value in zip(table.columns, row, strict=True)]
        for row in table.rows[:_MOST_ROWS]
    ]
    cut = [f"The first {_MOST_ROWS} of {len(table.rows):,} rows."] if len(table.rows) > _MOST_ROWS else []
    return {
        "title": table.title,
        "headers": [column.header for column in table.columns],
        "is_numeric": [column.is_numeric for column in table.columns],
        "rows": rows,
        "notes": [*table.notes, *cut],
    }
