"""`traincast layers`: what does each layer ask for?"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

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
    PngFile,
    Precision,
    SeqLen,
    model_options,
)

if TYPE_CHECKING:
    from traincast.hardware.device import Device
    from traincast.report.chart import Chart
    from traincast.report.document import Document
    from traincast.trace.layers import Layer
    from traincast.trace.trace import Trace

Order = Literal["model", "flop", "bytes", "parameters"]
_N_BARS = 30


def layers(
    model: Model,
    batch: Batch = 1,
    by: Annotated[Literal["module", "kind"], typer.Option(help="One row a module, or a kind of module.")] = "module",
    tree: Annotated[bool, typer.Option("--tree", help="Show the modules around the layers too, as totals.")] = False,
    sort: Annotated[Order, typer.Option(help="The model's order, or the largest first.")] = "model",
    top: Annotated[int | None, typer.Option(min=1, help="Only so many rows.", show_default=False)] = None,
    on: OnDevice = None,
    precision: Precision = None,
    n_classes: NClasses = None,
    image_size: ImageSize = None,
    seqlen: SeqLen = None,
    head: Head = None,
    devices_file: DevicesFile = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What does each layer ask for: shapes, parameters, flop, bytes?

    Examples: traincast layers resnet50 --on T4; traincast layers vgg19 --by kind
    """
    from traincast.api.models import load_model
    from traincast.cli.show import show
    from traincast.errors import InputError
    from traincast.hardware.machines import find_single_device
    from traincast.trace.layers import by_kind, layers_of

    if tree and by == "kind":
        raise InputError("--tree shows modules inside modules and does not go with --by kind: leave one of them out.")
    device = find_single_device(on, devices_file=devices_file) if on else None
    options = model_options(n_classes=n_classes, image_size=image_size, seqlen=seqlen, head=head)
    trace = load_model(model, **options)
    chosen = trace.defaults.override(precision, None).precision
    rows = layers_of(trace, batch, tree=True) if tree else trace.layers(batch)
    if by == "kind":
        rows = by_kind(rows)
    rows = _sorted(rows, sort)[:top]
    peak = device.peak_flop_per_s(chosen) if device else None
    document = document_of(trace, batch, rows, shape="tree" if tree else by, device=device, precision=chosen)
    show(document, as_json=as_json, html=html, png=png, data=data_of(trace, batch, rows, peak, device))


def _sorted(rows: "tuple[Layer, ...]", order: Order) -> "tuple[Layer, ...]":
    keys = {
        "flop": lambda layer: -layer.flop,
        "bytes": lambda layer: -layer.moved_bytes,
        "parameters": lambda layer: -layer.n_parameters,
    }
    return rows if order == "model" else tuple(sorted(rows, key=keys[order]))


def document_of(
    trace: "Trace", batch: int, rows: "tuple[Layer, ...]", *, shape: str, device: "Device | None", precision: str
) -> "Document":
    from traincast.report.document import Document
    from traincast.report.table import Column, Table

    peak = device.peak_flop_per_s(precision) if device else None
    columns = [Column(key="kind", header="kind")]
    if shape == "kind":
        columns.append(Column(key="n_layers", header="layers", show="integer"))
    else:
        columns.insert(0, Column(key="path", header="layer"))
        columns += [
            Column(key="input_shape", header="input", show="shape"),
            Column(key="output_shape", header="output", show="shape"),
        ]
    columns += [
        Column(key="n_parameters", header="parameters", show="integer"),
        Column(key="forward_flop", header="forward", show="flop"),
        Column(key="backward_flop", header="backward", show="flop"),
        Column(key="moved_bytes", header="bytes moved", show="bytes"),
        Column(key="flop_per_byte", header="flop/byte", show="ratio"),
        Column(key="flop_fraction", header="share", show="percent"),
    ]
    if peak:
        columns.append(Column(key="ideal_s", header="ideal time", show="duration"))
    table = Table(
        title=f"Layers of {trace.name}",
        columns=tuple(columns),
        rows=tuple(
            tuple(_cell(layer, column.key, tree=shape == "tree", peak=peak) for column in columns) for layer in rows
        ),
    )
    return Document(
        title=f"{trace.name}, batch {batch}",
        subtitle=_summary(trace, batch),
        tables=(table,),
        charts=(
            _chart(f"Flop of one step of {trace.name}", rows, "flop", shape=shape),
            _chart(f"Bytes that one step of {trace.name} moves", rows, "bytes", shape=shape),
        ),
        notes=(*_notes(trace, batch, device, precision), *_tied(trace)),
    )


