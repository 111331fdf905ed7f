"""A log that grows: each look at it reads only what was appended."""

from __future__ import annotations

import os
from pathlib import Path

from traincast.convergence.logs.event_files import event_paths
from traincast.convergence.logs.formats import LINE_FORMATS, format_of, is_packed, is_undecided
from traincast.convergence.logs.log import Log
from traincast.convergence.logs.reading import LineReader, Reading, log_in, read_runs
from traincast.errors import FileFormatError, InputError

_CHUNK_BYTES = 1 << 22


class LogFollower:
    """Follows one log. `poll` gives the log as it is now, or None if nothing has changed.

    A file that was truncated or replaced is read from its start, after what was read before: its rows supersede those
    that they overlap. A file that is not there yet, is empty, or has only a header is waited for.
    """

    def __init__(self, path: str | Path, reading: Reading | None = None, *, run: str | None = None) -> None:
        self._path = Path(path)
        self._reading = reading or Reading()
        self._run = run
        self._reader: LineReader | None = None
        self._format: str | None = None
        self._offset = 0
        self._kept = b""  # a line without its end
        self._inode: int | None = None
        self._seen: object = None
        self._n_anew = 0

    def poll(self) -> Log | None:
        """Reads on. What cannot be read at all raises, as `read_log` does."""
        try:
            if self._format is None:
                if self._reading.format is None and is_undecided(self._path):
                    return None
                self._format = self._reading.format or format_of(self._path, self._reading.pattern)
            if self._format in LINE_FORMATS and not is_packed(self._path):
                return self._poll_lines(self._format)
            return self._poll_whole()
        except FileNotFoundError:
            return None
        except InputError:
            if not self._path.exists():
                return None  # not yet, or not just now: a log that is rotated is away for a moment
            raise
        except FileFormatError:
            if self._is_only_begun():
                return None
            raise

    def _is_only_begun(self) -> bool:
        """Nothing, or no whole row yet."""
        return self._path.is_file() and (self._path.stat().st_size < 1024 or self._format == "trainer_state")

    def _poll_lines(self, format: str) -> Log | None:
        with self._path.open("rb") as file:
            status = os.fstat(file.fileno())
            if self._inode is not None and (status.st_ino != self._inode or status.st_size < self._offset):
                self._begin_anew()
            self._inode = status.st_ino
            if self._reader is None:
                self._reader = self._reading.reader(str(self._path), format)
            file.seek(self._offset)
            has_grown = False
            while chunk := file.read(_CHUNK_BYTES):
                self._offset += len(chunk)
                has_grown |= self._feed(self._reader, chunk)
        if not has_grown:
            return None
        told = (
            [f"The file was truncated or replaced {self._n_anew} times while it was watched."] if self._n_anew else []
        )
        return log_in(self._reader, str(self._path), format, self._reading, self._run, told)

    def _feed(self, reader: LineReader, chunk: bytes) -> bool:
        """Whether there was a whole line."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._kept += chunk
            return False
        reader.feed(self._kept + chunk[:end])
        self._kept = chunk[end:]
        return True

    def _begin_anew(self) -> None:
        self._offset, self._kept = 0, b""
        self._n_anew += 1
        if self._reader is not None:
            self._reader.resume()

    def _poll_whole(self) -> Log | None:
        """Files that are written as a whole are read again when they change."""
        paths = event_paths(self._path) if self._path.is_dir() else [self._path]
        seen = [(str(path), status.st_mtime_ns, status.st_size) for path in paths for status in [path.stat()]]
        if seen == self._seen:
            return None
        runs = read_runs(self._path, self._reading)
        self._seen = seen
        return runs.chosen(self._run)
