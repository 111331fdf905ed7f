"""`traincast records`: what was measured so far?"""

import typer

from traincast.api.records import export_records, export_tables, import_records, stored_records
from traincast.cli.command import CommandLine, command

_NOT_ASKED = {"import_from": None, "export_to": None, "folder": None}


@command(stored_records, export_records, export_tables, import_records, defaults=_NOT_ASKED)
def records(line: CommandLine) -> None:
    """What was measured so far, and by what?

    Example: traincast records measured.db --kind layer --export layers.csv
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
    found = stored_records(**line.options_of(stored_records), with_records=line.has_charts)
    line.show(document_of(found), found.to_dict)
