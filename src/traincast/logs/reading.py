"""Which format a file has, and its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from traincast.errors import InputError, NothingLoggedError, close_names
from traincast.logs import names
from traincast.logs.building import Origin, log_of
from traincast.logs.csv_rows import CsvReader
from traincast.logs.event_files import EventFiles, event_paths
from traincast.logs.event_rows import event_sheets
from traincast.logs.formats import FORMATS, format_of, text_format_of
from traincast.logs.json_document import document_reader
from traincast.logs.json_rows import JsonLinesReader, trainer_state
from traincast.logs.log import Log
from traincast.logs.mlperf_rows import MlperfReader
from traincast.logs.opening import open_log, undamaged
from traincast.logs.sheet import Facts, Sheet
from traincast.logs.text_rows import TextReader
from traincast.logs.wandb_panel import by_panel_run
from traincast.logs.whole_lines import WholeLines
from traincast.report.input_files import regular

_CHUNK_BYTES = 1 << 22  # malloc keeps freed pieces of less for the next ones
_WITH_COLUMNS = ("csv", "jsonl", "json")
Progress = Callable[[float], None]


class LineReader(Protocol):
    """What every format of lines offers: lines go in as they come, sheets come out at any time."""

    def feed(self, data: bytes) -> None: ...
    def resume(self) -> None: ...
    def sheets(self) -> list[Sheet]: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def remarks(self) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a log is to be read: what the user says about it."""

    format: str | None = None
    pattern: str | None = None
    columns: Mapping[str, str] | None = None
    steps_per_epoch: float | None = None
    metric: str | None = None  # asked for: a column of this name is read as one, whatever it is

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise InputError(f"There is no log format '{self.format}': choose {', '.join(FORMATS)}.")
        if self.steps_per_epoch is not None and not 0 < self.steps_per_epoch < np.inf:
            raise InputError(f"steps_per_epoch must be above 0, not {self.steps_per_epoch:g}.")
        if self.pattern is not None and self.format not in (None, "text"):
            raise InputError(f"A pattern is for plain text, not {self.format}.")
        if self.pattern is not None:
            TextReader("", self.pattern)  # refuses what is no pattern, before there is a log

    def reader(self, path: str, format: str, n_bytes: int = 0) -> LineReader:
        """`n_bytes` is how long the text is, where that is known."""
        if format == "csv":
            return CsvReader(path, self.columns, n_bytes, self.metric)
        if format == "mlperf":
            return MlperfReader(path)
        if format == "text":
            return TextReader(path, self.pattern, self.metric)
        return JsonLinesReader(path, self.columns)

    def format_for(self, path: Path) -> str:
        """What is said of it, or what is in it; a history of W&B is a table or has objects in its lines."""
        if self.format is None:
            format = format_of(path, self.pattern, frozenset((self.columns or {}).values()))
        elif self.format == "wandb":
            with open_log(path) as file, undamaged(path):
                format = "jsonl" if text_format_of(file.read(_CHUNK_BYTES)) == "jsonl" else "csv"
        else:
            format = self.format
        if self.columns and format not in _WITH_COLUMNS:
            raise InputError(
                f"columns= says what columns of a table or keys of JSON lines mean, and '{path}' is {format}: use "
                "named groups of a pattern instead, or leave it out."
            )
        return format

    def origin(self, path: str, format: str, facts: Facts, remarks: list[str]) -> Origin:
        return Origin(
            path=path,
            format=format,
            facts=facts,
            remarks=tuple(remarks),
            steps_per_epoch=self.steps_per_epoch,
            metric=self.metric,
            named=frozenset(self.columns or ()),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Runs:
    """The runs in a file, by name; a file of one run has it under an empty name."""

    sheets: Mapping[str, list[Sheet]]
    origin: Origin

    def log(self, run: str) -> Log:
        return log_of(self.sheets[run], self.origin)

    def chosen(self, run: str | None) -> Log:
        """The run that is asked for, or the only one."""
        path, known = self.origin.path, list(self.sheets)
        if run is not None and run not in known:
            raise InputError(f"'{path}' has no run '{run}'.{close_names(run, known)} {_told(known)}")
        if run is None and len(known) > 1:
            raise InputError(f"'{path}' has {len(known)} runs: choose one. {_told(known)}")
        return self.log(known[0] if run is None else run)


def read_runs(
    path: str | Path,
    reading: Reading,
    on_progress: Progress | None = None,
    known: EventFiles | None = None,
    in_percent: frozenset[str] = frozenset(),
) -> Runs:
    """Everything in a file, before it is made into logs; of event files that are `known`, what is new is read.

    `in_percent` are the columns that were when less of it was read.
    """
    given = Path(path)
    format = reading.format_for(given)
    sheets, facts, remarks = _sheets(given, format, reading, on_progress, {} if known is None else known)
    shown = "wandb" if format in ("csv", "jsonl") and _is_from_wandb(sheets) else format
    return runs_in(sheets, replace(reading.origin(str(path), shown, facts, remarks), in_percent=in_percent))


def runs_of(reader: LineReader, path: str, format: str, reading: Reading, in_percent: frozenset[str]) -> Runs:
    """What a reader has been fed so far."""
    sheets = reader.sheets()
    shown = "wandb" if format in ("csv", "jsonl") and _is_from_wandb(sheets) else format
    origin = reading.origin(path, shown, reader.facts, reader.remarks)
    return runs_in(sheets, replace(origin, in_percent=in_percent))


def runs_in(sheets: list[Sheet], origin: Origin) -> Runs:
    """Sheets by the run that a column names."""
    sheets = [one for sheet in sheets for one in by_panel_run(sheet)]
    column = next((name for sheet in sheets if (name := names.first_of(sheet.words, names.RUN_NAMES))), None)
    if column is None:
        return Runs({"": sheets}, origin)
    found: dict[str, list[Sheet]] = {}
    for sheet in sheets:
        words = np.array(sheet.words.get(column, ("",) * sheet.n_rows), object)
        for run in dict.fromkeys(words):
            found.setdefault(str(run), []).append(sheet.rows(words == run))
    if not found:
        raise NothingLoggedError(f"'{origin.path}' has columns for its runs and no value in them yet.")
    return Runs(found, origin)


def _sheets(
    path: Path, format: str, reading: Reading, on_progress: Progress | None, known: EventFiles
) -> tuple[list[Sheet], Facts, list[str]]:
    try:
        regular(path)
    except FileNotFoundError:
        raise InputError(f"There is no log '{path}'.") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from None
    if format == "tensorboard":
        sheets, remarks = event_sheets(event_paths(path) if path.is_dir() else [path], path, known)
        return sheets, Facts(), remarks
    with undamaged(path):
        if format == "trainer_state":
            with open_log(path) as file:
                return trainer_state(file.read(), str(path))
        if format == "json":
            with open_log(path) as file:
                read = document_reader(file.read(), str(path), reading.columns)
            return read.sheets(), read.facts, read.remarks
        reader = reading.reader(str(path), format, path.stat().st_size)
        cutter = WholeLines()
        for lines in _pieces(path, cutter, on_progress):
            reader.feed(lines)
    return reader.sheets(), reader.facts, [*reader.remarks, *cutter.remarks]


def _pieces(path: Path, cutter: WholeLines, on_progress: Progress | None) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time; the last line also without its end."""
    n_bytes = max(1, path.stat().st_size)
    with open_log(path) as file:
        raw = getattr(file, "fileobj", None) or file
        while chunk := file.read(_CHUNK_BYTES):
            if lines := cutter.lines(chunk):
                yield lines
            if on_progress is not None:
                on_progress(min(1.0, raw.tell() / n_bytes))
        if cutter.last.strip():
            yield cutter.last


def _is_from_wandb(sheets: list[Sheet]) -> bool:
    own = {"_step", "_runtime", "_timestamp"}
    return any(own & set(sheet.columns) or any(map(names.panel_of, sheet.columns)) for sheet in sheets)


def _told(runs: list[str]) -> str:
    shown = ", ".join(run or "(no name)" for run in runs[:5])
    return f"It has {shown}{' and others' if len(runs) > 5 else ''}."
