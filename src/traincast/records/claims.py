"""Who is doing which task now, so that several runners on one store share the work.

A claim ends when its task is stored, or when its process is gone. On the same machine that is seen at once, and the
claim of a process that lives holds however long its task takes. Of another machine nothing is known: there a claim ends
with its lease. One that ends too early costs a task done twice; it is still stored once.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

LEASE_S = 15 * 60.0
_UNKNOWN = "-"


def this_process() -> str:
    """A name that no other process has, and none will have later."""
    return _owner(os.getpid(), _started(os.getpid()))


def is_alive(owner: str) -> bool | None:
    """Whether that process still runs; None where that is not known, as of another machine."""
    host, pid, started = owner.rsplit(" ", 2)
    if host != socket.gethostname() or os.name != "posix":  # elsewhere signal 0 is a real one
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it lives, under another user
        pass
    if started == _UNKNOWN:  # some process has that number
        return None
    return _owner(int(pid), _started(int(pid))) == owner


def claim(connection: Any, campaign: str, key: str, *, now_s: float | None = None) -> bool:
    """Inside a transaction: whether the task is ours to do now."""
    now_s = time.time() if now_s is None else now_s
    held = connection.execute(
        "SELECT owner, expires_s FROM claims WHERE campaign = ? AND key = ?", (campaign, key)
    ).fetchone()
    if held is not None and held[0] != this_process():
        owner, expires_s = held
        alive = is_alive(owner)
        if expires_s > now_s if alive is None else alive:
            return False
    connection.execute(
        "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)", (campaign, key, this_process(), now_s + LEASE_S)
    )
    return True


def release(connection: Any, campaign: str, key: str) -> None:
    """Inside a transaction: the task is free again, if it was ours."""
    connection.execute(
        "DELETE FROM claims WHERE campaign = ? AND key = ? AND owner = ?", (campaign, key, this_process())
    )


def _owner(pid: int, started: str) -> str:
    return f"{socket.gethostname()} {pid} {started}"


def _started(pid: int) -> str:
    """Clock ticks from boot to the start of the process: the next process of the same number has others."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # gone in the meantime, or no Linux: the number alone must do
        return _UNKNOWN
    return "ended" if state == "Z" else fields[18]  # a zombie has ended; its parent has not asked yet
