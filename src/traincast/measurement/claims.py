"""Who is doing which task now, so that several runners on one store share the work.

A claim ends when its task is stored, when its process is gone (seen at once on the same machine), or after its lease.
A claim that ends too early costs a task done twice; it is still stored once.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

LEASE_S = 15 * 60.0


def this_process() -> str:
    """A name that no other process has, and none will have later."""
    return _owner(os.getpid(), _started(os.getpid()))


def is_gone(owner: str) -> bool:
    """Whether that process is known to have ended; of another machine nothing is known."""
    host, pid, _ = owner.rsplit(" ", 2)
    if host != socket.gethostname() or os.name != "posix":  # elsewhere signal 0 is a real one
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it lives, under another user
        pass
    return _owner(int(pid), _started(int(pid))) != owner


def claim(connection: Any, campaign: str, key: str, *, now_s: float | None = None) -> bool:
    """Inside a transaction: whether the task is ours to do now."""
    now_s = time.time() if now_s is None else now_s
    held = connection.execute(
        "SELECT owner, expires_s FROM claims WHERE campaign = ? AND key = ?", (campaign, key)
    ).fetchone()
    if held is not None and held[0] != this_process() and held[1] > now_s and not is_gone(held[0]):
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
        return "-"
    return "ended" if state == "Z" else fields[18]  # a zombie has ended; its parent has not asked yet
