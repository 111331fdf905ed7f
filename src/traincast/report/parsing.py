"""JSON and TOML that somebody else wrote: what is no such text, too deep or too long raises the usual error."""

from __future__ import annotations

import json
from typing import Any

_TOO_DEEP = "It nests too deep"
_TOO_LONG = "It holds a whole number of thousands of digits"


def parse_json(text: str | bytes) -> Any:
    """What the text holds. Python's own reader lets a RecursionError and advice for programmers out as well."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise json.JSONDecodeError(_TOO_DEEP, "", 0) from None
    except ValueError:
        raise json.JSONDecodeError(_TOO_LONG, "", 0) from None


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
