"""Does a timing loop measure the work, or only the time to ask for it?

On a GPU a call returns when its work is queued. A loop that reads its clock without waiting for the device reports how
fast the host can ask: 3.5 s for an epoch of 24 s, in one lab. Here the user's own loop runs as it is, and every clock
that it reads looks first whether the device still has work.
"""

from __future__ import annotations

import contextlib
import time
import timeit
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from traincast.errors import InputError
from traincast.units import show_duration, show_ratio

CLOCKS = ("time", "perf_counter", "monotonic", "time_ns", "perf_counter_ns", "monotonic_ns")
# The device is always a few launches behind; less than this is no lie.
_TOLERATED = 1.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a loop saw on its clocks, and what it would have seen had it waited.

    `loop_s` is from its first clock read to its last, `true_s` from the first until the device had done all that the
    loop asked for. Of `n_clock_reads`, `n_pending` came while work was pending.
    """

    n_clock_reads: int
    n_pending: int
    loop_s: float
    true_s: float

    @property
    def warning(self) -> str | None:
        """One sentence if the loop fools itself, else None."""
        if not self.n_clock_reads:
            return "The loop never read a clock of Python's time module, so its timing cannot be checked."
        if not self.n_pending:
            return None
        pending = f"{self.n_pending} of {self.n_clock_reads} clock reads happened while the device was still busy"
        if self.true_s < _TOLERATED * self.loop_s:
            return f"{pending}: the total is right, but the durations in between are launch times, not work."
        factor = show_ratio(self.true_s / self.loop_s) if self.loop_s > 0 else "endless"
        return (
            f"{pending}: the loop saw {show_duration(self.loop_s)} for what took {show_duration(self.true_s)}, "
            f"{factor} x too fast; call torch.cuda.synchronize() before every clock read."
        )


def audit_loop(loop: Callable[[], Any], cuda: Any = None) -> Audit:
    """Runs a timing loop once and tells whether its clock reads waited for the device.

    Watched are `time.time`, `perf_counter`, `monotonic` and their _ns forms, also where the file of `loop` imported
    them by name; of every GPU, the stream that is current. The loop should do nothing after its last clock read. `cuda`
    stands in for torch.cuda.
    """
    if not callable(loop):
        raise InputError(f"audit_loop takes a function that runs the timing loop, not a {type(loop).__name__}.")
    cuda = _torch_cuda() if cuda is None else cuda
    devices = range(cuda.device_count())
    now = time.perf_counter
    reads: list[tuple[float, bool]] = []

    def look() -> None:
        reads.append((now(), any(not cuda.current_stream(device).query() for device in devices)))

    def wait() -> None:
        for device in devices:
            cuda.synchronize(device)

    wait()  # what was asked for before is not the loop's
    start_s = now()
    with _watched(getattr(loop, "__globals__", {}), look):
        loop()
    returned_s = now()
    wait()
    end_s = now()
    first_s, last_s = (reads[0][0], reads[-1][0]) if len(reads) > 1 else (start_s, returned_s)
    return Audit(
        n_clock_reads=len(reads),
        n_pending=sum(is_pending for _, is_pending in reads),
        loop_s=last_s - first_s,
        true_s=end_s - first_s,
    )


@contextlib.contextmanager
def _watched(names: dict[str, Any], look: Callable[[], None]) -> Iterator[None]:
    """Every clock, where the loop can reach it, looks at the device before it answers."""
    clocks = {name: getattr(time, name) for name in CLOCKS}
    places = [(vars(time), name) for name in CLOCKS] + [(vars(timeit), "default_timer")]
    places += [(names, name) for name, value in names.items() if any(value is clock for clock in clocks.values())]
    before = [(place, name, place[name]) for place, name in places]
    try:
        for place, name, clock in before:
            place[name] = _looking(clock, look)
        yield
    finally:
        for place, name, clock in before:
            place[name] = clock


def _looking(clock: Callable[[], Any], look: Callable[[], None]) -> Callable[[], Any]:
    def read() -> Any:
        look()
        return clock()

    return read


def _torch_cuda() -> Any:
    """Without a GPU it has no devices: each call returns when its work is done."""
    import torch

    return torch.cuda
