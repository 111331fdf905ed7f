"""Pieces of a file as whole lines, in bounded memory: also holes of NUL bytes, and a line without an end."""

from __future__ import annotations

_LONGEST_BYTES = 1 << 23  # of a line: even a row with a histogram of each layer is shorter


class WholeLines:
    """Pieces go in as they are read, whole lines come out; what was left out is counted."""

    def __init__(self) -> None:
        self._kept = b""  # a line without its end
        self._is_too_long = False  # the line that is being read: its end is waited for
        self._n_nul = self._n_too_long = 0

    def lines(self, piece: bytes) -> bytes:
        """Those that end in this piece, without the NUL bytes that a crash or a full disk leaves."""
        filled = piece.translate(None, b"\0")  # faster than counting where all are
        self._n_nul += len(piece) - len(filled)
        start = 0
        if self._is_too_long:
            start = filled.find(b"\n") + 1
            self._is_too_long = not start
            if self._is_too_long:
                return b""
        end = max(filled.rfind(b"\n") + 1, start)
        whole = self._kept + filled[start:end] if end > start else b""
        self._kept = filled[end:] if end > start else self._kept + filled[start:]
        if len(self._kept) > _LONGEST_BYTES:
            whole += self._without_the_rest()
        return whole

    def _without_the_rest(self) -> bytes:
        """Progress bars, and tables of old programs, end their lines by a carriage return: then these are whole."""
        end = self._kept.rfind(b"\r") + 1
        whole, self._kept = self._kept[:end], self._kept[end:]
        if len(self._kept) > _LONGEST_BYTES:
            self._kept, self._is_too_long = b"", True
            self._n_too_long += 1
        return whole

    @property
    def last(self) -> bytes:
        """A line that has no end yet."""
        return self._kept

    @property
    def remarks(self) -> list[str]:
        found = []
        if self._n_nul:
            found.append(f"{self._n_nul} NUL bytes between its lines, as after a crash, are left out.")
        if self._n_too_long:
            lines = "A line is" if self._n_too_long == 1 else f"{self._n_too_long:,} lines are"
            found.append(f"{lines} longer than {_LONGEST_BYTES >> 20} MiB and left out.")
        return found
