"""The boundary between a user's training and a callback: nothing that goes wrong inside gets out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TextIO, TypeVar, cast

Tell = Callable[[str], None]
_LONGEST = 500  # characters of an error that are told
_Hook = TypeVar("_Hook", bound=Callable[..., None])


def hook(method: _Hook) -> _Hook:
    """A method that a framework calls while it trains. Whatever fails in it is told once, and the callback is off.

    Ctrl-C and `sys.exit` are the user's, and pass through.
    """

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> None:
        if getattr(self, "is_off", False):
            return
        failure = _failure_of(partial(method, self, *args, **kwargs))
        if failure is None:
            return
        self.is_off = True
        for tell in (getattr(self, "tell_user", print_line), print_line, _print_error):
            if _failure_of(partial(_tell_failure, tell, failure)) is None:
                return

    return cast(_Hook, guarded)


def print_line(line: str) -> None:
    """To stdout, past Python's buffer: what a full disk leaves in there would fail again when the training exits."""
    _write(sys.stdout, sys.__stdout__, line)


def _print_error(line: str) -> None:
    _write(sys.stderr, sys.__stderr__, line)


def _write(stream: TextIO, own: TextIO | None, line: str) -> None:
    stream.flush()
    if stream is own:
        os.write(stream.fileno(), f"{line}{os.linesep}".encode(stream.encoding, "replace"))
    else:  # of a notebook, or a test
        stream.write(f"{line}\n")
        stream.flush()


def _failure_of(act: Callable[[], None]) -> Exception | None:
    """What it raised, or None."""
    try:
        act()
    except Exception as error:  # noqa: BLE001  # the one boundary: no log is worth a training, whatever has gone wrong
        return error
    return None


def _tell_failure(tell: Tell, failure: Exception) -> None:
    words: list[str] = []
    _failure_of(lambda: words.append(" ".join(str(failure).split())[:_LONGEST]))  # an error may be without words
    kind = type(failure).__name__
    shown = f"{kind}: {words[0]}" if words and words[0] else kind
    tell(f"traincast: the callback has failed and is off; the training goes on without it ({shown}).")
