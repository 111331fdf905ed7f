"""A log that grows: each look at it reads only what was appended."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from traincast.errors import FileFormatError, InputError, NothingLoggedError
from traincast.logs.counting import how_often
from traincast.logs.event_files import EventFiles, event_paths
from traincast.logs.formats import LINE_FORMATS, is_undecided
from traincast.logs.log import Log
from traincast.logs.opening import is_packed
from traincast.logs.reading import LineReader, Reading, read_runs, runs_of
from traincast.logs.whole_lines import WholeLines
from traincast.report.input_files import regular

_CHUNK_BYTES = 1 << 22
_MARK_BYTES = 1024  # of the start, and of what was read last: by these a file is known again


class LogFollower:
    """Follows one log. `poll` gives the log as it is now, or None if nothing has changed or nothing is there yet.

    A file that was truncated, replaced or written anew in its place (as Lightning does when a metric is new) is read
    from its start. Where it begins as early as before it is all there is; else its rows come after those that were read
    before, and supersede what they overlap. `waits_for` says what is missing while there is no row.
    """

    def __init__(self, path: str | Path, reading: Reading | None = None, *, run: str | None = None) -> None:
        self._path = Path(path)
        self._reading = reading or Reading()
        self._run = run
        self._reader: LineReader | None = None
        self._format: str | None = None
        self._offset = 0
        self._cutter = WholeLines()
        self._start, self._last = b"", b""  # the first bytes, and the last that were read
        self._first_step: float | None = None
        self._seen: object = None
        self._events: EventFiles = {}
        self._n_anew = 0
        self._told: list[str] = []  # what was left out of files before this one
        self._in_percent: frozenset[str] = frozenset()  # columns that ever were
        self._fractions: frozenset[str] = frozenset()  # columns that were taken for other than that
        self.waits_for: str | None = None

    @property
    def written_at_s(self) -> float | None:
        """When the log was last written, in seconds since 1970; None where there is none."""
        try:
            paths = event_paths(self._path) if self._path.is_dir() else [self._path]
            return max(path.stat().st_mtime for path in paths)
        except (OSError, InputError):
            return None

    def poll(self) -> Log | None:
        """Reads on. What cannot be a log raises, as `read_log` does; one that has only begun is waited for."""
        self.waits_for = None
        try:
            if self._format is None:
                if self._reading.format is None and is_undecided(self._path):
                    return None
                self._format = self._reading.format_for(self._path)
            if self._format in LINE_FORMATS and not is_packed(self._path):
                return self._poll_lines(self._format)
            return self._poll_whole()
        except FileNotFoundError:
            return None
        except OSError as error:  # a file that a folder replaced, or that may not be read any more
            raise InputError(f"'{self._path}' cannot be read: {error.strerror or error}.") from None
        except InputError:
            if not self._path.exists():
                return None  # not yet, or not just now: a log that is rotated is away for a moment
            raise
        except FileFormatError as error:
            if not isinstance(error, NothingLoggedError) and not self._is_only_begun():
                raise
            self.waits_for = str(error)
            if self._first_step is None and self._format is not None:
                self._forget()  # the first lines may not have shown what format it is
            return None

    def _forget(self) -> None:
        self._format, self._reader = None, None
        self._offset, self._start, self._last = 0, b"", b""
        self._cutter = WholeLines()

    def _is_only_begun(self) -> bool:
        """Nothing, or no whole row yet."""
        return self._path.is_file() and self._path.stat().st_size < _MARK_BYTES

    def _poll_lines(self, format: str) -> Log | None:
        with regular(self._path).open("rb") as file:
            if self._is_another(file):
                if self._first_step is None:  # nothing was found in what was there before: it may be of another format
                    self._forget()
                    return None
                self._begin_anew(file, format)
            if self._reader is None:
                self._reader = self._reading.reader(str(self._path), format)
            has_grown = self._read_on(file, self._reader)
        if not has_grown:
            return None
        runs = runs_of(self._reader, str(self._path), format, self._reading, self._in_percent)
        log = self._seen_before(runs.chosen(self._run))
        self._first_step = _first_step(log)
        return log

    def _seen_before(self, log: Log) -> Log:
        """The log with what only those know who saw it grow."""
        told = [*self._told, *self._cutter.remarks]
        if self._n_anew:
            told.append(f"The file was truncated or replaced {how_often(self._n_anew)} while it was watched.")
        self._in_percent |= {one.name for one in log.series if one.in_percent}
        self._fractions |= {one.name for one in log.series if not one.in_percent}
        told += [
            f"'{name}' has exceeded 1, so it is in percent; until then it was read as a fraction."
            for name in sorted(self._in_percent & self._fractions)
        ]
        return replace(log, remarks=(*log.remarks, *told))

    def _is_another(self, file: BinaryIO) -> bool:
        """Whether what was read is not in the file any more. A copy with more rows at its end is the same file."""
        if os.fstat(file.fileno()).st_size < self._offset:
            return True
        return _bytes_at(file, 0, len(self._start)) != self._start or (
            _bytes_at(file, self._offset - len(self._last), len(self._last)) != self._last
        )

    def _begin_anew(self, file: BinaryIO, format: str) -> None:
        self._offset, self._start, self._last = 0, b"", b""
        self._told += self._cutter.remarks
        self._cutter = WholeLines()
        self._n_anew += 1
        if self._first_step is not None and self._begins_as_early(file, format):
            self._reader = None
        elif self._reader is not None:
            self._reader.resume()

    def _begins_as_early(self, file: BinaryIO, format: str) -> bool:
        """Whether the file as it is now holds the run from where it was known before."""
        reader = self._reading.reader(str(self._path), format)
        file.seek(0)
        try:
            reader.feed(WholeLines().lines(file.read(_CHUNK_BYTES)))
            log = runs_of(reader, str(self._path), format, self._reading, self._in_percent).chosen(self._run)
        except (FileFormatError, InputError):
            return False
        return _first_step(log) <= (self._first_step or 0.0)

    def _read_on(self, file: BinaryIO, reader: LineReader) -> bool:
        """Whether there was a whole line."""
        file.seek(self._offset)
        has_grown = False
        while chunk := file.read(_CHUNK_BYTES):
            self._start += chunk[: max(0, _MARK_BYTES - self._offset)]
            self._offset += len(chunk)
            self._last = (self._last + chunk)[-_MARK_BYTES:]
            if lines := self._cutter.lines(chunk):
                reader.feed(lines)
                has_grown = True
        return has_grown

    def _poll_whole(self) -> Log | None:
        """Files that are written as a whole are read again when they change."""
        paths = event_paths(self._path) if self._path.is_dir() else [self._path]
        seen = [(str(path), status.st_mtime_ns, status.st_size) for path in paths for status in [path.stat()]]
        if seen == self._seen:
            return None
        runs = read_runs(self._path, self._reading, known=self._events, in_percent=self._in_percent)
        self._seen = seen
        return self._seen_before(runs.chosen(self._run))


def _bytes_at(file: BinaryIO, offset: int, count: int) -> bytes:
    file.seek(offset)
    return file.read(count)


def _first_step(log: Log) -> float:
    return min((float(one.steps[0]) for one in log.series if len(one)), default=float("inf"))
