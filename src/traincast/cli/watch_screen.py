"""What `traincast watch` shows: one screen that is kept up to date, or a line, or JSON, for each update."""

from __future__ import annotations

import json
import re
import sys
from pathlib import PurePath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from traincast.curves.status.status import Status
    from traincast.curves.status.watch_loop import Display

_MOST_REMARKS = 4
_N_PLACES = 120
_MOST_POINTS = 400
_LEAST_ROWS, _MOST_ROWS = 4, 12  # of the chart


def display_for(*, as_json: bool, once: bool) -> Display:
    """A screen for a terminal; one line an update for a pipe."""
    if as_json:
        return Lines(as_json=True)
    return Screen() if sys.stdout.isatty() and not once else Lines()


class Lines:
    """One line on stdout for each update that changes anything; warnings and remarks on stderr, each once."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json
        self._seen = ""
        self._told: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        return

    def update(self, status: Status) -> None:
        from traincast.curves.status.status_line import line_of
        from traincast.report.json_ import plain

        line = json.dumps(plain(status.to_dict()), allow_nan=False) if self._as_json else line_of(status)
        # JSON has the warnings in it: one that only counts on is nothing new.
        seen = f"{line_of(status)} {[_kind(sentence) for sentence in status.warnings] if self._as_json else ''}"
        if seen != self._seen:
            typer.echo(line)
            sys.stdout.flush()
            self._seen = seen
        if not self._as_json:
            for sentence in status.warnings:
                self.tell(f"Warning: {sentence}")
            for sentence in status.remarks:
                self.tell(f"Note: {sentence}")

    def tell(self, sentence: str) -> None:
        if _kind(sentence) not in self._told:
            self._told.add(_kind(sentence))
            typer.echo(sentence, err=True)


def _kind(sentence: str) -> str:
    """The same sentence with other numbers is nothing new."""
    return re.sub(r"[\d.,]+", "", sentence)


class Screen:
    """A part of the terminal that is drawn anew at each update; the last state stays when it ends."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(auto_refresh=False)
        self._shown: RenderableType | None = None

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._live.stop()

    def update(self, status: Status) -> None:
        console = self._live.console
        self._shown = screen_of(status, width=console.width, height=console.height)
        self._live.update(self._shown, refresh=True)

    def tell(self, sentence: str) -> None:
        """Below what is shown."""
        from rich.console import Group
        from rich.text import Text

        self._live.update(Text(sentence) if self._shown is None else Group(self._shown, Text(sentence)), refresh=True)


def screen_of(status: Status, *, width: int, height: int) -> RenderableType:
    """Where the run is, what is forecast, the chart in the room that is left, and what should make one look."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    from traincast.curves.status.status_line import facts_of, place_of

    parts: list[Any] = [f"[bold]{escape(PurePath(status.log.path).name)}[/]  {place_of(status)}"]
    if status.progress is not None:
        parts.append(bar_of(status.progress, min(width - 1, 60)))
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    rows = facts_of(status)
    for name, cell in rows:
        table.add_row(name, cell)
    told = [f"[bold red]! {escape(sentence)}[/]" for sentence in status.warnings]
    told += [f"[dim]{escape(sentence)}[/]" for sentence in status.remarks[:_MOST_REMARKS]]
    n_lines = sum(1 + len(sentence) // width for sentence in told)
    room = height - len(parts) - len(rows) - n_lines - 2
    return Group(*parts, table, *chart_of(status, min(width - 1, 100), min(max(room, _LEAST_ROWS), _MOST_ROWS)), *told)


def bar_of(progress: float, width: int) -> str:
    n_done = int(progress * width)
    return "█" * n_done + "░" * (width - n_done)


def chart_of(status: Status, width: int, height: int) -> list[str]:
    """The series in medians of neighbours, and the band of its forecast."""
    import numpy as np

    from traincast.cli.terminal_chart import Band, chart_lines

    series, curve = status.series, status.curve
    n_parts = min(len(series), _MOST_POINTS)
    x, y = (
        np.array([np.median(part) for part in np.array_split(values, n_parts)])
        for values in (series.steps, series.values)
    )
    band = None
    end = 0.0 if curve is None else status.total_steps or 2.0 * curve.last_step
    if curve is not None and status.divergence is None and end > curve.last_step:
        places = np.linspace(curve.last_step, end, _N_PLACES)
        low, high = curve.interval(places)
        band = Band(places, np.asarray(low), np.asarray(curve.predict(places)), np.asarray(high))
    target = None if status.arrival is None else status.arrival.target
    return chart_lines(x, y, band, target=target, width=width, height=height)
