"""CSV tables, fed piece by piece: the header says what is read, blocks under other headers are told apart."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from traincast.errors import FileFormatError, InputError, NothingLoggedError
from traincast.logs import names
from traincast.logs.blank_tables import header_of_mlflow, tabbed
from traincast.logs.csv_block import Block, is_number, is_used
from traincast.logs.fast_cells import numbers_of
from traincast.logs.meant import columns_meant
from traincast.logs.sheet import Facts, Sheet

_SEPARATORS = (",", "\t", ";")
_PIECE_BYTES = 1 << 19  # of which the arrays still fit the cache


class CsvReader:
    """Reads whole lines as they come. A second header begins a new block; the same header again is a resumed run."""

    def __init__(
        self, path: str, columns: Mapping[str, str] | None = None, n_bytes: int = 0, metric: str | None = None
    ) -> None:
        """`n_bytes` of lines are expected: room for as many is kept. `metric` is what is asked for."""
        self._path = path
        self._n_bytes = n_bytes
        self._roles, self._metric = dict(columns or {}), metric
        self._blocks: list[Block] = []
        self._title: str | None = None  # a line without cells above a header: "# validation"
        self._has_blanks: bool | None = None  # between its cells, and nothing else
        self._n_unreadable = 0

    def feed(self, data: bytes) -> None:
        """Some more whole lines; the last of a file may lack its end."""
        if b"\r" in data and b"\n" not in data:
            data = data.replace(b"\r", b"\n")
        if self._has_blanks is None:
            self._has_blanks = _is_parted_by_blanks(data)
        data, position = tabbed(data) if self._has_blanks else data, 0
        while not self._blocks and position < len(data):
            line, position = _next_line(data, position)
            self._open(line)
        while position < len(data):
            end = (
                data.rfind(b"\n", position, position + _PIECE_BYTES) + 1 or data.find(b"\n", position) + 1 or len(data)
            )
            self._piece(data[position:end])
            position = end

    def _piece(self, data: bytes) -> None:
        block = self._blocks[-1]
        read = None
        if not block.words and data.endswith(b"\n"):
            wanted = list(block.wanted.values())
            read = numbers_of(data, separator=block.separator.encode(), n_columns=len(block.header), wanted=wanted)
        if read is None:
            self._slowly(data)
            return
        if read and not block.columns:
            block.expect(1024 + int(1.1 * len(read[0]) * self._n_bytes / len(data)))
        for name, values in zip(block.wanted, read, strict=True):
            block.append(name, values)

    def _slowly(self, data: bytes) -> None:
        """Line by line: quoted cells, text, missing cells, blank lines, another header."""
        pending: list[list[str]] = []
        data = self._without_cut_line(data)
        for cells in self._cells(data):
            if not any(cell.strip() for cell in cells):
                continue
            while len(cells) > len(self._blocks[-1].header) and not cells[-1].strip():
                cells.pop()  # a separator at the end of the line
            if _is_header(cells, self._blocks[-1]):
                self._blocks[-1].add(pending)
                pending = []
                self._again(cells)
            elif len(cells) == 1 and len(self._blocks[-1].header) > 1:
                self._title = cells[0]
            elif not any(map(is_number, cells)) or self._blocks[-1].is_misplaced(cells):
                self._n_unreadable += 1
            else:
                if len(cells) < len(self._blocks[-1].header):
                    self._n_unreadable += 1  # a line cut short: what it has is used
                pending.append(cells)
        self._blocks[-1].add(pending)

    def _without_cut_line(self, data: bytes) -> bytes:
        """A last line with neither its end nor all its cells is still being written: its last number may be longer."""
        block, last = self._blocks[-1], data.rpartition(b"\n")[2]
        if not last.strip() or last.count(block.separator.encode()) + 1 >= len(block.header):
            return data
        self._n_unreadable += 1
        return data[: -len(last)]

    def _cells(self, data: bytes) -> Iterator[list[str]]:
        return self._split(data.decode("utf-8", "replace").splitlines(), self._blocks[-1].separator)

    def _split(self, lines: list[str], separator: str) -> Iterator[list[str]]:
        try:
            yield from csv.reader(lines, delimiter=separator, skipinitialspace=True)
        except csv.Error as error:
            raise FileFormatError(f"'{self._path}' is not a CSV table: {error}.") from None

    def _open(self, line: str) -> None:
        """The first header."""
        text = line.lstrip("\ufeff").strip(" \r\n")  # a header may begin with a tab: pandas does not name its index
        if (
            not text.strip()
            or text.lower().startswith("sep=")
            or (text.startswith("#") and not any(mark in text for mark in _SEPARATORS))
        ):
            self._title = text.strip() or self._title
            return
        text = text.removeprefix("#").strip(" ")
        separator = max(_SEPARATORS, key=text.count)
        cells = next(self._split([text], separator))
        if self._has_blanks and (header := header_of_mlflow(cells, self._path)):
            self._begin(header, separator)
            self._slowly(line.encode())
            return
        if all(is_number(cell) for cell in cells if cell.strip()):
            raise FileFormatError(
                f"'{self._path}' starts with numbers instead of a header: add a first line such as "
                "'epoch,step,loss,accuracy'."
            )
        self._begin([cell.strip() for cell in cells], separator)
        self._title = None

    def _begin(self, header: list[str], separator: str) -> None:
        called = _renamed(header, self._roles, self._path)
        asked = {*self._roles, *(columns_meant(self._metric, called) if self._metric else ())}
        runs = _places_of_runs(header, self._roles, self._path)
        split = names.split_of(self._title) if self._title else None
        self._blocks.append(Block(header, called, separator, asked=asked, runs=runs, split=split))

    def _again(self, cells: Sequence[str]) -> None:
        """Another header: the same one resumes the block that has it."""
        header = [cell.strip() for cell in cells]
        if header != self._blocks[-1].header or self._title is not None:
            self._begin(header, self._blocks[-1].separator)
        self._blocks[-1].resumed.append(self._blocks[-1].n_rows)
        self._title = None

    def resume(self) -> None:
        """What follows is of a run that was started again."""
        if self._blocks:
            self._blocks[-1].resumed.append(self._blocks[-1].n_rows)

    def sheets(self) -> list[Sheet]:
        if not self._blocks:
            raise NothingLoggedError(f"'{self._path}' has no lines to read.")
        sheets: list[Sheet] = []
        for block in self._blocks:
            sheet = block.sheet()
            if sheets and _continues(sheets[-1], sheet):
                sheets[-1] = _joined(sheets[-1], sheet)
            else:
                sheets.append(sheet)
        if not sum(sheet.n_rows for sheet in sheets):
            found = ", ".join(self._blocks[0].header)
            if self._n_unreadable:
                raise FileFormatError(f"'{self._path}' has a header ({found}) and no row with a number in it.")
            raise NothingLoggedError(f"'{self._path}' has a header ({found}) and no rows yet.")
        return sheets

    @property
    def facts(self) -> Facts:
        return Facts()

    @property
    def remarks(self) -> list[str]:
        if not self._n_unreadable:
            return []
        return [f"{self._n_unreadable} lines are truncated or not rows of the table."]


def _renamed(header: list[str], roles: Mapping[str, str], path: str) -> list[str]:
    """The header with what the user says about it; two columns of one name are told apart."""
    called = list(header)
    for role, given in roles.items():
        if role != "run":
            called[_position(header, given, role, path)] = role
    seen: dict[str, int] = defaultdict(int)
    for at, name in enumerate(called):
        seen[name] += 1
        if seen[name] > 1:
            called[at] = f"{name}.{seen[name]}"
    return called


def _places_of_runs(header: list[str], roles: Mapping[str, str], path: str) -> tuple[int, ...]:
    """Several columns may tell runs apart: 'n_gpus,batch'."""
    return tuple(_position(header, given, "run", path) for given in roles["run"].split(",")) if "run" in roles else ()


def _position(header: list[str], given: str, role: str, path: str) -> int:
    if given.strip() not in header:
        raise InputError(f"'{path}' has no column '{given.strip()}' for {role}: it has {', '.join(header)}.")
    return header.index(given.strip())


def _continues(before: Sheet, sheet: Sheet) -> bool:
    """Whether a block goes on with the same counter of steps: it has metrics that the one before had."""
    metrics = [{name for name in one.columns if names.metric_of(name)} for one in (before, sheet)]
    return before.split == sheet.split and bool(metrics[0] & metrics[1])


def _joined(before: Sheet, after: Sheet) -> Sheet:
    columns = {}
    for name in {**before.columns, **after.columns}:
        parts = [one.columns.get(name, np.full(one.n_rows, np.nan)) for one in (before, after)]
        columns[name] = np.concatenate(parts)
    words = {
        name: before.words.get(name, ("",) * before.n_rows) + after.words.get(name, ("",) * after.n_rows)
        for name in {**before.words, **after.words}
    }
    resumed = (*before.resumed, *(row + before.n_rows for row in after.resumed))
    unread = tuple(dict.fromkeys((*before.unread, *after.unread)))
    return Sheet(columns=columns, words=words, split=before.split, resumed=resumed, unread=unread)


def _is_parted_by_blanks(data: bytes) -> bool:
    """By the first line that is no title."""
    lines = (line for line in data.decode("utf-8", "replace").lstrip("\ufeff").splitlines() if line.strip(" #"))
    first = next((line for line in lines if not line.startswith("#")), "")
    return not any(mark in first for mark in _SEPARATORS) and len(first.split()) > 1


def _next_line(data: bytes, position: int) -> tuple[str, int]:
    end = data.find(b"\n", position) + 1 or len(data)
    return data[position:end].decode("utf-8", "replace"), end


def _is_header(cells: Sequence[str], block: Block) -> bool:
    """Names and no number, most of which we know or have read before."""
    named = [cell.strip() for cell in cells if cell.strip()]
    if len(named) < 2 or any(map(is_number, named)):
        return False
    return sum(name in block.header or is_used(name) for name in named) * 2 > len(named)
