"""`traincast devices`: which devices are known?"""

from typing import TYPE_CHECKING, Annotated

import typer

from traincast.cli.options import AsJson, DevicesFile

if TYPE_CHECKING:
    from traincast.hardware.device import Device
    from traincast.report.document import Document


def devices(
    text: Annotated[str, typer.Argument(help="Part of a name, such as v100.", show_default=False)] = "",
    vendor: Annotated[str | None, typer.Option(help="Only this vendor: NVIDIA, AMD.")] = None,
    arch: Annotated[str | None, typer.Option(help="Only this architecture: Volta, Ampere, CDNA2.")] = None,
    min_memory_gib: Annotated[
        float,
        typer.Option("--min-memory", metavar="GIB", help="Only devices with at least this memory.", show_default=False),
    ] = 0.0,
    as_json: AsJson = False,
    devices_file: DevicesFile = None,
) -> None:
    """Which devices are known?

    Example: traincast devices v100 --min-memory 32
    """
    from traincast.cli.show import show
    from traincast.hardware.catalog import all_devices, matching_devices
    from traincast.units import GIB

    known = all_devices(devices_file)
    found = matching_devices(known, text=text, vendor=vendor, arch=arch, min_memory_bytes=min_memory_gib * GIB)
    show(_document(found, n_known=len(known)), as_json=as_json, data={"devices": found})


def _document(found: "tuple[Device, ...]", *, n_known: int) -> "Document":
    from traincast.report.document import Document
    from traincast.report.table import Column, Table

    columns = (
        Column(key="name", header="device"),
        Column(key="year", header="year"),
        Column(key="fp32_flop_per_s", header="fp32", show="flop_per_s"),
        Column(key="fp16_flop_per_s", header="fp16 tensor", show="flop_per_s"),
        Column(key="memory_bytes", header="memory", show="bytes"),
        Column(key="memory_bytes_per_s", header="bandwidth", show="bytes_per_s"),
    )
    rows = tuple(tuple(getattr(device, column.key) or None for column in columns) for device in found)
    table = Table(title="Devices", columns=columns, rows=rows)
    notes = ("Rates are dense peaks; '-' is none or not known. --json has all figures with their sources.",)
    if not found:
        notes = ("Nothing matches; 'traincast devices' without filters lists all.",)
    return Document(title="Devices", subtitle=f"{len(found)} of {n_known} known", tables=(table,), notes=notes)
