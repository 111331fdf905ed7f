"""`traincast memory`: does it fit?"""

from typing import TYPE_CHECKING, Any

from traincast.cli.options import (
    AsJson,
    Batch,
    DevicesFile,
    Head,
    HtmlFile,
    ImageSize,
    Model,
    NClasses,
    OnDevice,
    Optimizer,
    PngFile,
    Precision,
    SeqLen,
    model_options,
)

if TYPE_CHECKING:
    from traincast.memory.estimate import StepMemory
    from traincast.report.chart import Chart
    from traincast.report.document import Document
    from traincast.report.table import Table

_N_CHART_POINTS = 600


def memory(
    model: Model,
    batch: Batch = 1,
    on: OnDevice = None,
    precision: Precision = None,
    optimizer: Optimizer = None,
    n_classes: NClasses = None,
    image_size: ImageSize = None,
    seqlen: SeqLen = None,
    head: Head = None,
    devices_file: DevicesFile = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """Does one training step fit, and which batch is the largest that does?

    Example: traincast memory resnet50 --batch 64 --optimizer adam --on T4
    """
    from traincast.api.models import estimate_memory, load_model
    from traincast.cli.show import show

    options = model_options(n_classes=n_classes, image_size=image_size, seqlen=seqlen, head=head)
    trace = load_model(model, **options)
    answer = estimate_memory(trace, batch, on=on, precision=precision, optimizer=optimizer, devices=devices_file)
    show(document_of(answer, trace.assumptions), as_json=as_json, html=html, png=png, data=answer.to_dict())


def document_of(answer: "StepMemory", assumptions: tuple[str, ...]) -> "Document":
    from traincast.report.document import Document

    settings = answer.settings
    return Document(
        title=f"Memory of {answer.model}, batch {answer.batch_size}",
        subtitle=f"{settings.precision}, {settings.optimizer}, {answer.target}",
        tables=(_table(answer),),
        charts=(_chart(answer),),
        notes=(*_notes(answer), *(f"Assumed: {assumption}." for assumption in assumptions)),
    )


def _table(answer: "StepMemory") -> "Table":
    from traincast.report.table import Column, Table

    rows: list[tuple[Any, ...]] = list(answer.bytes_by_kind.items())
    rows.append(("tracked peak", answer.peak_bytes))
    rows += [
        ("context", answer.overhead.context_bytes),
        ("workspaces", answer.overhead.workspace_bytes),
        ("allocator", answer.overhead.allocator_bytes),
        ("total", answer.total_bytes),
    ]
    columns = (
        Column(key="kind", header="kind"),
        Column(key="peak_bytes", header="at the peak", show="bytes"),
        Column(key="total_fraction", header="share", show="percent"),
    )
    return Table(
        title="Bytes at the peak",
        columns=columns,
        rows=tuple((kind, size, size / answer.total_bytes) for kind, size in rows),
        notes=("Context, workspaces and allocator are allowances; the tracked peak follows from the model.",),
    )


def _chart(answer: "StepMemory") -> "Chart":
    from traincast.memory.estimate import timeline_samples
    from traincast.report.chart import Chart, ReferenceLine, Series

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


def _notes(answer: "StepMemory") -> list[str]:
    from traincast.units import show_bytes

    place = f" of '{answer.peak_module}'" if answer.peak_module else ""
    notes = [f"The peak is in the {answer.peak_phase} pass, at {answer.peak_op}{place}."]
    if answer.device is not None:
        usable = show_bytes(answer.device.usable_memory_bytes)
        verdict = "fits" if answer.fits else "does NOT fit"
        notes.append(f"Batch {answer.batch_size} {verdict} {answer.device.name} ({usable} usable).")
        if answer.largest_batch_size:
            notes.append(f"The largest batch that fits is {answer.largest_batch_size:,}.")
        else:
            notes.append("Not even a batch of 1 fits.")
    return notes
