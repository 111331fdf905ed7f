"""The largest batch, or the longest sequence, that the devices of a run hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from traincast.forecasting.device_memory import device_memory
from traincast.forecasting.question import Question


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Tried:
    """One value, the run that has it, and what its fullest device holds."""

    value: int
    question: Question
    peak_memory_bytes: int

    @property
    def fits(self) -> bool:
        return self.peak_memory_bytes <= self.question.device.usable_memory_bytes

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "peak_memory_bytes": self.peak_memory_bytes, "fits": self.fits}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Largest:
    """What was tried on the way, smallest first.

    Bytes grow with batch and length, but for a few of the allocator's, so that bisection finds the end.
    """

    what: str  # "batch" | "seqlen"
    limit: int  # the largest value that can be asked about, whatever the memory
    tried: tuple[Tried, ...]

    @property
    def best(self) -> Tried | None:
        """The largest that fits; None: not even the smallest does."""
        fitting = [one for one in self.tried if one.fits]
        return fitting[-1] if fitting else None

    @property
    def first_too_large(self) -> Tried | None:
        return next((one for one in self.tried if not one.fits), None)

    @property
    def question(self) -> Question:
        """The largest run that fits, or the smallest that does not."""
        return (self.best or self.tried[0]).question

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.units import show_bytes, show_integer

        rows = [
            (show_integer(one.value), show_bytes(one.peak_memory_bytes), "yes" if one.fits else "no")
            for one in self.tried
        ]
        name = "batch" if self.what == "batch" else "sequence length"
        title = f"Largest {name} of {self.question.trace.name} on {self.question.place}"
        return to_notebook(title, rows, header=(name, "memory", "fits"))

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        question, shown = self.question, self.best or self.tried[0]
        return {
            "model": question.trace.name,
            "on": question.place,
            "strategy": question.strategy.name if question.n_devices > 1 else None,
            "what": self.what,
            "largest": None if self.best is None else self.best.value,
            "limit": self.limit,
            "batch_size": question.batch_size,
            "seqlen": question.trace.tokens_per_sample,
            "peak_memory_bytes": shown.peak_memory_bytes,
            "usable_memory_bytes": question.device.usable_memory_bytes,
            "tried": [one.to_dict() for one in self.tried],
        }


def find_largest(what: str, ask: Callable[[int], Question], *, least: int, limit: int) -> Largest:
    """Doubles from `least` until a value does not fit, then halves the gap. Values are multiples of `least` for a
    batch, whose devices all have equally many samples."""
    step = least if what == "batch" else 1
    tried: dict[int, Tried] = {}

    def fits(value: int) -> bool:
        if value not in tried:
            question = ask(value)
            tried[value] = Tried(value=value, question=question, peak_memory_bytes=device_memory(question).total_bytes)
        return tried[value].fits

    low, high = least, least
    while fits(high) and high < limit:
        low, high = high, min(2 * high, limit)
    while not fits(high) and high - low > step:
        middle = low + (high - low) // (2 * step) * step
        low, high = (middle, high) if fits(middle) else (low, middle)
    return Largest(what=what, limit=limit, tried=tuple(tried[value] for value in sorted(tried)))
