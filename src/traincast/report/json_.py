"""JSON: raw values in base units, keyed by names that carry the unit."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traincast.report.document import Document
    from traincast.report.table import Table


def to_dict(document: Document) -> dict[str, Any]:
    """The tables and remarks of a document; charts draw what the tables hold."""
    return {
        "title": document.title,
        "subtitle": document.subtitle,
        "tables": [_table(table) for table in document.tables],
        "notes": [*filter(None, [document.verdict]), *document.remarks, *document.assumptions],
    }


def to_json(data: Any) -> str:
    """Strict JSON text (no NaN) of mappings, lists, dataclasses, numbers and numpy arrays, however nested."""
    return json.dumps(plain(data), indent=2, allow_nan=False)


def plain(value: Any) -> Any:
    """The same value in what JSON knows; a number that is not finite becomes null."""
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "tolist"):  # numpy arrays and scalars, without importing numpy
        return plain(value.tolist())
    raise TypeError(f"JSON cannot represent {type(value).__name__}")


def _table(table: Table) -> dict[str, Any]:
    keys = [column.key for column in table.columns]
    return {
        "title": table.title,
        "rows": [plain(dict(zip(keys, row, strict=True))) for row in table.rows],
        "notes": list(table.notes),
    }
