"""What one request may cost. A server that others can reach has to survive all of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes, times in seconds; a request beyond them is refused with a sentence."""

    question_bytes: int = 64 * 1024
    upload_bytes: int = 128 * MIB
    body_bytes_per_s: int = 16 * 1024  # a body that brings less is not waited for,
    body_pace_s: float = 10.0  # counted over so long
    idle_s: float = 15.0  # a connection on which no request is under way, or nobody reads the reply
    n_connections: int = 500
    n_connections_of_one: int = 400  # client, so that nobody can have all of them
    reading_s: float = 60.0  # of an uploaded file, in a process of its own
    reading_memory_bytes: int = 6 * 1024 * MIB  # addresses, of which torch alone takes more than half
    trace_bytes: int = 32 * MIB
    trace_memory_bytes: int = 64 * MIB  # what a trace unpacks to
    trace_ops: int = 60_000  # eight times those of gpt2-large
    n_uploads: int = 16  # that are kept; the one that was not asked for longest goes first
    kept_upload_bytes: int = 64 * MIB
    plan_s: float = 60.0  # of a plan, in a process of its own
    n_planners: int = field(default_factory=lambda: max(1, min(4, os.cpu_count() or 1)))  # at once
    question_s: float = 20.0  # of a question about an upload, in a process of its own
    question_memory_bytes: int = 3 * 1024 * MIB
    answer_bytes: int = 16 * MIB
    n_workers: int = 1  # questions at once: more would only fight for the interpreter, and none be done sooner
    n_waiting: int = 200
    n_readers: int = 2
    n_readers_waiting: int = 16
    n_uploads_of_one: int = 12  # client, that arrive, wait for a reader or are read
    n_bodies_of_one: int = 2  # as large as an upload may be: what those of one client take together,
    n_bodies: int = 4  # and those of all
    kept_answers: int = 512
    kept_answer_bytes: int = 48 * MIB
