"""JSON and TOML that somebody else wrote: what is no such text, too deep or too long raises the usual error."""

from __future__ import annotations

import json
from typing import Any

_TOO_DEEP = "it is nested too deeply"
_MOST_LEVELS = 100  # what is deeper can be read, but not written again by functions that call themselves
_TOO_LONG = "it has a whole number of thousands of digits"


def parse_json(text: str | bytes) -> Any:
    """What the text holds. Python's own reader lets a RecursionError and advice for programmers out as well."""
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise json.JSONDecodeError(_TOO_DEEP, "", 0) from None
    except ValueError:
        raise json.JSONDecodeError(_TOO_LONG, "", 0) from None
    if _is_too_deep(found):
        raise json.JSONDecodeError(_TOO_DEEP, "", 0)
    return found


def _is_too_deep(found: Any) -> bool:
    """Level by level, so that it is no deeper itself."""
    level = [found]
    for _ in range(_MOST_LEVELS):
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def parse_toml(text: str) -> dict[str, Any]:
    """The same of TOML."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from None
    except ValueError:
        raise tomllib.TOMLDecodeError(_TOO_LONG) from None
