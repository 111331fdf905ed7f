"""Plans are worked out in processes of their own: they take a hundred times as long as other questions."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

from traincast.web.answer_process import AnswerProcess, ProcessLimits

if TYPE_CHECKING:
    from traincast.web.limits import Limits

_NICE = 5  # where the processor is short, other questions go first
_TOO_LONG = "The plan took longer than the {seconds:g} s that one may take: compare fewer devices, machines or batches."
_ENDED = "The plan could not be made: it needs more memory than one may take, or its upload is damaged."


class PlanProcesses:
    """As many as may work at once. Each is started when it is first needed, or when a plan is likely to follow."""

    def __init__(self, limits: Limits) -> None:
        own = ProcessLimits(
            seconds=limits.plan_s,
            memory_bytes=limits.question_memory_bytes,
            trace_memory_bytes=limits.trace_memory_bytes,
            answer_bytes=limits.answer_bytes,
            niceness=_NICE,
            too_long=_TOO_LONG,
            ended=_ENDED,
        )
        self._processes = [AnswerProcess(own) for _ in range(limits.n_planners)]
        # Last in, first out: a few plans keep one process busy, and the others need not start.
        self._free: queue.LifoQueue[AnswerProcess] = queue.LifoQueue()
        for process in reversed(self._processes):
            self._free.put(process)

    def start(self) -> None:
        """The process that takes the next plan: loading what it needs takes a second."""
        self._processes[0].start()

    def answer(self, question: bytes, model: bytes, log: bytes) -> bytes:
        """Blocks until a process is free and has replied."""
        process = self._free.get()
        try:
            return process.answer(question, model, log)
        finally:
            self._free.put(process)
