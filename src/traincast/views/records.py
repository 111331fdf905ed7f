"""What `traincast records` shows: kinds and campaigns of a store, counted."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from traincast.report.document import Document
from traincast.report.table import Row, Table, columns_of
from traincast.units import show_things
from traincast.views.records_charts import counts_chart, times_charts

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.api.records import ImportedRecords, StoredRecords
    from traincast.records.store import Group

_COLUMNS = columns_of(
    "kind as name, campaign as name, n: records as integer, n_failed: failed, first as name, "
    "last as name, devices: device"
)


def document_of(found: StoredRecords) -> Document:
    """One row per kind and campaign."""
    table = Table(title="Records", columns=_COLUMNS, rows=tuple(_row(group) for group in found.groups))
    return Document(
        title=f"{show_things(found.n, 'record')} in '{found.store}'",
        tables=(table,),
        charts=(*times_charts(found.records), counts_chart(found.groups)) if found.groups else (),
        notes=("Dates are in this machine's time zone; charts show median times as measured.",),
    )


def import_sentence(imported: ImportedRecords, path: str | Path) -> str:
    """What came into the store."""
    n = imported.n_known
    others = f"; {n:,} {'was' if n == 1 else 'were'} there before" if n else ""
    return f"Imported {show_things(imported.n_new, 'record')} from {path}{others}."


def _row(group: Group) -> Row:
    moments = _moment(group.first_s), _moment(group.last_s)
    return (group.kind, group.campaign, group.n, group.n_failed, *moments, ", ".join(group.devices))


def _moment(seconds_since_1970: float) -> str:
    """In the time zone of the reader."""
    return datetime.fromtimestamp(seconds_since_1970).astimezone().strftime("%Y-%m-%d %H:%M")
