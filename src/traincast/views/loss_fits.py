"""What `traincast converge --fits` shows: the parameters of many logs in one table, and all curves in one chart."""

from __future__ import annotations

from collections import Counter

import numpy as np

from traincast.curves.loss_fits import PARAMETERS, LossFit, LossFits
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Cell, Column, Table
from traincast.units import show_things, shown_or_never

_N_PLACES = 24
_MOST_REMARKS = 5
_MOST_DOTS = 60
_MOST_LOGGED = 6  # logs whose points are drawn beside their curves


def document_of(found: LossFits) -> Document:
    fits = found.fits
    groups = Counter((one.facts.model, one.facts.device, one.split) for one in fits)
    return Document(
        title=f"Loss fits of {show_things(len(fits), 'log')}",
        subtitle=f"loss = 1/(b0 k + b1) + b2, k in {fits[0].unit}s",
        verdict=_verdict(found, len(groups)),
        tables=(_table(found),),
        charts=(_chart(fits),),
        notes=_remarks(fits),
    )


def _verdict(found: LossFits, n_groups: int) -> str:
    fits = found.fits
    known = [one.r_squared for one in fits if one.r_squared is not None]
    parts = [f"{show_things(len(fits), 'log')}, {show_things(n_groups, 'combination')} of model, GPU and split."]
    if known:
        parts.append(f"R^2 is {min(known):.3f} to {max(known):.3f}, median {float(np.median(known)):.3f}.")
    if found.target is not None:
        there = sum(one.arrival is not None and np.isfinite(one.arrival.steps.p50) for one in fits)
        parts.append(f"{there} of {len(fits)} reach {found.metric} {found.target:g}.")
    return " ".join(parts)


def _table(found: LossFits) -> Table:
    columns = [
        Column(key="model", header="model", show="name"),
        Column(key="device", header="GPU", show="name"),
        Column(key="split", header="split", show="name"),
        Column(key="n_points", header="points", show="integer"),
    ]
    for name in PARAMETERS:
        columns += [Column(key=name, header=name), Column(key=f"{name}_interval", header="p10 to p90")]
    columns.append(Column(key="r_squared", header="R^2"))
    if found.target is not None:
        columns += [
            Column(key="steps_to_target", header=f"{found.fits[0].unit} of {found.target:g}"),
            Column(key="epochs_to_target", header="epoch"),
        ]
    return Table(
        title="Fits",
        columns=tuple(columns),
        rows=tuple(_row(one, has_target=found.target is not None) for one in found.fits),
    )


def _row(one: LossFit, *, has_target: bool) -> tuple[Cell, ...]:
    cells: list[Cell] = [one.facts.model or one.path, one.facts.device or None, one.split, len(one.series)]
    for found in one.parameters.values():
        cells += [_digits(found.p50), f"{_digits(found.p10)} to {_digits(found.p90)}"]
    cells.append(None if one.r_squared is None else f"{one.r_squared:.4f}")
    if has_target:
        there = one.arrival
        steps = None if there is None else shown_or_never(there.steps.p50, lambda value: f"{value:,.0f}")
        epochs = (
            None
            if there is None or there.epochs is None
            else shown_or_never(there.epochs.p50, lambda value: f"{value:.1f}")
        )
        cells += [steps, epochs]
    return tuple(cells)


def _digits(value: float) -> str:
    return f"{value:.3g}"


def _remarks(fits: tuple[LossFit, ...]) -> tuple[str, ...]:
    """Every remark once, with how many logs it is about: fifteen logs would say the same fifteen times."""
    about: dict[str, list[str]] = {}
    for one in fits:
        for text in one.remarks:
            about.setdefault(text, []).append(_label(one))
    notes = []
    for text, names in list(about.items())[:_MOST_REMARKS]:
        who = names[0] if len(names) == 1 else f"{len(names)} of {len(fits)} logs"
        notes.append(f"{who}: {text}")
    left = len(about) - _MOST_REMARKS
    return (*notes, f"{left} more remarks are in the JSON.") if left > 0 else tuple(notes)


def _label(one: LossFit) -> str:
    parts = [part for part in (one.facts.model or one.path, one.facts.device, one.split) if part]
    return ", ".join(parts)


def _chart(fits: tuple[LossFit, ...]) -> Chart:
    """Every curve; the logged points too, as long as they can be told apart."""
    lines, dots = [], []
    splits = {one.split for one in fits}
    for one in fits:
        name = _label(one) if len(splits) > 1 else _label(one).removesuffix(f", {one.split}")
        steps = np.geomspace(
            max(one.curve.first_step, 1e-3 * one.curve.last_step, 1e-9), one.curve.last_step, _N_PLACES
        )
        b0, b1, b2 = (one.curve.parameters[name] for name in PARAMETERS)
        lines.append(Series(name=name, x=steps.tolist(), y=(1 / (b0 * steps + b1) + b2).tolist()))
        stride = max(1, len(one.series) // _MOST_DOTS)
        if len(fits) <= _MOST_LOGGED:
            steps, values = one.series.steps[::stride], one.series.values[::stride]
            dots.append(Series(name=f"logged: {name}", x=steps.tolist(), y=values.tolist(), is_dots=True))
    return Chart(
        title="Fitted losses",
        kind="line",
        series=(*lines, *dots),
        x_label=fits[0].unit,
        y_label="loss",
        x_show="integer",
        log_y=True,
    )
