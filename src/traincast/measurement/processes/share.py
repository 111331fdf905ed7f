"""What each of several processes gets, checked before any of them is started."""

from __future__ import annotations

from traincast.errors import InputError


def check_count(n_processes: int) -> int:
    """The number of processes, if there is something between them to measure."""
    if n_processes < 2:
        raise InputError(f"Between {n_processes} processes there is nothing to measure: give at least 2.")
    return n_processes


def share_of(batch_size: int, n_processes: int) -> int:
    """Samples of one process."""
    check_count(n_processes)
    if batch_size < n_processes or batch_size % n_processes:
        raise InputError(
            f"A batch of {batch_size} cannot be split equally among {n_processes} processes: it must be a "
            f"multiple of {n_processes}."
        )
    return batch_size // n_processes


def threads_of(n_cores: int, n_processes: int) -> int:
    """Threads of one process: an equal share of the cores, and never none."""
    return max(1, n_cores // n_processes)