def _chart(title: str, rows: "tuple[Layer, ...]", what: Literal["flop", "bytes"], *, shape: str) -> "Chart":
    """The largest layers, forward and backward."""
    from traincast.report.chart import Chart, Series

    parts = ("forward", "backward")
    sizes = {layer: sum(getattr(layer, f"{part}_{what}") for part in parts) for layer in rows if not layer.is_container}
    shown = sorted((layer for layer, size in sizes.items() if size), key=lambda layer: -sizes[layer])[:_N_BARS]
    names = [layer.kind if shape == "kind" else layer.path or layer.kind for layer in shown]
    return Chart(
        title=title + (f", the {_N_BARS} largest layers" if len(shown) == _N_BARS else ""),
        kind="stacked_bar",
        series=tuple(
            Series(name=part, x=names, y=[getattr(layer, f"{part}_{what}") for layer in shown]) for part in parts
        ),
        x_label="kind" if shape == "kind" else "layer",
        y_label=what,
        y_show=what,
    )


def _cell(layer: "Layer", key: str, *, tree: bool, peak: float | None) -> Any:
    if key == "path":
        name = "  " * layer.depth + layer.path.rpartition(".")[2] if tree and layer.path else layer.path or "(model)"
        return f"{name} (tied)" if layer.n_tied_parameters else name
    if key == "ideal_s":
        return layer.flop / peak if peak else None
    if key in ("input_shape", "output_shape"):
        return getattr(layer, key) or None
    return getattr(layer, key)


def _summary(trace: "Trace", batch: int) -> str:
    from traincast.units import show_count, show_flop, show_integer

    forward, backward = trace.forward_flop(batch), trace.backward_flop(batch)
    return (
        f"{show_integer(trace.n_parameters)} parameters; forward {show_flop(forward)}, "
        f"backward {show_flop(backward)}; {show_count(forward / batch / 2)} multiply-adds forward a sample"
    )


def _notes(trace: "Trace", batch: int, device: "Device | None", precision: str) -> tuple[str, ...]:
    from traincast.units import show_duration, show_flop_per_s

    notes = ["A multiply-add is 2 flop; matrix products of all kinds count. Bytes are those of the captured dtype."]
    if device is not None:
        peak = device.peak(precision)
        ideal_s = (trace.forward_flop(batch) + trace.backward_flop(batch)) / peak.flop_per_s
        notes.append(
            f"Ideal time: flop over the peak of {device.name} ({show_flop_per_s(peak.flop_per_s)}, {peak.used}"
            + (f", as it has no {peak.asked} units" if peak.is_fallback else "")
            + f"). A step of {show_duration(ideal_s)}, {batch / ideal_s:,.0f} samples/s: no real device gets there."
        )
    notes += [f"Assumed: {assumption}." for assumption in trace.assumptions]
    if trace.uncosted_ops:
        covered = f"{100 * trace.covered_flop_fraction:.1f} %"
        notes.append(f"Not counted: {', '.join(trace.uncosted_ops)}; counted ops move {covered} of the bytes.")
    return tuple(notes)


def _tied(trace: "Trace") -> tuple[str, ...]:
    """Of every layer that shares weights, whatever rows are shown: what a sum must leave out."""
    return tuple(
        f"{layer.path} shares {layer.n_tied_parameters:,} parameters with {', '.join(layer.tied_to)}: "
        "sums count them once."
        for layer in trace.layers(1)
        if layer.n_tied_parameters
    )


def data_of(
    trace: "Trace", batch: int, rows: "tuple[Layer, ...]", peak: float | None, device: "Device | None"
) -> dict[str, Any]:
    from dataclasses import fields

    names = [field.name for field in fields(rows[0])] if rows else []
    return {
        "model": trace.name,
        "batch_size": batch,
        "n_parameters": trace.n_parameters,
        "forward_flop": trace.forward_flop(batch),
        "backward_flop": trace.backward_flop(batch),
        "covered_flop_fraction": trace.covered_flop_fraction,
        "uncosted_ops": trace.uncosted_ops,
        "assumptions": trace.assumptions,
        "device": device.name if device else None,
        "layers": [
            {name: getattr(layer, name) for name in names}
            | {
                "flop": layer.flop,
                "moved_bytes": layer.moved_bytes,
                "flop_per_byte": layer.flop_per_byte,
                "ideal_s": layer.flop / peak if peak else None,
            }
            for layer in rows
        ],
    }
