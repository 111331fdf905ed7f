"""What `traincast scale` shows of a forecast: both ways of scaling side by side, then each in detail."""

from __future__ import annotations

from traincast.forecasting.assumptions import step_assumptions_of
from traincast.forecasting.scale import Scaling, ScalingCurve, ScalingPoint
from traincast.forecasting.scale_compare import CurveComparison, MeasuredPoint
from traincast.hardware.link import Link
from traincast.report.document import Document
from traincast.report.table import Cell, Column, Row, Table, columns_of
from traincast.units import show_bytes_per_s, show_percent, show_ratio, show_things, show_usd
from traincast.views.scale_charts import charts_of
from traincast.views.verdicts import bound_words, with_spread

_WORDS = (
    "Speedup is T(1)/T(N) at the same global batch. Scaled speedup is N T(1)/T(N), where T is the time of a step at "
    "the same batch per GPU. Efficiency is speedup / N. The serial fraction is Amdahl's, after Karp and Flatt."
)

_TRAFFIC_WORDS = (
    "Exposed: time of a step beyond computing: communication that is not hidden, and waiting for the slowest GPU. "
    "Sent: bytes of the process that sends most. Rate: these bytes over the time of the communication, one way."
)


def document_of(scaling: Scaling, comparison: CurveComparison | None = None) -> Document:
    """Verdict, tables and charts; measured runs stand beside the curve that they belong to."""
    curves = (scaling.strong, scaling.weak)
    runs = [
        _runs(curve, scaling, measured)
        for curve in curves
        for measured in [_of(curve, comparison)]
        if measured or scaling.question.n_samples is not None
    ]
    return Document(
        title=f"{scaling.model} on {_counts(scaling)} x {scaling.question.device.name}",
        subtitle=_settings(scaling),
        verdict=_verdict(scaling),
        tables=(
            _measures(scaling),
            *(_work(curve, scaling) for curve in curves),
            *runs,
            *([] if comparison is None else [_throughputs(comparison)]),
        ),
        charts=charts_of(scaling, comparison),
        warnings=scaling.warnings,
        notes=_notes(scaling, comparison),
        assumptions=(*_links(scaling), *_price(scaling), *step_assumptions_of(scaling.question)),
    )


def _verdict(scaling: Scaling) -> str:
    """What the most GPUs bring, whether the step fits there, and what bounds it."""
    most = scaling.strong.points[-1].n_devices
    parts = []
    for curve in (scaling.strong, scaling.weak):
        point = curve.points[-1]
        parts.append(
            f"{curve.kind} scaling is {show_ratio(point.speedup)}x one GPU ({show_percent(point.efficiency_fraction)} "
            f"efficient), {bound_words(point.forecast)}"
        )
    step = with_spread(scaling.strong.points[-1].forecast, "step_s", "duration")
    gpus = show_things(most, "GPU")
    return f"{_fits(scaling)} On {gpus}, {'; '.join(parts)}. Step of strong scaling on {gpus}: {step}."


def _fits(scaling: Scaling) -> str:
    """Both kinds of scaling; which numbers of GPUs have too little memory."""
    small = [
        f"{curve.kind} scaling on {', '.join(f'{n:,}' for n in counts)} GPU{'s' * (counts != [1])}"
        for curve in (scaling.strong, scaling.weak)
        for counts in [[point.n_devices for point in curve.points if not point.forecast.fits]]
        if counts
    ]
    return f"Does not fit: {'; '.join(small)}." if small else "Fits everywhere."


def _of(curve: ScalingCurve, comparison: CurveComparison | None) -> dict[int, MeasuredPoint]:
    return comparison.by_count if comparison is not None and comparison.curve is curve else {}


