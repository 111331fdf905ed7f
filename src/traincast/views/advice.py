"""What `traincast explain` shows of a predicted step: longest ops and modules, a roofline, and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.planning.roofline_chart import roofline_chart
from traincast.report.table import Row, Table, columns_of

if TYPE_CHECKING:
    from traincast.planning.advice import Advice
    from traincast.planning.op_groups import Work
    from traincast.planning.what_if import WhatIf
    from traincast.report.chart import Chart

_MOST_ROWS = 10
_LEAST_SHOWN = 0.005  # of the step
_WORK = columns_of(
    "seconds_s: time, step_fraction: share, bound_by: bound by as name, flop_per_s: FLOP/s, "
    "bytes_per_s: bytes/s, flop_per_byte: flop/byte"
)


def op_table(advice: Advice) -> Table:
    """The longest ops; those that repeat in equal blocks are one."""
    step_s = advice.forecast.step_s
    rows = [
        (one.name, one.module, one.phase, one.work.n_ops, *_cells(one.work, step_s)) for one in advice.ops[:_MOST_ROWS]
    ]
    return Table(
        title="Longest ops",
        columns=(*columns_of("op as name, module as name, phase as name, n_ops: n"), *_WORK),
        rows=tuple(rows),
        notes=(
            "launch: the kernel is so short that only its launch counts; host: the device waited for the dispatch.",
        ),
    )


def module_table(advice: Advice) -> Table:
    """Forward and backward together; a module that holds much is shown by its parts."""
    step_s = advice.forecast.step_s
    rows = [
        (one.module, one.work.n_ops, *_cells(one.work, step_s))
        for one in advice.modules[:_MOST_ROWS]
        if one.work.seconds >= _LEAST_SHOWN * step_s
    ]
    return Table(
        title="Longest modules",
        columns=(*columns_of("module as name, n_ops: ops"), *_WORK),
        rows=tuple(rows),
    )


def what_if_table(advice: Advice) -> Table:
    """Each change alone, best first."""
    return Table(
        title="What would help, each alone",
        columns=columns_of(
            "name: what as name, speedup: speed as name, speedup_interval: p10 to p90 as name, "
            "step_s: step, memory_bytes: memory, fits as name, change, catch: the catch"
        ),
        rows=tuple(_what_if_row(one) for one in advice.what_ifs),
        notes=("Speed: samples per second relative to the current settings.",),
    )


def left_out_note(advice: Advice) -> tuple[str, ...]:
    """What was tried or thought of in vain."""
    told = "; ".join(f"{one.name} ({one.reason})" for one in advice.left_out)
    return (f"Left out: {told}.",) if told else ()


def roofline_figure(advice: Advice) -> Chart:
    answer = advice.forecast
    precision = answer.question.settings.precision
    title = f"Roofline of {answer.model} on {answer.device} in {precision}, batch {answer.question.micro_batch_size:,}"
    return roofline_chart(advice.roofline, title)


def _cells(work: Work, step_s: float) -> Row:
    return (
        work.seconds,
        work.seconds / step_s if step_s else None,
        work.bound_by,
        work.n_flop / work.device_s if work.n_flop and work.device_s else None,
        work.n_bytes / work.device_s if work.n_bytes and work.device_s else None,
        work.n_flop / work.n_bytes if work.n_flop and work.n_bytes else None,
    )


def _what_if_row(one: WhatIf) -> Row:
    gain, usable = one.gain, one.forecast.question.device.usable_memory_bytes
    return (
        one.name,
        f"x {gain.speedup:.2f}",
        f"{gain.low:.2f} to {gain.high:.2f}",
        one.forecast.step_s,
        one.peak_memory_bytes,
        "yes" if one.peak_memory_bytes <= usable else "NO",
        one.change,
        one.catch,
    )
