"""How long gloo's ring all-reduce takes, from its source: segments, messages, frames; and two cores for all processes.

Read: pytorch/gloo at 5f206e5, `gloo/allreduce.cc` (the ring, and that it is what runs when no algorithm is named), and
6afbc90, `gloo/transport/tcp/pair.h` (a preamble of six 8-byte words); facebookincubator/gloo at 386576a,
`gloo/allreduce.h` (segments of at most 1 MiB), and 01e2c26, `gloo/transport/tcp/pair.cc` (a receiver announces every
segment); pytorch/pytorch at 0069b72, `ProcessGroupGloo.cpp` (names no algorithm).

P processes, N bytes: the vector is cut into P chunks of s >= 2 segments. A process sends (P-1) s segments around the
ring to reduce and as many to gather, and has two of them under way: while one is reduced, the other is sent. A pair of
segments therefore takes as long as both of them on the way, or as one and a latency, whichever is longer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from traincast.scaling.collectives import Wire, ring_all_reduce

SEGMENT_BYTES = 1024 * 1024
PREAMBLE_BYTES = 48
DATA_BYTES = 1448  # of a full frame
HEADER_BYTES = 90  # of every frame on the wire: 32 TCP, 20 IP, 14 + 4 Ethernet, 8 preamble, 12 gap


@dataclass(frozen=True)
class Host:
    """What is fitted: the machine, with no narrow link.

    latency_s     one segment from process to process: wake-ups, system calls
    s_per_byte    one byte sent, received and added, by one process
    busy_cores    cores that a process keeps busy while it does either
    """

    latency_s: float
    s_per_byte: float
    busy_cores: float
    n_cores: int

    @property
    def wire(self) -> Wire:
        """The port of a process that has the cores to itself."""
        return Wire(self.latency_s, 1.0 / self.s_per_byte)

    def predict_s(self, n_bytes: int, n: int) -> float:
        """A gloo all-reduce where nothing but this host is in the way: by its two in flight, or by its cores.

        Two in flight hide a latency behind a segment only while a core is free to do so. Once all are busy, the work of
        all processes adds up.
        """
        n_segments, segment_bytes = segments(n_bytes, n)
        segment_s = segment_bytes * self.s_per_byte
        in_flight_s = n_segments / 2 * max(2 * segment_s, segment_s + self.latency_s)
        return max(in_flight_s, n * self.busy_cores / self.n_cores * self.plain_s(n_bytes, n))

    def plain_s(self, n_bytes: int, n: int) -> float:
        """The ring of traincast as it is: no segments, nothing overlaps, a core for everyone."""
        return float(ring_all_reduce(n_bytes, n, self.wire).seconds)


def segments(n_bytes: int, n: int) -> tuple[int, float]:
    """How many a process sends in all, and the bytes of one."""
    n_a_chunk = max(2, math.ceil(math.ceil(n_bytes / SEGMENT_BYTES) / n))
    return 2 * (n - 1) * n_a_chunk, n_bytes / (n * n_a_chunk)


@dataclass(frozen=True)
class Link:
    """A wire shaped by a token bucket: the rate, what it lets through at once, and the kernel's largest packet."""

    rate_bit_per_s: float
    burst_bytes: int
    packet_bytes: int

    @property
    def bytes_per_s(self) -> float:
        return self.rate_bit_per_s / 8

    def wire_bytes(self, n_bytes: int, n: int) -> float:
        """What a process puts on its wire: segments in frames, an announcement for each that it receives, and ACKs.

        The kernel acknowledges a packet as it gets it, and here that is up to `packet_bytes` of frames in one.
        """
        n_segments, segment_bytes = segments(n_bytes, n)
        message_bytes = segment_bytes + PREAMBLE_BYTES
        n_frames = np.ceil(message_bytes / DATA_BYTES)
        n_acks = np.ceil(message_bytes / self.packet_bytes)
        announcement_bytes = PREAMBLE_BYTES + HEADER_BYTES
        return float(n_segments * (message_bytes + (n_frames + n_acks) * HEADER_BYTES + announcement_bytes))

    def predict_s(self, n_bytes: int, n: int, host: Host, *, n_calls: int) -> float:
        """The mean of `n_calls` back to back, after one that found the bucket full: link or host sets the pace.

        Not their sum: a bucket that waits fills up, and what was lost while the host was busy is caught up.
        """
        host_s, sent_bytes = host.predict_s(n_bytes, n), self.wire_bytes(n_bytes, n)
        first_s = max(host_s, (sent_bytes - self.burst_bytes) / self.bytes_per_s)
        all_s = ((n_calls + 1) * sent_bytes - self.burst_bytes) / self.bytes_per_s
        return max(host_s, (all_s - first_s) / n_calls)


def fit(rows: list[tuple[int, int, float]], *, n_cores: int) -> Host:
    """From (n_bytes, n, seconds), by least squares of the logarithms."""

    def host(logs: np.ndarray) -> Host:
        latency_s, s_per_byte, busy_cores = np.exp(logs)
        return Host(float(latency_s), float(s_per_byte), float(busy_cores), n_cores)

    def residuals(logs: np.ndarray) -> np.ndarray:
        return np.array([np.log(host(logs).predict_s(n_bytes, n) / seconds) for n_bytes, n, seconds in rows])

    starts = [np.log([1e-4, 5e-10, busy]) for busy in (0.7, 1.0, 1.5)]  # the maxima above make more than one valley
    return host(min((least_squares(residuals, start) for start in starts), key=lambda found: found.cost).x)
