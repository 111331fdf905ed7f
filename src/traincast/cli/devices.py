"""`traincast devices`: which devices and machines are known?"""

from typing import TYPE_CHECKING, Annotated

import typer

from traincast.cli.options import AsJson, DevicesFile, HtmlFile, PngFile

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.hardware.device import Device
    from traincast.report.chart import Chart
    from traincast.report.document import Document


def devices(
    text: Annotated[str, typer.Argument(help="Part of a name, such as v100.", show_default=False)] = "",
    vendor: Annotated[str | None, typer.Option(help="Only this vendor: NVIDIA, AMD.")] = None,
    arch: Annotated[str | None, typer.Option(help="Only this architecture: Volta, Ampere, CDNA2.")] = None,
    min_memory_gib: Annotated[
        float,
        typer.Option("--min-memory", metavar="GIB", help="Only devices with at least this memory.", show_default=False),
    ] = 0.0,
    machines: Annotated[
        bool, typer.Option("--machines", help="Machines to rent or buy instead: links, network, price.")
    ] = False,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
    devices_file: DevicesFile = None,
) -> None:
    """Which devices are known?

    Examples: traincast devices v100 --min-memory 32; traincast devices --machines p3
    """
    if machines:
        _show_machines(text, as_json=as_json, html=html, png=png)
        return
    from traincast.cli.show import show
    from traincast.hardware.catalog import all_devices, matching_devices
    from traincast.units import GIB

    known = all_devices(devices_file)
    found = matching_devices(known, text=text, vendor=vendor, arch=arch, min_memory_bytes=min_memory_gib * GIB)
    show(_document(found, n_known=len(known)), as_json=as_json, html=html, png=png, data={"devices": found})


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
    return Document(
        title="Devices",
        subtitle=f"{len(found)} of {n_known} known",
        tables=(table,),
        charts=_chart(found),
        notes=notes,
    )


def _chart(found: "tuple[Device, ...]") -> "tuple[Chart, ...]":
    """What they compute against what they move, both as sold; none where that is known of none."""
    from traincast.report.chart import Chart, Series

    known = [device for device in found if device.fp32_flop_per_s]
    vendors = dict.fromkeys(device.vendor or "other" for device in known)
    series = tuple(
        Series(
            name=vendor,
            x=[device.memory_bytes_per_s for device in own],
            y=[device.fp32_flop_per_s for device in own],
            text=[device.name for device in own],
        )
        for vendor in vendors
        if (own := [device for device in known if (device.vendor or "other") == vendor])
    )
    chart = Chart(
        title="Compute and memory",
        kind="scatter",
        series=series,
        x_label="memory bandwidth",
        y_label="fp32",
        x_show="bytes_per_s",
        y_show="flop_per_s",
        log_x=True,
        log_y=True,
    )
    return (chart,) if series else ()


def _show_machines(text: str, *, as_json: bool, html: "Path | None", png: "Path | None") -> None:
    """Those whose name, provider or device contains the text. Filters of devices say nothing about machines."""
    from traincast.cli.show import show
    from traincast.hardware.machines import all_machines, matching_machines
    from traincast.report.document import Document
    from traincast.report.table import Column, Table

    found = matching_machines(text)
    columns = (
        Column(key="name", header="machine", show="name"),
        Column(key="provider", header="provider"),
        Column(key="devices", header="devices", show="name"),
        Column(key="inside", header="inside", show="name"),
        Column(key="network", header="network", show="name"),
        Column(key="price_usd_per_hour", header="an hour", show="usd"),
        Column(key="price_date", header="price of"),
    )
    rows = tuple(
        (
            machine.name,
            machine.provider,
            f"{machine.n_devices}x{machine.device}",
            machine.inside.name,
            None if machine.network is None else machine.network.name,
            machine.price_usd_per_hour,
            machine.price_date or None,
        )
        for machine in found
    )
    notes = ("Prices are on demand, of whole machines; '-' is not known. --json has regions and sources.",)
    if not found:
        notes = ("Nothing matches; 'traincast devices --machines' lists all.",)
    table = Table(title="Machines", columns=columns, rows=rows)
    subtitle = f"{len(found)} of {len(all_machines())} known"
    show(
        Document(title="Machines", subtitle=subtitle, tables=(table,), notes=notes),
        as_json=as_json,
        html=html,
        png=png,
        data={"machines": found},
    )
