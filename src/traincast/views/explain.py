"""What `traincast explain` shows: a step by phase and by kind of op, predicted beside measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traincast.forecasting.assumptions import step_assumptions_of
from traincast.planning.advice import Advice
from traincast.planning.gap import Gap, GapRow
from traincast.planning.verdict import verdict
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Table, columns_of
from traincast.views.advice import left_out_note, module_table, op_table, roofline_figure, what_if_table
from traincast.views.answer_rows import bound_table
from traincast.views.verdicts import fit_of, with_spread

_LEAST_SHOWN = 0.005  # of the step: kinds below are added up in one row
_PREDICTED = Column(key="predicted_s", header="predicted", show="duration")
_MEASURED = columns_of("measured_s: measured, difference_s: difference, ratio: measured / predicted")
_SHARE = Column(key="predicted_fraction", header="share", show="percent")


def document_of(gap: Gap) -> Document:
    """Verdict, tables and charts. With a measured step, the table of predicted ops is left out."""
    answer, advice = gap.forecast, gap.advice
    question = answer.question
    settings = question.run_settings
    parts = [settings.precision, question.update_name, *settings.extras, f"method {question.method.name}"]
    parts.append("predicted only" if gap.measured is None else f"measured: {gap.measured.source}")
    return Document(
        title=f"Why {answer.model} takes its time on {answer.place}, batch {answer.batch_size:,}",
        subtitle=", ".join(parts),
        verdict=_verdict(gap),
        tables=(_phases(gap), _kinds(gap), *_predicted(gap, advice), what_if_table(advice)),
        charts=(_chart(gap), roofline_figure(advice)),
        warnings=answer.warnings,
        notes=(*left_out_note(advice), *_notes(gap)),
        assumptions=step_assumptions_of(question),
    )


def _verdict(gap: Gap) -> str:
    """A measured step is compared with the prediction; without one, the prediction opens with its numbers."""
    sentences = verdict(gap)
    if gap.measured is None:
        sentences = (fit_of(gap.forecast), f"Step {with_spread(gap.forecast, 'step_s', 'duration')}.", *sentences)
    return " ".join(sentences)


def _predicted(gap: Gap, advice: Advice) -> tuple[Table, ...]:
    if gap.measured is not None:
        return ()
    return bound_table(gap.forecast.bound_s), op_table(advice), module_table(advice)


def _phases(gap: Gap) -> Table:
    rows = [*gap.phases, gap.step]
    columns = (Column(key="phase", header="phase", show="name"), _PREDICTED)
    if gap.measured is None:
        return Table(
            title="By phase",
            columns=(*columns, _SHARE),
            rows=tuple((row.name, row.predicted_s, _share(row, gap)) for row in rows),
        )
    return Table(title="By phase", columns=(*columns, *_MEASURED), rows=tuple(_cells(row) for row in rows))


def _kinds(gap: Gap) -> Table:
    columns = (Column(key="kind", header="kind of work", show="name"), _PREDICTED)
    rates = columns_of("flop_per_s: FLOP/s, bytes_per_s: bytes/s")
    rows = _shown(gap)
    if gap.has_kinds:
        return Table(
            title="By kind of work, largest difference first",
            columns=(*columns, *_MEASURED, *rates),
            rows=tuple((*_cells(row), row.flop_per_s, row.bytes_per_s) for row in rows),
            notes=("FLOP/s and bytes/s are what the run achieved, with the fewest bytes that the ops have to move.",),
        )
    notes = () if gap.measured is None else ("The measurement does not distinguish kinds of work.",)
    return Table(
        title="By kind of work, as predicted",
        columns=(*columns, _SHARE, *rates),
        rows=tuple((row.name, row.predicted_s, _share(row, gap), row.flop_per_s, row.bytes_per_s) for row in rows),
        notes=notes,
    )


def _shown(gap: Gap) -> list[GapRow]:
    """Kinds that are small on both sides become one row."""
    least_s = _LEAST_SHOWN * max(gap.step.predicted_s, gap.step.measured_s or 0.0)
    small = [row for row in gap.kinds if max(row.predicted_s, row.measured_s or 0.0) < least_s]
    rows = [row for row in gap.kinds if row not in small]
    if len(small) < 2:
        return list(gap.kinds)
    measured_s = sum(row.measured_s or 0.0 for row in small) if gap.has_kinds else None
    return [
        *rows,
        GapRow(name="all others", predicted_s=sum(row.predicted_s for row in small), measured_s=measured_s),
    ]


def _cells(row: GapRow) -> tuple[Any, ...]:
    return row.name, row.predicted_s, row.measured_s, row.difference_s, row.ratio


def _share(row: GapRow, gap: Gap) -> float | None:
    return row.predicted_s / gap.step.predicted_s if gap.step.predicted_s else None


def _chart(gap: Gap) -> Chart:
    """Largest bars first: here it matters what a step is made of, not only where it differs."""
    by_kind = gap.measured is None or gap.has_kinds
    rows: Sequence[GapRow] = _shown(gap) if by_kind else gap.phases
    has_measured = gap.measured is not None and all(row.measured_s is not None for row in rows) and bool(rows)
    if gap.measured is not None and not has_measured:
        rows, has_measured = [gap.step], True
    rows = sorted(rows, key=lambda row: -max(row.predicted_s, row.measured_s or 0.0))
    names = [row.name for row in rows]
    series = [Series(name="predicted", x=names, y=[row.predicted_s for row in rows])]
    if has_measured:
        series.append(Series(name="measured", x=names, y=[row.measured_s for row in rows]))
    return Chart(
        title=f"One step of {gap.forecast.model} on {gap.forecast.place}, batch {gap.forecast.batch_size:,}",
        kind="bar",
        series=tuple(series),
        x_label="kind of work" if by_kind else "phase",
        y_label="time of a step",
        y_show="duration",
    )


def _notes(gap: Gap) -> tuple[str, ...]:
    measured = () if gap.measured is None else gap.measured.notes
    return (
        *measured,
        "In the roofline, an op that is not a matrix product counts one flop per element that it writes; a reduction "
        "counts one per element that it reads.",
    )
