"""The last step of every command: print the answer, write the files that were asked for."""

from __future__ import annotations

import os
import shutil
import sys
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from traincast.cli.typed import TYPED
from traincast.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.report.document import Document


# Who runs other commands keeps what they show, for a page of its own.
SHOWN: ContextVar[list[Document] | None] = ContextVar("shown", default=None)


def show(
    document: Document,
    *,
    as_json: bool = False,
    html: Path | None = None,
    png: Path | None = None,
    data: dict[str, Any] | None = None,
    page: Document | None = None,
    verbose: bool = False,
) -> None:
    """Text or JSON to stdout, pages and images to files, and where these are to stderr.

    `data` is what the Python result holds; without it JSON repeats the tables of the document. `page` is what files
    show where that is more: what was printed before stands on no page yet.
    """
    kept = SHOWN.get()
    if kept is not None:
        kept.append(page or document)
    if as_json:
        from traincast.report.json_ import to_dict, to_json

        typer.echo(to_json(to_dict(document) if data is None else data))
    else:
        typer.echo(_text(document, verbose=verbose), nl=False)
    write_files(page or document, html=html, png=png)


def write_files(document: Document, *, html: Path | None = None, png: Path | None = None) -> None:
    """The page and the images that were asked for."""
    if html is not None:
        from traincast.report.files import write_file
        from traincast.report.html import to_html

        typer.echo(f"Wrote {write_file(html, to_html(document, provenance=_provenance()))}", err=True)
    if png is not None:
        _write_images(document, png)


def _provenance() -> str:
    """How to get the same page again: version, day and command."""
    import datetime
    import shlex

    from traincast import __version__

    typed = TYPED.get()
    how = f": {shlex.join(['traincast', *typed])}" if typed else "."
    return f"Made with traincast {__version__} on {datetime.date.today().isoformat()}{how}"


def _text(document: Document, *, verbose: bool) -> str:
    """A terminal gets colours and its own width; a pipe gets one line per row, however long."""
    from traincast.report.text import to_text
    from traincast.units import show_things

    is_terminal = sys.stdout.isatty()
    has_width = is_terminal or "COLUMNS" in os.environ
    n_hidden = 0 if verbose else len(document.assumptions)
    hint = f"\n{show_things(n_hidden, 'assumption')} not shown; add --verbose to see them.\n" if n_hidden else ""
    text = to_text(
        replace(document, assumptions=()) if n_hidden else document,
        width=shutil.get_terminal_size().columns if has_width else None,
        color=is_terminal and os.environ.get("TERM") != "dumb" and "NO_COLOR" not in os.environ,
    )
    return text + hint


def _write_images(document: Document, path: Path) -> None:
    """One chart goes to the path; further ones beside it, numbered from 2."""
    from traincast.report.files import write_file
    from traincast.report.png import to_png

    if not document.charts:
        raise InputError(f"'{document.title}' has no chart to write to '{path}'.")
    for number, chart in enumerate(document.charts, start=1):
        numbered = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        typer.echo(f"Wrote {write_file(numbered, to_png(chart))}", err=True)
