"""What the memory of a step shows."""

from __future__ import annotations

from typing import Any

from traincast.memory.estimate import StepMemory, timeline_samples
from traincast.report.chart import Chart, ReferenceLine, Series
from traincast.report.document import Document
from traincast.report.table import Column, Table, columns_of
from traincast.units import show_bytes
from traincast.views.verdicts import fit_sentence

_N_CHART_POINTS = 600
_COUNTS_NOTE = (
    "Adam's states are two numbers per trainable parameter, and a step count per tensor; buffers are running "
    "statistics of batch norms."
)


def document_of(answer: StepMemory, *, has_counts: bool = False) -> Document:
    """`has_counts`: first how many numbers are kept for the weights, and what they take."""
    settings = answer.settings
    return Document(
        title=f"Memory of {answer.model}, batch {answer.batch_size}",
        subtitle=", ".join((settings.precision, settings.optimizer, *settings.extras, answer.target)),
        verdict=_verdict(answer),
        tables=(*([_counts(answer)] if has_counts else []), _table(answer)),
        charts=(_chart(answer),),
        notes=(_peak(answer),),
        assumptions=tuple(f"{assumption}." for assumption in answer.assumptions),
    )


def _counts(answer: StepMemory) -> Table:
    return Table(
        title="Numbers kept from step to step",
        columns=(
            Column(key="kind", header="kind"),
            Column(key="n", header="count", show="integer"),
            Column(key="bytes", header="bytes", show="bytes"),
            Column(key="bytes_each", header="bytes each", show="ratio"),
        ),
        rows=tuple((one.kind, one.n, one.bytes, one.bytes / one.n if one.n else None) for one in answer.counts),
        notes=(_COUNTS_NOTE,),
    )


def _table(answer: StepMemory) -> Table:
    rows: list[tuple[Any, ...]] = list(answer.bytes_by_kind.items())
    rows.append(("tracked peak", answer.peak_bytes))
    rows += [
        ("context", answer.overhead.context_bytes),
        ("workspaces", answer.overhead.workspace_bytes),
        ("allocator", answer.overhead.allocator_bytes),
        ("total", answer.total_bytes),
    ]
    columns = columns_of("kind, peak_bytes: at the peak, total_fraction: share")
    return Table(
        title="Bytes at the peak",
        columns=columns,
        rows=tuple((kind, size, size / answer.total_bytes) for kind, size in rows),
        notes=(
            "Context, workspaces and allocator are estimated allowances; the tracked peak is computed from the model.",
        ),
    )


def _chart(answer: StepMemory) -> Chart:
    ops = timeline_samples(len(answer.op_phases), _N_CHART_POINTS, keep=answer.peak_index)
    lines = [ReferenceLine(value=answer.peak_index, label="peak", axis="x")]
    device = answer.device
    if device is not None and answer.total_bytes > 0.3 * device.usable_memory_bytes:
        lines.append(ReferenceLine(value=device.usable_memory_bytes, label=f"usable on {device.name}"))
    return Chart(
        title=f"Bytes alive during one step of {answer.model}",
        kind="stacked_area",
        series=tuple(
            Series(name=kind, x=ops.tolist(), y=series[ops].tolist()) for kind, series in answer.timeline_bytes.items()
        ),
        x_label="op of the step",
        y_label="memory",
        x_show="integer",
        y_show="bytes",
        reference_lines=tuple(lines),
    )


def _verdict(answer: StepMemory) -> str:
    """Whether the batch fits, and the largest one that does; without a device, how much it needs."""
    if answer.device is None:
        return f"Needs {show_bytes(answer.total_bytes)}."
    fits = fit_sentence(answer.total_bytes, answer.device.usable_memory_bytes)
    largest = answer.largest_batch_size
    return f"{fits} {f'Largest batch that fits: {largest:,}.' if largest else 'Not even a batch of 1 fits.'}"


def _peak(answer: StepMemory) -> str:
    place = f" of '{answer.peak_module}'" if answer.peak_module else ""
    return f"The peak is in the {answer.peak_phase} pass, at {answer.peak_op}{place}."
