"""Work that may take all memory is done in a process of its own, which then dies alone."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traincast.child_process import end, start_module

_LONGEST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a child answered, or how it ended without an answer."""

    answer: Mapping[str, Any] | None
    died_of_memory: bool = False
    last_words: str = ""


def run_child(module: str, request: Mapping[str, Any]) -> Outcome:
    """Runs `python -m module REQUEST ANSWER_FILE`, with the request as JSON.

    It has a session of its own: Ctrl-C reaches only this process, which then ends the child. The module calls
    `end_with_parent` first: its standard input is a pipe that ends with us, by whatever signal.
    """
    with tempfile.TemporaryDirectory(prefix="traincast-") as folder:
        answer, errors = Path(folder, "answer.json"), Path(folder, "errors.txt")
        with errors.open("wb") as stream:
            child = start_module(
                *(module, json.dumps(request), str(answer)),
                stdout=stream,  # a user's own prints must not get into what we print
                stderr=subprocess.STDOUT,
            )
            try:
                child.wait()
            finally:
                end(child)
        return outcome_of(child.returncode, _read(answer), errors.read_text(errors="replace"))


def outcome_of(code: int, answer: Mapping[str, Any] | None, errors: str) -> Outcome:
    """SIGKILL is the kernel's word for out of memory, and a library that is refused memory mostly aborts."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    was_killed = code == -signal.SIGKILL
    was_refused = code != 0 and any(words in errors for words in ("bad_alloc", "Cannot allocate memory", "MemoryError"))
    words = lines[-1][:_LONGEST] if lines else "without output"
    how = f"ended with code {code}" if code >= 0 else f"was ended by {_signal_name(-code)}"
    return Outcome(
        answer=answer if code == 0 else None,
        died_of_memory=was_killed or was_refused,
        last_words=f"the process {how} ({words})",
    )


def _read(path: Path) -> Mapping[str, Any] | None:
    with contextlib.suppress(OSError, ValueError):  # no answer, or half of one: the exit code tells
        answer: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return answer
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
