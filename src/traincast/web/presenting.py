"""Answers as JSON for the page: tables with their cells as people read them, charts as plotly figures.

What an answer shows is decided once, by the documents of the commands. The commands stand above this room, so whoever
starts the server hands them down.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from traincast.report.figure import to_figure
from traincast.report.json_ import plain
from traincast.report.table import show_value
from traincast.web.wording import for_page

if TYPE_CHECKING:
    from traincast.report.document import Document
    from traincast.report.table import Table

_MOST_ROWS = 400  # a table that is longer is cut, with a note: nobody scrolls further


@dataclass(frozen=True, slots=True, kw_only=True)
class Presenters:
    """One function an answer, from what the API returns to a document; `explain_data` is what --json prints."""

    forecast: Callable[..., Document]
    scale: Callable[..., Document]
    plan: Callable[..., Document]
    converge: Callable[..., Document]

    def names(self) -> dict[str, str]:
        """Where each of them is, for a process of its own."""
        functions = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: f"{function.__module__}:{function.__qualname__}" for name, function in functions.items()}

    @classmethod
    def named(cls, names: dict[str, str]) -> Presenters:
        """Those that `names` has told."""
        return cls(**{name: function_at(where) for name, where in names.items()})


def function_at(where: str) -> Callable[..., Any]:
    """The function that 'module:name' stands for. The server writes such words, never a request."""
    module, _, name = where.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


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
        "cards": list(cards),
        "problems": list(problems),
        "metrics": list(metrics),
        "tables": [_table(table) for table in document.tables],
        "charts": [
            {"title": chart.title, "figure": to_figure(chart, with_title=False)}
            for chart in document.charts
            if chart.series
        ],
        "notes": [for_page(note) for note in (*told, *document.notes)],
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
        "notes": [for_page(note) for note in (*table.notes, *cut)],
    }