def _measures(scaling: Scaling) -> Table:
    time = "epoch" if scaling.question.n_samples else "step"
    columns = (
        Column(key="n_devices", header="GPUs", show="integer"),
        Column(key=f"strong_{time}_s", header=f"strong: {time}", show="duration"),
        *columns_of(
            "strong_samples_per_s: samples/s, speedup, strong_efficiency_fraction: efficiency, "
            "amdahl_serial_fraction: serial fraction"
        ),
        Column(key=f"weak_{time}_s", header=f"weak: {time}", show="duration"),
        *columns_of(
            "weak_samples_per_s: samples/s, scaled_speedup: scaled speedup, weak_efficiency_fraction: efficiency"
        ),
    )
    rows = []
    for strong, weak in zip(scaling.strong.points, scaling.weak.points, strict=True):
        cells = [(getattr(each.forecast, f"{time}_s"), each.forecast.samples_per_s) for each in (strong, weak)]
        first = (strong.n_devices, *cells[0], strong.speedup, strong.efficiency_fraction, strong.serial_fraction)
        rows.append((*first, *cells[1], weak.speedup, weak.efficiency_fraction))
    batches = scaling.batches
    return Table(
        title=f"Strong scaling (a batch of {batches.of_all:,}) and weak scaling ({batches.of_each:,} samples per GPU)",
        columns=columns,
        rows=tuple(rows),
        notes=(_WORDS,),
    )


def _work(curve: ScalingCurve, scaling: Scaling) -> Table:
    """Times per epoch, or per step if the number of samples is unknown."""
    is_waiting = any(point.forecast.input_wait_s for point in curve.points)
    is_step = scaling.question.n_samples is None
    spread = [Column(key=f"{name}_step_s", header=name, show="duration") for name in ("p10", "p90")]
    columns = [
        *columns_of("n_devices: GPUs, batch_size_per_device: batch/GPU as integer, step_s: step"),
        *(spread if is_step else []),
        *columns_of("compute_s: compute, communication_s: communication, exposed_s: exposed"),
        *([Column(key="input_wait_s", header="input wait", show="duration")] if is_waiting else []),
        *columns_of("sent_bytes: sent per step, sent_bytes_per_s: rate, link_fraction: of the link, fits"),
    ]
    return Table(
        title=f"{curve.kind.capitalize()} scaling: {'a step' if is_step else 'an epoch'} on each GPU",
        columns=tuple(columns),
        rows=tuple(_work_row(point, is_waiting=is_waiting, is_step=is_step) for point in curve.points),
        notes=(_TRAFFIC_WORDS,) if curve.kind == "strong" else (),
    )


def _work_row(point: ScalingPoint, *, is_waiting: bool, is_step: bool) -> Row:
    one, times = point.forecast, point.n_steps or 1
    waited = (times * one.input_wait_s,) if is_waiting else ()
    return (
        point.n_devices,
        point.batch_size_per_device,
        one.step_s,
        *(one.interval("step_s") if is_step else ()),
        times * point.compute_s,
        times * one.communication_s,
        times * one.exposed_communication_s,
        *waited,
        one.bytes_sent or None,
        point.bytes_per_s,
        point.link_fraction,
        "yes" if one.fits else "NO",
    )


def _runs(curve: ScalingCurve, scaling: Scaling, measured: dict[int, MeasuredPoint]) -> Table:
    """Runtime and cost with p10 and p90, beside measured ones."""
    question = scaling.question
    time = "total_s" if question.n_samples else "step_s"
    columns = [
        Column(key="n_devices", header="GPUs", show="integer"),
        Column(key=time, header="runtime" if question.n_samples else "step", show="duration"),
        Column(key=f"p10_{time}", header="p10", show="duration"),
        Column(key=f"p90_{time}", header="p90", show="duration"),
    ]
    has_cost = curve.one.cost_usd is not None
    if has_cost:
        columns += [*columns_of("cost_usd: cost, p10_cost_usd: p10, p90_cost_usd: p90")]
    if measured:
        columns.append(Column(key=f"measured_{time}", header="measured", show="duration"))
        if has_cost:
            columns.append(Column(key="measured_cost_usd", header="cost", show="usd"))
        columns.append(Column(key="error_fraction", header="error", show="percent"))
    rows = []
    for point in curve.points:
        names = (time, "cost_usd") if has_cost else (time,)
        cells: list[Cell] = [point.n_devices]
        for name in names:
            cells += [getattr(point.forecast, name), *point.forecast.interval(name)]
        if measured:
            found = measured.get(point.n_devices)
            cells += [None if found is None else getattr(found, name) for name in (*names, "error_fraction")]
        rows.append(tuple(cells))
    title = f"{curve.kind.capitalize()} scaling: {_run_of(scaling)}"
    return Table(title=title, columns=tuple(columns), rows=tuple(rows))


