"""A plain table of measured steps: one row a step, columns named with their units.

`model`, `batch_size` and one of `step_s`, `step_ms`, `step_us`, `samples_per_s` are needed. `optimizer`, `precision`
and `device` say how it was run. Seconds of phases (`forward_s`, `backward_ms`, `data_s` ...) are compared too. All
other columns are kept: with a unit in the name as a value, without as part of what was asked.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path

from traincast.errors import FileFormatError, close_names
from traincast.records.environment import Environment
from traincast.records.identity import STEP, fingerprint
from traincast.records.record import Record, Scalar, task_key

_TIMES = ("step_s", "step_ms", "step_us", "samples_per_s")
_SECONDS = {"_ms": 1e-3, "_us": 1e-6, "_s": 1.0}
_VALUES = ("_per_s", "_s", "_ms", "_us", "_bytes", "_fraction", "_usd")
_MOST_DIGITS = 18
_NEEDED = ("model", "batch_size")


def records_of_csv(text: str, path: Path, *, created_s: float) -> list[Record]:
    """One record a row."""
    records: list[Record] = []
    seen: set[str] = set()
    for line, row in _rows(text, path):
        task: dict[str, Scalar] = {"source": path.name}
        values: dict[str, Scalar] = {}
        for column, cell in row.items():
            if column.endswith(_VALUES):
                name, value = _in_seconds(column, _number(cell, column, path, line))
                values[name] = value
            else:
                task[column] = _scalar(cell)
        batch_size = _batch_size(row["batch_size"], path, line)
        values["step_s"] = _step_s(values, batch_size, path, line)
        values["source"] = f"line {line} of {path.name}"
        task |= {"model": row["model"], "batch_size": batch_size}
        task["sha256"] = fingerprint(row)  # a corrected row is not the one that it corrects
        n_before = 1
        while task_key(STEP, task) in seen:  # the same run again is a measurement of its own
            n_before += 1
            task["repeat"] = n_before
        seen.add(task_key(STEP, task))
        environment = unknown_environment(str(row.get("device", "unknown")))
        records.append(Record(kind=STEP, task=task, values=values, environment=environment, created_s=created_s))
    if not records:
        raise FileFormatError(f"'{path}' has a header but no rows.")
    return records


def unknown_environment(device: str, *, host: str = "unknown") -> Environment:
    """Of a measurement that somebody else made."""
    return Environment(device=device, device_kind="unknown", host=host, n_threads=0, n_cores=0, versions={}, clocks={})


def _rows(text: str, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows with their line numbers, without empty cells; the header is checked first."""
    first = text.lstrip("\ufeff").split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        _check_header(header, path)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise FileFormatError(
                    f"'{path}', line {reader.line_num}: {len(cells)} cells for the {len(header)} columns of the header."
                )
            row = {name: cell.strip() for name, cell in zip(header, cells, strict=True) if cell.strip()}
            for name in _NEEDED:
                if name not in row:
                    raise FileFormatError(f"'{path}', line {reader.line_num}: {name} is empty.")
            yield reader.line_num, row
    except csv.Error as error:
        raise FileFormatError(f"'{path}', line {reader.line_num}, is not CSV: {error}.") from None


def _check_header(header: list[str], path: Path) -> None:
    for name in _NEEDED:
        if name not in header:
            raise FileFormatError(
                f"'{path}' has no column '{name}'.{close_names(name, header)} A table of measured steps has model, "
                f"batch_size and one of {', '.join(_TIMES)}."
            )
    if not set(_TIMES) & set(header):
        raise FileFormatError(
            f"'{path}' has no time of a step: name a column {', '.join(_TIMES[:-1])} or {_TIMES[-1]}."
        )
    doubled = sorted({name for name in header if header.count(name) > 1})
    if doubled:
        raise FileFormatError(f"'{path}' has two columns '{doubled[0]}'.")


def _step_s(values: dict[str, Scalar], batch_size: int, path: Path, line: int) -> float:
    step_s, rate = values.get("step_s"), values.get("samples_per_s")
    if step_s is None and isinstance(rate, float) and rate > 0:
        step_s = batch_size / rate
    if not isinstance(step_s, float) or step_s <= 0:
        raise FileFormatError(f"'{path}', line {line}: the row has no time of a step above 0 ({', '.join(_TIMES)}).")
    return step_s


def _in_seconds(column: str, value: float) -> tuple[str, float]:
    """'step_ms' and 12.0 are 'step_s' and 0.012; other units stay."""
    for suffix, size in _SECONDS.items():
        if column.endswith(suffix) and not column.endswith("_per_s"):
            return f"{column.removesuffix(suffix)}_s", value * size
    return column, value


def _number(cell: str, column: str, path: Path, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise FileFormatError(f"'{path}', line {line}: {column} '{cell}' is not a number of 0 or more.")
    return value


def _batch_size(cell: str, path: Path, line: int) -> int:
    if not cell.isdecimal() or len(cell) > _MOST_DIGITS or int(cell) < 1:
        shown = cell[:_MOST_DIGITS] + "..." * (len(cell) > _MOST_DIGITS)
        raise FileFormatError(f"'{path}', line {line}: batch_size '{shown}' is not a whole number from 1 to 10^18.")
    return int(cell)


def _scalar(cell: str) -> Scalar:
    """A number where it is one, so that 8 and '8' of another file are the same; yes or no where it says so."""
    if cell.lower() in ("true", "false"):
        return cell.lower() == "true"
    for kind in (int, float):
        try:
            value = kind(cell)
        except ValueError:
            continue
        return value if math.isfinite(value) else cell
    return cell
