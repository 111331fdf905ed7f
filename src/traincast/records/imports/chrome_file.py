"""A file in Chrome's trace format, as torch.profiler writes it: the list of its events, or why it is none."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError, InputError
from traincast.report import parsing
from traincast.report.input_files import not_utf8, regular

_TAIL = 40  # characters of a broken file that are shown


def read_text(path: Path) -> str:
    """The text of a file, gzipped or not."""
    try:
        data = regular(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"There is no file '{path}'.") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}.") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except EOFError:
            raise FileFormatError(f"'{path}' is cut short: its gzip stream has no end. Copy it again.") from None
        except (OSError, zlib.error) as error:
            raise FileFormatError(f"'{path}' is not a whole gzip file: {error}.") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(
            f"'{path}' {not_utf8(data)}. A profiler trace is JSON, a table of measurements CSV."
        ) from None


def parse_json(text: str, path: Path) -> Any:
    """What the text holds; a file that was cut short is told apart from one that is no JSON."""
    try:
        return parsing.parse_json(text)
    except json.JSONDecodeError as error:
        body = text.rstrip()
        if not body:
            raise FileFormatError(f"'{path}' is empty.") from None
        if body.lstrip()[0] in "{[" and _is_cut(body, error):
            tail = " ".join(body[-_TAIL:].split())
            raise FileFormatError(
                f"'{path}' is cut short: after {len(text):,} characters it ends with '{tail}', inside its JSON. "
                "Write it again, and copy it only after the writing program has ended."
            ) from None
        raise FileFormatError(f"'{path}' is not JSON: {error.msg} at line {error.lineno:,}.") from None


def _is_cut(body: str, error: json.JSONDecodeError) -> bool:
    """Whether it broke at its very end: within a string, or within the last word or number."""
    if error.msg.startswith("Unterminated string"):
        return True
    return not error.msg.startswith("Extra data") and not re.search(r"[\s,:\[\]{}]", body[error.pos + 1 :])


def events_of(content: Any, path: Path) -> list[dict[str, Any]]:
    """The events of a trace: an object with 'traceEvents', or the list alone."""
    events = content.get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(events, list):
        raise FileFormatError(f"'{path}' is JSON, but not a profiler trace: it has no list of 'traceEvents'.")
    return [event for event in events if isinstance(event, dict)]


def is_trace_content(content: Any) -> bool:
    """Whether JSON is in Chrome's trace format."""
    if isinstance(content, dict):
        return "traceEvents" in content
    return isinstance(content, list) and bool(content) and isinstance(content[0], dict) and "ph" in content[0]