def _throughputs(comparison: CurveComparison) -> Table:
    """Predicted and measured samples per second, with the error of each; the runtime's has another base."""
    rows = [
        (
            n_devices,
            one.point.forecast.samples_per_s,
            one.samples_per_s,
            one.throughput_error_fraction,
            one.error_fraction,
        )
        for n_devices, one in comparison.by_count.items()
    ]
    return Table(
        title=f"{comparison.curve.kind.capitalize()} scaling: throughput, predicted and measured",
        columns=(
            Column(key="n_devices", header="GPUs", show="integer"),
            Column(key="samples_per_s", header="predicted samples/s", show="ratio"),
            Column(key="measured_samples_per_s", header="measured", show="ratio"),
            Column(key="throughput_error_fraction", header="error of throughput", show="percent"),
            Column(key="error_fraction", header="error of runtime", show="percent"),
        ),
        rows=tuple(rows),
        notes=(
            "Both errors are (predicted - measured) / measured: a runtime of half is -50 %, its throughput +100 %.",
        ),
    )


def _run_of(scaling: Scaling) -> str:
    question = scaling.question
    if question.n_samples is None:
        return "a step"
    return f"{show_things(question.n_epochs, 'epoch')} of {question.n_samples:,} samples"


def _counts(scaling: Scaling) -> str:
    counts = scaling.places.counts
    return ", ".join(f"{n:,}" for n in counts) if len(counts) < 10 else f"{counts[0]:,} to {counts[-1]:,}"


def _settings(scaling: Scaling) -> str:
    question = scaling.question
    strategy = question.strategy
    reduce = f", all-reduce {strategy.algorithm}" if strategy.kind in ("ddp", "mirrored") else ""
    settings = question.run_settings
    parts = [settings.precision, question.update_name, *settings.extras, f"strategy {strategy.name}{reduce}"]
    parts += [f"method {question.method.name}", f"host {question.host.name}"]
    if question.layout != "nchw":
        parts.append(question.layout)
    if question.compiled:
        parts.append(question.compilation)
    if question.accumulation_steps > 1:
        parts.append(f"{question.accumulation_steps} passes per update")
    return ", ".join(parts)


def _notes(scaling: Scaling, comparison: CurveComparison | None) -> tuple[str, ...]:
    notes = [scaling.batches.remark] if scaling.batches.remark else []
    if scaling.question.price_usd_per_hour is not None and scaling.question.n_samples is None:
        notes.append("The cost of a run needs its number of samples besides the price.")
    if comparison is not None:
        mean = f"{show_percent(comparison.mean_error_fraction)} of the runtime"
        mean += f", {show_percent(comparison.mean_throughput_error_fraction)} of the throughput"
        notes.append(
            f"Measured runs are compared with {comparison.curve.kind} scaling: mean absolute error {mean}. "
            "A runtime's error above 0 means that the forecast is too slow."
        )
    return tuple(notes)


def _links(scaling: Scaling) -> list[str]:
    most = scaling.places.by_count[scaling.places.counts[-1]]
    if most.n_devices == 1:
        return []
    notes = []
    if max(most.placement) > 1:
        notes.append(f"Inside a node: {_link(most.inside)}.")
    if most.n_nodes > 1 and most.between is not None:
        notes.append(f"Between nodes: {_link(most.between)}, shared by the GPUs of a node.")
    return notes


def _link(link: Link) -> str:
    nominal, reached = show_bytes_per_s(link.bytes_per_s), show_bytes_per_s(link.sustained_bytes_per_s)
    return f"{link.name}, {nominal} nominal in one direction; large collectives reach {reached}"


def _price(scaling: Scaling) -> list[str]:
    question = scaling.question
    cluster = scaling.places.by_count[scaling.places.counts[-1]]
    if question.n_samples is None:
        return []
    if question.price_usd_per_hour is not None:
        return [f"Cost: {show_usd(question.price_usd_per_hour)} per GPU and hour; only steps are counted."]
    if cluster.node_price_usd_per_hour is None:
        return ["No cost estimate: the price per GPU and hour is unknown."]
    price, when = show_usd(cluster.node_price_usd_per_hour), f"{cluster.region}, {cluster.price_date}"
    return [f"Cost: {price} per machine and hour ({when}); unused GPUs of a machine are paid for, too."]
