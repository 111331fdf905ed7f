"""Time real training steps: warm up, repeat, and keep what was measured whatever happens on the way."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from traincast.errors import InputError
from traincast.measurement.failures import users_code
from traincast.measurement.measured import Measurement
from traincast.measurement.remarks import remarks_on
from traincast.measurement.runnable import Runnable
from traincast.measurement.statistics import summarise
from traincast.measurement.stopwatch import Stopwatch, stopwatch_for
from traincast.measurement.training import PHASES, Training, check_device, check_precision, is_cuda
from traincast.records.environment import Environment, read_environment
from traincast.trace.settings import OPTIMIZERS, check_choice

__all__ = ["Measurement", "Progress", "check_batch_size", "check_count_of", "measure_step"]

Progress = Callable[[int, int], None]  # steps done, steps to do (0 during the warm-up, when that is not known yet)

FEWEST_WARMUPS, MOST_WARMUPS = 3, 10
FEWEST_STEPS, MOST_STEPS = 5, 100
_BUDGET_S = 2.0
_MOST_TO_TIME = 10**9  # eleven days at a millisecond each: whoever asks for more mistyped
# Warm is who is no longer a tenth faster than before.
_STILL_WARMING = 0.9


def measure_step(  # noqa: PLR0913  (the options of traincast.measure)
    runnable: Runnable,
    *,
    batch_size: int,
    optimizer: str = "sgd",
    precision: str = "fp32",
    device: str = "cpu",
    n_steps: int | None = None,
    compiled: bool = False,
    keeps_memory: bool = True,
    on_progress: Progress | None = None,
    stopwatch: Stopwatch | None = None,
) -> Measurement:
    """Real steps of a model on one example batch; without `n_steps`, as many as two seconds have room for, 5 to 100.

    Ctrl-C ends it with what was measured until then. What fails raises a MeasurementError that keeps the same.
    `stopwatch` stands in for that of the device, where there is none.
    """
    check_batch_size(batch_size)
    check_device(device)
    check_precision(precision, device)
    check_choice("optimizer", optimizer, OPTIMIZERS)
    check_count_of("steps", n_steps)
    environment = read_environment(device)  # before the run, whose own load it would show otherwise
    settings = {"optimizer": optimizer, "precision": precision, "device": device, "compiled": compiled}
    steps = _Steps(_Counting(stopwatch or stopwatch_for(device)), _counts_launches(device, stopwatch))

    def result(*, is_partial: bool) -> Measurement | None:
        return _result(steps, environment, is_partial, model=runnable.name, batch_size=batch_size, **settings)

    try:
        with users_code(lambda _: steps.whereabouts(), partial=lambda: result(is_partial=True)):
            training = Training(
                runnable,
                optimizer=optimizer,
                precision=precision,
                device=device,
                compiled=compiled,
                keeps_memory=keeps_memory,
            )
            inputs = training.inputs(batch_size)
            _run(steps, training, inputs, n_steps, on_progress or _nobody)
    except KeyboardInterrupt:
        stopped = result(is_partial=True)
        if stopped is None:
            raise
        return stopped
    finished = result(is_partial=False)
    assert finished is not None  # at least one step was made
    return finished


def check_batch_size(batch_size: int) -> int:
    """The batch size, if there is such a batch."""
    if not isinstance(batch_size, numbers.Integral) or batch_size < 1:
        raise InputError(f"A batch of {batch_size!r} samples cannot be measured: give 1 or more.")
    return batch_size


def check_count_of(what: str, n: int | None) -> int | None:
    """How many steps or batches are to be timed, if that can be done; None leaves it to the measurement."""
    if n is not None and (not isinstance(n, numbers.Integral) or n < 1):
        raise InputError(f"{n!r} {what} cannot be timed: give 1 or more.")
    if n is not None and n > _MOST_TO_TIME:
        raise InputError(f"{n:,} {what} cannot be timed: give 1 to {_MOST_TO_TIME:,}.")
    return n


class _Counting:
    """A stopwatch that knows how far into a step it is."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch
        self.n_marks = 0

    def mark(self) -> None:
        self.n_marks += 1
        self._stopwatch.mark()

    def read(self) -> list[float]:
        self.n_marks = 0
        return self._stopwatch.read()

    def synchronize(self) -> None:
        self._stopwatch.synchronize()


