"""The same measurement in several fresh processes: where memory comes to lie, and what else runs, differs between them.

On one machine medians of processes differed by up to 1.37 x while steps within each differed by a tenth of that. The
interval of a joined measurement is that of a step in a process to come: the spread between processes, known from a few
of them, and the spread within.
"""

from __future__ import annotations

import json
import math
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace

from traincast.child_process import module_command
from traincast.errors import InputError, MeasurementError
from traincast.lognormal import P90_SDS
from traincast.measurement.measured import Measurement
from traincast.measurement.statistics import Summary

_SMALLEST = 1e-12  # of a duration, whose logarithm is taken

_STOPPED = 130  # by Ctrl-C, with an answer if there was time for one

Run = Callable[[Sequence[str]], "tuple[int, str, str]"]  # arguments of `traincast measure` to (code, stdout, stderr)


def measure_repeatedly(
    arguments: Sequence[str],
    n_repeats: int,
    *,
    on_progress: Callable[[int, int], None] | None = None,
    run: Run | None = None,
) -> Measurement:
    """`traincast measure` with these arguments in processes one after the other, joined.

    Ctrl-C ends it with what was measured until then, that of the process that it reached too; a process that fails
    raises a MeasurementError that keeps the same.
    """
    if n_repeats < 1:
        raise InputError(f"A step cannot be measured in {n_repeats} processes: give 1 or more.")
    measured: list[Measurement] = []
    for number in range(1, n_repeats + 1):
        code, out, said = (run or _run)(arguments)
        found = _answer(out) if code in (0, _STOPPED) else None
        if found is not None:
            measured.append(found)
        if code == _STOPPED:
            if not measured:
                raise KeyboardInterrupt
            stopped = f"Stopped in process {number} of {n_repeats}."
            joined = join(measured)
            return replace(joined, is_partial=True, warnings=(stopped, *joined.warnings))
        if found is None:
            partial = join(measured) if measured else None
            raise MeasurementError(f"Process {number} of {n_repeats} failed: {_last_line(said)}", partial=partial)
        if on_progress is not None:
            on_progress(number, n_repeats)
    return join(measured)


def join(measured: Sequence[Measurement]) -> Measurement:
    """One measurement of all, with the spread between them in its intervals."""
    first = measured[0]
    if len(measured) == 1:
        return first
    launches = [one.launch for one in measured if one.launch is not None]
    faults = sorted(one.page_faults for one in measured if one.page_faults is not None)
    said = dict.fromkeys(
        f"Process {number}: {warning}" for number, one in enumerate(measured, start=1) for warning in one.warnings
    )
    return replace(
        first,
        step=join_summaries([one.step for one in measured]),
        phases={name: join_summaries([one.phases[name] for one in measured]) for name in first.phases},
        launch=join_summaries(launches) if launches else None,
        page_faults=faults[len(faults) // 2] if faults else None,
        n_repeats=len(measured),
        is_partial=any(one.is_partial for one in measured),
        warnings=(*_on_processes(measured), *said),
    )


def join_summaries(parts: Sequence[Summary]) -> Summary:
    """The middle process, and the interval of a step in another one: durations are taken as log-normal.

    With few processes the spread between them is little known: Student's t stands for the normal quantile.
    """
    from scipy.special import stdtrit

    logs = [math.log(max(part.median, _SMALLEST)) for part in parts]
    n, mean = len(parts), sum(logs) / len(parts)
    between = math.sqrt(sum((log - mean) ** 2 for log in logs) / (n - 1) * (1 + 1 / n)) if n > 1 else 0.0
    low_sd = sum(_log_ratio(part.median, part.p10) for part in parts) / n / P90_SDS
    high_sd = sum(_log_ratio(part.p90, part.median) for part in parts) / n / P90_SDS
    t = float(stdtrit(n - 1, 0.9)) if n > 1 else P90_SDS
    medians = sorted(part.median for part in parts)
    median = (medians[(n - 1) // 2] + medians[n // 2]) / 2
    n_values = sum(part.n for part in parts)
    minimum = min(part.minimum for part in parts)
    p10 = median * math.exp(-math.hypot(t * between, P90_SDS * low_sd))
    return Summary(
        n=n_values,
        median=median,
        minimum=minimum,
        p10=max(p10, minimum),  # noise only adds: the least of many steps is near what the work itself takes
        p90=median * math.exp(math.hypot(t * between, P90_SDS * high_sd)),
        mean=sum(part.total for part in parts) / n_values,
        n_outliers=sum(part.n_outliers for part in parts),
        spread_fraction=math.hypot(between, sum(part.spread_fraction for part in parts) / n),
    )


def _on_processes(measured: Sequence[Measurement]) -> list[str]:
    medians = [one.step_s for one in measured]
    factor = max(medians) / min(medians) if min(medians) > 0 else 1.0
    return [f"The median step of the slowest process is {factor:.2f} x that of the fastest."] if factor > 1.1 else []


def _log_ratio(above: float, below: float) -> float:
    return math.log(max(above, _SMALLEST) / max(below, _SMALLEST))


def _run(arguments: Sequence[str]) -> tuple[int, str, str]:
    """In a session of its own: Ctrl-C reaches us alone, is passed on once, and the process says what it has."""
    command = module_command("traincast", "measure", *arguments, "--json")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, said = process.communicate()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            out, said = process.communicate()
            return _STOPPED, out, said
        except BaseException:
            process.kill()
            raise
    return process.returncode, out, said or f"it ended with exit code {process.returncode}."


def _answer(out: str) -> Measurement | None:
    """None where there is none: it was stopped or failed before."""
    try:
        return Measurement.from_dict(json.loads(out))
    except (json.JSONDecodeError, KeyError):
        return None


def _last_line(text: str) -> str:
    """Our own error is the last line of what a process says, and so is that of a traceback."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("Error: ") if lines else "it printed nothing."
