"""What one answer shows: a title, a verdict, tables, charts and remarks, for any renderer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traincast.report.chart import Chart
    from traincast.report.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An answer to one question, before anybody decides what it looks like.

    `verdict` is the answer in a sentence or two and comes first; `warnings` may change a decision and are always shown;
    `notes` explain the numbers; `assumptions` are there for who asks: renderers fold them.
    """

    title: str
    subtitle: str = ""
    verdict: str = ""
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings and notes, as they are shown below the tables."""
        return (*(f"Warning: {warning}" for warning in self.warnings), *self.notes)
