"""Records as one flat table: a row each, in CSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from traincast.errors import InputError, MissingExtraError
from traincast.records.record import Record
from traincast.report.files import write_file

_FIRST = ("campaign", "kind", "created_s")
Row = dict[str, Any]


def export(rows: Iterable[tuple[str, Record]], path: str | Path) -> int:
    """Write campaigns and their records to `path`, whole or not at all, and count them."""
    path = Path(path)
    if path.suffix not in _CONTENTS:
        raise InputError(f"Records are exported to .csv or .parquet, and '{path}' is neither.")
    flat = [flat_row(campaign, record) for campaign, record in rows]
    columns = list(dict.fromkeys([*_FIRST, *(name for row in flat for name in row)]))
    # Settings, values and environments side by side, each in the order in which they first came.
    parts = ("task", "value", "environment")
    columns.sort(key=lambda name: parts.index(part) if (part := name.partition(".")[0]) in parts else -1)
    write_file(path, _CONTENTS[path.suffix](flat, columns))
    return len(flat)


def flat_row(campaign: str, record: Record) -> Row:
    """One level of names: task.batch, value.step_s, environment.versions.torch."""
    row: Row = {"campaign": campaign, "kind": record.kind, "created_s": record.created_s}
    for name, part in (
        ("task", record.task),
        ("value", record.values),
        ("environment", record.environment.to_dict()),
    ):
        _flatten(name, part, row)
    return row


def _flatten(name: str, value: Any, row: Row) -> None:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _flatten(f"{name}.{key}", entry, row)
    else:
        row[name] = json.dumps(value) if isinstance(value, list | tuple) else value


def csv_text(rows: Iterable[Row], columns: list[str]) -> str:
    """A header and a line a row; what a row does not have is empty."""
    page = io.StringIO()
    writer = csv.DictWriter(page, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return page.getvalue()


def _parquet(rows: list[Row], columns: list[str]) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("An export to .parquet", extra="parquet") from error
    table = pyarrow.table({name: _column(pyarrow, [row.get(name) for row in rows]) for name in columns})
    page = io.BytesIO()
    pyarrow.parquet.write_table(table, page)
    return page.getvalue()


def _column(pyarrow: Any, values: list[Any]) -> Any:
    """A column has one type. Whole and other numbers meet as numbers; numbers and text meet as text."""
    types = {type(value) for value in values if value is not None}
    if types == {int, float}:
        values = [None if value is None else float(value) for value in values]
    elif len(types) > 1:
        values = [None if value is None else str(value) for value in values]
    return pyarrow.array(values)


_CONTENTS: dict[str, Any] = {".csv": csv_text, ".parquet": _parquet}
