"""What one answer shows: a title, tables, charts and remarks, for any renderer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traincast.report.chart import Chart
    from traincast.report.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An answer to one question, before anybody decides what it looks like."""

    title: str
    subtitle: str = ""
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
