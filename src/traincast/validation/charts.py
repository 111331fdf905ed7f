"""Charts of errors: predicted against measured, by GPU, by family, and method beside method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traincast.report.chart import Chart, Series
from traincast.validation.bad_cases import row_name
from traincast.validation.errors import groups_of
from traincast.validation.measured_set import OURS, MeasuredSet

_MOST_POINTS = 1500  # more than that nobody tells apart, and a page takes long to load
_MOST_SERIES = 7  # as many as there are colours


def scatter(measured: MeasuredSet) -> Chart:
    """Predicted against measured, one colour a GPU, op or layout, whichever tells most."""
    prediction = measured.prediction()
    chosen = np.zeros(measured.n_rows, dtype=bool)
    rng = np.random.default_rng(0)
    chosen[rng.choice(measured.n_rows, min(measured.n_rows, _MOST_POINTS), replace=False)] = True
    shown = measured.take(chosen)
    return Chart(
        title=f"{measured.name}: predicted without its {prediction.left_out}, against measured",
        kind="scatter",
        series=tuple(
            Series(
                name=name,
                x=shown.observed_s[rows].tolist(),
                y=shown.prediction().seconds[rows].tolist(),
                text=[row_name(shown, row) for row in np.flatnonzero(rows).tolist()],
            )
            for name, rows in _colours(shown).items()
        ),
        x_label="measured",
        y_label="predicted",
        x_show="duration",
        y_show="duration",
        log_x=True,
        log_y=True,
        diagonal=True,
    )


def _colours(measured: MeasuredSet) -> dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """The tag with the most values that there are colours for; else one colour."""
    best: dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {"rows": np.ones(measured.n_rows, dtype=bool)}
    for tag in ("device", "family", "suite", "op"):
        if tag in measured.tags:
            groups = {key[0]: rows for key, rows in groups_of(measured.tags, [tag]).items()}
            if len(best) < len(groups) <= _MOST_SERIES:
                best = groups
    return best


def by_tag(sets: Sequence[MeasuredSet], tag: str, *, title: str, most: int = 30) -> Chart:
    """Median errors with sign: above zero is too slow. Groups in order of name, sets side by side."""
    series, names = [], set()
    for measured in sets:
        if tag not in measured.tags:
            continue
        found = {key[0]: summary for key, summary in measured.summaries_by(tag).items()}
        names |= set(found)
        series.append((measured.name, found))
    if len(names) > most:
        worst = {name: max(abs(found[name].bias_fraction) for _, found in series if name in found) for name in names}
        names = set(sorted(names, key=lambda name: -worst[name])[:most])
    order = sorted(names)
    return Chart(
        title=title,
        kind="bar",
        series=tuple(
            Series(
                name=set_name,
                x=order,
                y=[found[name].bias_fraction if name in found else None for name in order],
            )
            for set_name, found in series
        ),
        x_label="GPU" if tag == "device" else tag,
        y_label="median error",
        y_show="percent",
    )


def methods(sets: Sequence[MeasuredSet], *, title: str) -> Chart:
    """Median absolute error of every method that answers at least half of a set's rows."""
    names = list(dict.fromkeys(method for measured in sets for method in measured.methods))
    names.sort(key=lambda name: name != OURS)
    rows = []
    for name in names[:_MOST_SERIES]:
        heights: list[float | None] = []
        for measured in sets:
            found = measured.summary(measured.prediction(name)) if name in measured.methods else None
            answers = found is not None and found.n >= found.n_unanswered
            heights.append(found.median_absolute_fraction if found is not None and answers else None)
        rows.append(Series(name=name, x=[measured.name for measured in sets], y=heights))
    return Chart(
        title=title,
        kind="bar",
        series=tuple(rows),
        x_label="set",
        y_label="median absolute error",
        y_show="percent",
    )
