"""The comparison as one document: a table of sets and methods, a breakdown, charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traincast.errors import InputError, close_names
from traincast.kernels.refit.sets import WEIGHTS
from traincast.report.document import Document
from traincast.report.table import Cell, Column, Table, columns_of
from traincast.validation import charts
from traincast.validation.errors import ErrorSummary
from traincast.validation.layer_rows import LAYER_SETS
from traincast.validation.measured_set import OURS, MeasuredSet, Prediction
from traincast.validation.score import METHODS

_FIGURES = (
    Column(key="n", header="n", show="integer"),
    Column(key="n_unanswered", header="no answer", show="integer"),
    Column(key="median_absolute_fraction", header="median", show="percent"),
    Column(key="mean_absolute_fraction", header="mean", show="percent"),
    Column(key="bias_fraction", header="bias", show="percent"),
    Column(key="coverage_fraction", header="in p10-p90", show="percent"),
    Column(key="coverage_is_right", header="as it should"),
)
NOTES = (
    "Median and mean are of absolute errors relative to what was measured; bias is the median with sign, and positive "
    "is too slow.",
    "Left out is what the fit behind a prediction did not see: all cards of the row's GPU, or all models of its family "
    "in every set; 'set': all rows of the set; 'nothing' saw the rows themselves, and '-' is not fitted.",
    "p10 to p90 should hold 75 to 85 % of 200 rows and more; of fewer, 80 % must not be rejected by a binomial test at "
    "5 %.",
    "Lone ops: all methods are given the floor of a call on the row's own machine; rows at that floor are not scored. "
    "'traincast, foreign floor' takes the median floor of the other machines instead.",
    "Layers: one call of a lone layer, a sample of rows. The host of each machine is fitted on its rows of batch 1, "
    "which are not scored, and given to every method but 'layerwise', whose networks learnt from such calls.",
)


def check_names(names: Sequence[str], methods: Sequence[str]) -> None:
    """Before minutes go by: whether these sets and methods exist."""
    known = [*WEIGHTS, *(each.name for each in LAYER_SETS)]
    for name in names:
        if name not in known:
            raise InputError(f"There is no set '{name}'.{close_names(name, known)} The sets: {', '.join(known)}.")
    for method in methods:
        if method not in METHODS:
            raise InputError(f"There is no method '{method}' to compare; there are {', '.join(METHODS)}.")


def choose(sets: Sequence[MeasuredSet], names: Sequence[str], methods: Sequence[str]) -> list[MeasuredSet]:
    """The sets with these names, and of their predictions those of these methods; none given: all."""
    check_names(names, methods)
    chosen = [measured for measured in sets if not names or measured.name in names]
    kept = [measured.take_methods(lambda name: not methods or name in methods) for measured in chosen]
    found = [measured for measured in kept if measured.predictions]
    if not found:
        raise InputError(f"No method of {', '.join(methods)} has predictions for {', '.join(m.name for m in chosen)}.")
    return found


def document_of(sets: Sequence[MeasuredSet], *, by: str | None = None) -> Document:
    tables = [overview(sets)]
    if by is not None:
        tables.append(breakdown(sets, by))
    shown = [measured for measured in sets if OURS in measured.methods]
    pictures = [charts.methods(sets, title="Median absolute error by method")]
    if by is not None and shown:
        pictures.append(charts.by_tag(shown, by, title=f"Median error by {by}, positive is too slow"))
    return Document(
        title="How wrong are we?",
        subtitle=f"{len(sets)} measured sets, {sum(measured.n_rows for measured in sets):,} rows",
        tables=tuple(tables),
        charts=(*pictures, *(charts.scatter(measured) for measured in shown)),
        notes=NOTES,
    )


def overview(sets: Sequence[MeasuredSet]) -> Table:
    columns = (
        *columns_of("set, method, left_out: left out"),
        *_FIGURES,
    )
    rows = [
        (measured.name, prediction.method, prediction.left_out, *figures(measured.summary(prediction)))
        for measured in sets
        for prediction in measured.predictions
    ]
    return Table(title="Errors by set and method", columns=columns, rows=tuple(rows))


def breakdown(sets: Sequence[MeasuredSet], tag: str) -> Table:
    """One row a value of the tag, for the prediction that each method is judged by."""
    columns = (
        *columns_of("set, method, left_out: left out"),
        Column(key=tag, header="GPU" if tag == "device" else tag),
        *_FIGURES,
    )
    rows = []
    without = [measured.name for measured in sets if tag not in measured.tags]
    for measured in sets:
        if tag not in measured.tags:
            continue
        for prediction in _judged(measured):
            for (value,), summary in measured.summaries_by(tag, prediction=prediction).items():
                rows.append((measured.name, prediction.method, prediction.left_out, value, *figures(summary)))
    if not rows:
        raise InputError(f"None of these sets can be told apart by {tag}: {', '.join(without)}.")
    notes = (f"Without a {tag}: {', '.join(without)}.",) if without else ()
    return Table(title=f"Errors by {tag}", columns=columns, rows=tuple(rows), notes=notes)


def _judged(measured: MeasuredSet) -> list[Prediction]:
    return [measured.prediction(method) for method in measured.methods]


def figures(summary: ErrorSummary) -> tuple[Cell, ...]:
    """Cells under the columns of figures."""
    right = {None: None, True: "yes", False: "NO"}[summary.is_coverage_right]
    return (
        summary.n,
        summary.n_unanswered,
        summary.median_absolute_fraction,
        summary.mean_absolute_fraction,
        summary.bias_fraction,
        summary.coverage_fraction,
        right,
    )


def data_of(sets: Sequence[MeasuredSet], *, by: str | None = None) -> dict[str, Any]:
    """What --json prints."""
    from traincast.report.json_ import to_dict

    tables = {table["title"]: table["rows"] for table in to_dict(document_of(sets, by=by))["tables"]}
    found: dict[str, Any] = {"sets": tables["Errors by set and method"]}
    if by is not None:
        found[f"by_{by}"] = tables[f"Errors by {by}"]
    found["noise"] = {measured.name: measured.noise for measured in sets}
    return found
