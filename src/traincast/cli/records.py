"""`traincast records`: what was measured so far?"""

import typer

from traincast.api.records import export_records, export_tables, import_records, record_spreads, stored_records
from traincast.cli.command import CommandLine, command
from traincast.options import catalog as o

_NOT_ASKED = {"import_from": None, "export_to": None, "folder": None}


def _own(*, spread: o.RecordSpread = False) -> None:
    """Options of the command alone."""


@command(stored_records, export_records, export_tables, import_records, own=_own, defaults=_NOT_ASKED)
def records(line: CommandLine) -> None:
    """What was measured so far, and by what?

    Examples: traincast records measured.db --kind layer --export layers.csv; traincast records measured.db --spread
    """
    from traincast.units import show_things
    from traincast.views.records import document_of, import_sentence

    asked = line.options
    if asked["import_from"] is not None:
        imported = import_records(**line.options_of(import_records))
        typer.echo(import_sentence(imported, asked["import_from"]), err=True)
    if asked["export_to"] is not None:
        n = export_records(**line.options_of(export_records))
        typer.echo(f"Wrote {show_things(n, 'record')} to {asked['export_to']}", err=True)
    if asked["folder"] is not None:
        for path in export_tables(**line.options_of(export_tables)):
            typer.echo(f"Wrote {path}", err=True)
    if line.own["spread"]:
        from traincast.views.record_spread import document_of as spread_document

        spreads = record_spreads(**line.options_of(record_spreads))
        line.show(spread_document(asked["store"], spreads), lambda: {"spreads": [one.to_dict() for one in spreads]})
        return
    found = stored_records(**line.options_of(stored_records), with_records=line.has_charts)
    line.show(document_of(found), found.to_dict)
