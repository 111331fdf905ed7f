"""No process stays behind: one that we start ends with us, however we end.

It inherits the reading end of a pipe as its standard input. The kernel closes the writing end when this process ends
(`kill -9`, a closed terminal), where no handler of ours would run.
"""

from __future__ import annotations

import os
import threading


def end_with_parent() -> None:
    """Called first by a process that was started with a pipe as its standard input."""
    threading.Thread(target=_wait_for_end_of_input, daemon=True).start()


def _wait_for_end_of_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)  # the main thread may be deep inside a library, where no exception reaches it
