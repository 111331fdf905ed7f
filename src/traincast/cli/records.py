"""`traincast records`: what was measured so far?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.errors import InputError
from traincast.units import show_things

if TYPE_CHECKING:
    from traincast.measurement.record import Record
    from traincast.measurement.store import Group
    from traincast.report.document import Document
    from traincast.report.table import Row


def records(
    store: Annotated[Path, typer.Argument(metavar="FILE", help="A store, as 'traincast bench' writes it.")],
    kind: Annotated[str | None, typer.Option("--kind", help="Only this kind: layer, op, ...")] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write all columns to a .csv or .parquet file.")
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option("--tables", metavar="DIR", help="Write layers and ops with the columns of the public timings."),
    ] = None,
    import_from: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="First add what others measured: a trace or CSV.")
    ] = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What was measured so far, and by what?

    Example: traincast records measured.db --kind layer --export layers.csv
    """
    from traincast.cli.show import show
    from traincast.measurement.store import Store

    if import_from is not None:
        _import(store, import_from)
    with Store(store, create=False) as opened:
        groups = opened.groups(kind)
        if export is not None:
            from traincast.measurement.export import export as write

            typer.echo(f"Wrote {show_things(write(opened.rows(kind), export), 'record')} to {export}", err=True)
        if tables is not None:
            from traincast.measurement.public_tables import write_public_tables

            for path in write_public_tables(opened.rows(kind), tables):
                typer.echo(f"Wrote {path}", err=True)
        found = opened.records(kind) if html is not None or png is not None else []
    document = _document(store, groups, found)
    show(document, as_json=as_json, html=html, png=png, data={"store": str(store), "groups": groups})


def _import(store: Path, path: Path) -> None:
    """The file is read first: one that is no measurement leaves no store behind."""
    from traincast.measurement.imports.read import read_measured
    from traincast.measurement.store import Store

    found = read_measured(path)
    if store.exists() and store.samefile(path):
        raise InputError(f"'{path}' is the store itself: what it holds is there.")
    with Store(store) as opened:
        n_new = opened.add_all(found, campaign=path.name)
    n_known = len(found) - n_new
    others = f"; {n_known:,} {'was' if n_known == 1 else 'were'} there before" if n_known else ""
    typer.echo(f"Imported {show_things(n_new, 'record')} from {path}{others}.", err=True)


def _document(store: Path, groups: "list[Group]", found: "list[Record]") -> "Document":
    from traincast.report.document import Document
    from traincast.report.table import Column, Table
    from traincast.views.records_charts import counts_chart, times_charts

    table = Table(
        title="Records",
        columns=(
            Column(key="kind", header="kind", show="name"),
            Column(key="campaign", header="campaign", show="name"),
            Column(key="n", header="records", show="integer"),
            Column(key="n_failed", header="failed", show="integer"),
            Column(key="first", header="first", show="name"),
            Column(key="last", header="last", show="name"),
            Column(key="devices", header="device"),
        ),
        rows=tuple(_row(group) for group in groups),
    )
    n = sum(group.n for group in groups)
    return Document(
        title=f"{show_things(n, 'record')} in '{store}'",
        tables=(table,),
        charts=(*times_charts(found), counts_chart(groups)) if groups else (),
        notes=("Moments are in the time zone of this machine; times in charts are medians as measured.",),
    )


def _row(group: "Group") -> "Row":
    moments = _moment(group.first_s), _moment(group.last_s)
    return (group.kind, group.campaign, group.n, group.n_failed, *moments, ", ".join(group.devices))


def _moment(seconds_since_1970: float) -> str:
    """In the time zone of the reader."""
    from datetime import datetime

    return datetime.fromtimestamp(seconds_since_1970).astimezone().strftime("%Y-%m-%d %H:%M")
