"""A log as one JSON document: a list of objects, or lists of numbers by name, as the history of Keras is saved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from traincast.errors import FileFormatError, NothingLoggedError
from traincast.logs.json_rows import JsonLinesReader


def is_history(document: object) -> bool:
    """Whether it is lists of numbers by name, all of one length."""
    if not isinstance(document, dict) or not document:
        return False
    lists = list(document.values())
    return all(isinstance(one, list) and one and isinstance(one[0], (int, float)) for one in lists) and (
        len({len(one) for one in lists}) == 1
    )


def document_reader(data: bytes, path: str, columns: Mapping[str, str] | None) -> JsonLinesReader:
    """The rows of a document. Those of a history are its epochs."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NothingLoggedError(f"'{path}' is not a complete JSON file: {error}.") from None
    if is_history(document):
        rows: list[Any] = [dict(zip(document, row, strict=True)) for row in zip(*document.values(), strict=True)]
        if not {"epoch", "step"} & document.keys():
            rows = [{"epoch": epoch, **row} for epoch, row in enumerate(rows, 1)]
    elif isinstance(document, list):
        rows = document
    else:
        raise FileFormatError(f"'{path}' is neither a list of JSON objects nor lists of numbers by name.")
    reader = JsonLinesReader(path, columns)
    for row in rows:
        reader.add(row)
    return reader
