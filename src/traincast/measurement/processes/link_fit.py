"""Latency and bandwidth of a link, from all-reduces of several sizes: the alpha-beta model of a ring.

An all-reduce of N bytes between P processes takes 2(P-1) latencies, and its 2N(P-1)/P bytes pass at the bandwidth.
What is fitted includes all that software adds, so it is what the next all-reduce will see, not what the wire could do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from traincast.errors import InputError
from traincast.measurement.statistics import Summary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFit:
    """Seconds of one message and bytes per second and direction, each fitted once a round.

    Rounds that tell no bandwidth are left out.
    """

    n_processes: int
    latency_s: Summary
    bytes_per_s: Summary

    def all_reduce_s(self, n_bytes: float) -> float:
        """One all-reduce of that many bytes."""
        n = self.n_processes
        return 2 * (n - 1) * self.latency_s.median + ring_bytes(n_bytes, n) / self.bytes_per_s.median


def ring_bytes(n_bytes: float, n_processes: int) -> float:
    """What each process sends, and receives: the fewest bytes possible, so rates by it compare across P."""
    return 2 * n_bytes * (n_processes - 1) / n_processes


def fit_link(n_processes: int, sizes_bytes: Sequence[int], rounds_s: Sequence[Sequence[float]]) -> LinkFit:
    """`rounds_s` has, for each size, the seconds of its all-reduce in each round; slow sizes may have fewer rounds."""
    if n_processes < 2 or len(set(sizes_bytes)) < 2:
        raise InputError("Fitting a link needs all-reduces of at least two sizes between at least two processes.")
    sizes = np.array(sizes_bytes, float)
    n_rounds = max(len(each) for each in rounds_s)
    rounds = [np.array([each[min(number, len(each) - 1)] for each in rounds_s]) for number in range(n_rounds)]
    # A round in which another job slowed the small messages down tells no bandwidth, and does not spoil the others.
    fits = [found for found in (_fit(n_processes, sizes, seconds) for seconds in rounds) if found is not None]
    if not fits:
        raise InputError(
            "The all-reduces did not take longer with more bytes: the sizes are too small to determine a bandwidth."
        )
    return LinkFit(
        n_processes=n_processes,
        latency_s=summarise([latency_s for latency_s, _ in fits]),
        bytes_per_s=summarise([bytes_per_s for _, bytes_per_s in fits]),
    )


def _fit(n: int, sizes: np.ndarray, seconds: np.ndarray) -> tuple[float, float] | None:
    """Least squares of the relative errors: a microsecond counts at 4 KiB, and does not at 64 MiB."""
    per_latency = np.full(len(sizes), 2.0 * (n - 1))
    per_byte = np.array([ring_bytes(size, n) for size in sizes])
    (latency_s, s_per_byte), _ = nnls(
        np.stack([per_latency, per_byte * 1e-9], axis=1) / seconds[:, None], np.ones(len(sizes))
    )
    return (float(latency_s), float(1e9 / s_per_byte)) if s_per_byte > 0 else None
