"""What was measured so far: the records of a store, into it from other files and out of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError
from traincast.options import listing as o
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.records.record import Record
    from traincast.records.spread import Spread
    from traincast.records.store import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecords:
    """How many records of each kind and campaign a store holds; and the records themselves, where asked for."""

    store: Path
    groups: tuple[Group, ...]
    records: tuple[Record, ...] = ()

    @property
    def n(self) -> int:
        return sum(group.n for group in self.groups)

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        from traincast.report.json_ import plain

        return {"store": str(self.store), "groups": plain(self.groups)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRecords:
    """What a file of somebody else's measurements added to a store."""

    n_new: int
    n_known: int  # that were there before


@question
def stored_records(store: o.StoreToRead, *, kind: o.RecordKind = None, with_records: bool = False) -> StoredRecords:
    """What a store holds; `with_records` also the records, which charts need."""
    from traincast.records.store import Store

    with Store(store, create=False) as opened:
        records = opened.records(kind) if with_records else ()
        return StoredRecords(store=Path(store), groups=tuple(opened.groups(kind)), records=tuple(records))


@question
def record_spreads(store: o.StoreToRead, *, kind: o.RecordKind = None) -> tuple[Spread, ...]:
    """How far equal measurements lie apart, within machines and between machines with the same device."""
    from traincast.records.spread import spreads_of
    from traincast.records.store import Store

    with Store(store, create=False) as opened:
        found = spreads_of(opened.records(kind))
    if not found:
        raise InputError(
            f"'{store}' holds nothing that was measured twice: measure again, or import another machine's."
        )
    return found


@question
def import_records(store: o.StoreToRead, import_from: o.ImportFile) -> ImportedRecords:
    """Adds what others measured: a trace, a CSV table or another store.

    The file is read first: one that is no measurement leaves no store behind.
    """
    from traincast.records.imports.read import read_measured
    from traincast.records.store import Store

    store, path = Path(store), Path(import_from)
    found = read_measured(path)
    if store.exists() and store.samefile(path):
        raise InputError(f"'{path}' is the store itself: its records are already there.")
    with Store(store) as opened:
        n_new = opened.add_all(found, campaign=path.name)
    return ImportedRecords(n_new=n_new, n_known=len(found) - n_new)


@question
def export_records(store: o.StoreToRead, export_to: o.ExportFile, *, kind: o.RecordKind = None) -> int:
    """Writes records with all their columns to a .csv or .parquet file, and says how many."""
    from traincast.records.export import export
    from traincast.records.store import Store

    with Store(store, create=False) as opened:
        return export(opened.rows(kind), Path(export_to))


@question
def export_tables(store: o.StoreToRead, folder: o.TablesFolder, *, kind: o.RecordKind = None) -> list[Path]:
    """Writes layers and ops as tables with the columns of the public timings, and says which files."""
    from traincast.microbenchmarks.public_tables import write_public_tables
    from traincast.records.store import Store
    from traincast.report.input_files import naming

    with naming(store), Store(store, create=False) as opened:
        return list(write_public_tables(opened.rows(kind), Path(folder)))
