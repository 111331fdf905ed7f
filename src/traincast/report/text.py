"""Plain text for terminals and pipes: aligned columns without boxes, numbers never cut."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from traincast.report.table import Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from traincast.report.document import Document

_GAP = 2
_NARROWEST_TEXT = 12  # below this a folded name is harder to read than a line that is too long
_UNLIMITED = 1_000_000


def to_text(document: Document, *, width: int | None = None, color: bool = False) -> str:
    """The document as text, at most `width` wide where a number allows; without a width, nothing wraps."""
    from rich.console import Console
    from rich.text import Text

    page = io.StringIO()
    widest = max([width, *(_needed_width(table) for table in document.tables)]) if width else _UNLIMITED
    console = Console(file=page, width=widest, force_terminal=color, color_system="standard" if color else None)
    console.print(Text(_printable(document.title), style="bold"), width=width)
    if document.subtitle:
        console.print(Text(_printable(document.subtitle)), width=width)
    if document.verdict:
        console.print()
        console.print(Text(_printable(document.verdict)), width=width)
    for table in document.tables:
        console.print()
        if table.title and table.title != document.title:
            console.print(Text(_printable(table.title), style="bold"), width=width)
        for number, part in enumerate(_parts(table, width)):
            if number:
                console.print()
            part_width = max(width, _needed_width(part)) if width else None
            console.print(_rich_table(part) if part.rows else "(no rows)", width=part_width)
        _print_notes(console, table.notes, width)
    if document.remarks:
        console.print()
        _print_notes(console, document.remarks, width)
    if document.assumptions:
        console.print()
        console.print(Text("Assumptions", style="bold"), width=width)
        _print_notes(console, document.assumptions, width)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()) + "\n"


def _parts(table: Table, width: int | None) -> list[Table]:
    """The table in pieces that are no wider than the terminal, one below the other, each with the names of the rows."""
    if width is None or _needed_width(table) <= width or not table.rows:
        return [table]
    n_names = _n_names(table)
    parts = []
    rest = list(range(n_names, len(table.columns)))
    while rest:
        taken = 1
        while taken < len(rest) and _needed_width(_of_columns(table, n_names, rest[: taken + 1])) <= width:
            taken += 1
        parts.append(_of_columns(table, n_names, rest[:taken]))
        rest = rest[taken:]
    return parts


def _n_names(table: Table) -> int:
    """How many of the first columns tell rows apart; the first alone where even all do not."""
    rows = table.formatted()
    for n_names in range(1, len(table.columns)):
        if len({tuple(row[:n_names]) for row in rows}) == len(rows):
            return n_names
    return 1


def _of_columns(table: Table, n_names: int, others: list[int]) -> Table:
    places = [*range(n_names), *others]
    return Table(
        title=table.title,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in table.rows),
    )


def _print_notes(console: Console, notes: tuple[str, ...], width: int | None) -> None:
    """Remarks as a list, with later lines of one indented below its first."""
    from rich.table import Table as RichTable
    from rich.text import Text

    for note in notes:
        line = RichTable.grid(padding=(0, 1, 0, 0))
        line.add_row("-", Text(_printable(note)))
        console.print(line, width=width)


def _rich_table(table: Table) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    rich_table = RichTable(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for column, narrowest in zip(table.columns, _narrowest_widths(table), strict=True):
        rich_table.add_column(
            Text(_printable(column.header)),
            justify="right" if column.is_numeric else "left",
            no_wrap=not column.may_wrap,
            overflow="fold",
            min_width=narrowest,
        )
    for row in table.formatted():
        rich_table.add_row(*(Text(_printable(cell)) for cell in row))
    return rich_table


def _narrowest_widths(table: Table) -> list[int]:
    """What each column needs: numbers stay whole, text may fold."""
    headers = [column.header for column in table.columns]
    widths = [max(len(_printable(text)) for text in texts) for texts in zip(headers, *table.formatted(), strict=True)]
    return [
        min(width, _NARROWEST_TEXT) if column.may_wrap else width
        for column, width in zip(table.columns, widths, strict=True)
    ]


def _needed_width(table: Table) -> int:
    return sum(_narrowest_widths(table)) + _GAP * max(len(table.columns) - 1, 0)


def _printable(text: str) -> str:
    """Names come from users' files: what would steer the terminal is spelt out instead."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