@dataclass(frozen=True, slots=True)
class _Made:
    """One step."""

    durations_s: list[float]  # of each phase
    launch_s: float
    n_page_faults: int
    loss: float

    @property
    def step_s(self) -> float:
        return sum(self.durations_s)


@dataclass(slots=True)
class _Steps:
    """All steps made so far, warm-up first."""

    stopwatch: _Counting
    counts_launches: bool
    made: list[_Made] = field(default_factory=list)
    n_warmups: int = 0

    def make(self, training: Training, inputs: Any) -> float:
        """One step; gives its seconds."""
        self.stopwatch.synchronize()
        n_faults, start_s = _page_faults(), time.perf_counter()
        loss = training.step(inputs, self.stopwatch)
        launch_s = time.perf_counter() - start_s
        durations_s = self.stopwatch.read()
        self.made.append(_Made(durations_s, launch_s, _page_faults() - n_faults, float(loss)))
        return self.made[-1].step_s

    @property
    def n_left_out(self) -> int:
        """The warm-up, unless there is nothing else to show."""
        return self.n_warmups if len(self.made) > self.n_warmups else 0

    def whereabouts(self) -> str:
        """'Step 3, in its backward,': where an error came from."""
        number, n_marks = len(self.made) + 1, self.stopwatch.n_marks
        if not n_marks:
            return "Preparing the model and its batch" if number == 1 else f"Step {number}"
        return f"Step {number}, in its {PHASES[min(n_marks, len(PHASES)) - 1]},"


def _run(steps: _Steps, training: Training, inputs: Any, n_steps: int | None, tell: Progress) -> None:
    last_s = math.inf
    while steps.n_warmups < MOST_WARMUPS:
        step_s = steps.make(training, inputs)
        steps.n_warmups += 1
        tell(steps.n_warmups, 0)
        is_steady = step_s > _STILL_WARMING * last_s
        last_s = step_s
        if steps.n_warmups >= FEWEST_WARMUPS and is_steady:
            break
    wanted = n_steps or min(MOST_STEPS, max(FEWEST_STEPS, int(_BUDGET_S / last_s) if last_s > 0 else MOST_STEPS))
    for number in range(1, wanted + 1):
        steps.make(training, inputs)
        tell(number, wanted)


def _result(steps: _Steps, environment: Environment, is_partial: bool, **settings: Any) -> Measurement | None:
    if not steps.made:
        return None
    kept = steps.made[steps.n_left_out :]
    step = summarise([one.step_s for one in kept])
    launch = summarise([one.launch_s for one in kept]) if steps.counts_launches else None
    page_faults = summarise([one.n_page_faults for one in kept]).median
    return Measurement(
        **settings,
        phases={phase: summarise([one.durations_s[at] for one in kept]) for at, phase in enumerate(PHASES)},
        step=step,
        launch=launch,
        first_step_s=steps.made[0].step_s,
        page_faults=page_faults,
        environment=environment,
        is_partial=is_partial,
        warnings=remarks_on(
            step=step,
            launch=launch,
            losses=[one.loss for one in steps.made],
            environment=environment,
            is_partial=is_partial,
            is_warm=steps.n_left_out > 0,
            page_faults=page_faults,
        ),
    )


def _counts_launches(device: str, stopwatch: Stopwatch | None) -> bool:
    """On a CPU a call returns when its work is done; a stopwatch of the caller's stands for a device that works on."""
    return is_cuda(device) or stopwatch is not None


def _page_faults() -> int:
    """Of this process since it began; 0 where the system does not count them."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _nobody(done: int, to_do: int) -> None:
    """Where nobody looks."""
