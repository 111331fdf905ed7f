"""What a result looks like as the last line of a notebook's cell: one small table, without charts and style of its own.

The first cell of a row is its heading. All text is escaped: names come from users' files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from traincast.report.table import NOTHING

Cells = Sequence[str | None]


def to_notebook(title: str, rows: Iterable[Cells], *, header: Cells = (), notes: Iterable[str] = ()) -> str:
    """An HTML fragment: a table with its title above it, and remarks below."""
    head = f"<thead><tr>{''.join(_cell('th', cell) for cell in header)}</tr></thead>" if header else ""
    body = "".join(f"<tr>{_cell('th', row[0])}{''.join(_cell('td', cell) for cell in row[1:])}</tr>" for row in rows)
    items = "".join(f"<li>{_escaped(note)}</li>" for note in notes)
    told = f"<ul>{items}</ul>" if items else ""
    return f"<table><caption>{_escaped(title)}</caption>{head}<tbody>{body}</tbody></table>{told}"


def _cell(tag: str, text: str | None) -> str:
    return f"<{tag}>{NOTHING if text is None else _escaped(text)}</{tag}>"


def _escaped(text: str) -> str:
    """Dollars get an element of their own: notebooks take what is between two of them in one text for a formula."""
    import html

    return html.escape(text).replace("$", "<span>$</span>")
