"""`traincast devices`: which devices and machines are known?"""

from traincast.api.listings import list_devices, list_machines
from traincast.cli.command import CommandLine, command
from traincast.errors import InputError
from traincast.options import listing as o


def _own(*, machines: o.Machines = False) -> None:
    """Options of the command alone."""


@command(list_devices, own=_own)
def devices(line: CommandLine) -> None:
    """Which devices are known?

    Examples: traincast devices v100 --min-memory 32; traincast devices --machines p3
    """
    from traincast.views.devices import devices_document, machines_document

    if not line.own["machines"]:
        known = list_devices(**line.options)
        line.show(devices_document(known), known.to_dict)
        return
    if line.options["devices"] is not None:
        raise InputError("A file of devices lists no machines: leave out --devices or --machines.")
    rented = list_machines(**line.options_of(list_machines))
    line.show(machines_document(rented), rented.to_dict)
