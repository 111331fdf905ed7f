"""`traincast devices`: which devices and machines are known?"""

from typing import Annotated

import typer

from traincast.cli.options import AsJson, DevicesFile, HtmlFile, PngFile


def devices(
    text: Annotated[str, typer.Argument(help="Part of a name, such as v100.", show_default=False)] = "",
    vendor: Annotated[str | None, typer.Option(help="Only this vendor: NVIDIA, AMD, Google.")] = None,
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
    from traincast.cli.show import show
    from traincast.errors import InputError
    from traincast.hardware.catalog import all_devices, matching_devices
    from traincast.hardware.machines import all_machines, matching_machines
    from traincast.units import GIB
    from traincast.views.devices import devices_document, machines_document

    if machines:
        if devices_file is not None:
            raise InputError("A file of devices lists no machines: leave out --devices or --machines.")
        having = matching_devices(all_devices(), vendor=vendor, arch=arch, min_memory_bytes=min_memory_gib * GIB)
        names = {each.name for each in having}
        rented = tuple(machine for machine in matching_machines(text) if machine.device in names)
        document = machines_document(rented, n_known=len(all_machines()))
        show(document, as_json=as_json, html=html, png=png, data={"machines": rented})
        return
    known = all_devices(devices_file)
    found = matching_devices(known, text=text, vendor=vendor, arch=arch, min_memory_bytes=min_memory_gib * GIB)
    show(devices_document(found, n_known=len(known)), as_json=as_json, html=html, png=png, data={"devices": found})
