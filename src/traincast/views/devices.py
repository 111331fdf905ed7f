"""What `traincast devices` shows: devices as sold, or machines as rented, with what they do for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.units import show_flop_per_s, show_usd

if TYPE_CHECKING:
    from traincast.api.listings import DeviceList, MachineList
    from traincast.hardware.device import Device
    from traincast.hardware.machines import Machine

_DEVICE = columns_of(
    "name: device, year, fp32_flop_per_s: fp32, tensor_flop_per_s: 16 bit, memory_bytes: memory, "
    "memory_bytes_per_s: bandwidth"
)
_MACHINE = columns_of(
    "name: machine as name, provider, devices as name, inside as name, network as name, "
    "price_usd_per_hour: per hour, price_date: price of"
)


def devices_document(known: DeviceList) -> Document:
    """One row per device; the sources of the figures are in its JSON."""
    found = known.devices
    rows = tuple(
        (
            device.name,
            device.year,
            device.fp32_flop_per_s,
            max(device.fp16_flop_per_s or 0, device.bf16_flop_per_s or 0) or None,
            device.memory_bytes,
            device.memory_bytes_per_s,
        )
        for device in found
    )
    notes = (
        "Rates are dense peaks: fp32 without matrix units, 16 bit (fp16 or bf16) with them; '-' is none or unknown. "
        "--json has all figures with their sources.",
    )
    return Document(
        title="Devices",
        subtitle=f"{len(found)} of {known.n_known} known",
        tables=(Table(title="Devices", columns=_DEVICE, rows=rows),),
        charts=_devices_chart(found),
        notes=notes if found else ("Nothing matches; 'traincast devices' without filters lists all.",),
    )


def _devices_chart(found: Sequence[Device]) -> tuple[Chart, ...]:
    """What they compute against what they move, both as sold; none where that is known of none."""
    known = [device for device in found if device.fp32_flop_per_s]
    vendors = dict.fromkeys(device.vendor or "other" for device in known)
    series = tuple(
        Series(
            name=vendor,
            x=[device.memory_bytes_per_s for device in own],
            y=[device.fp32_flop_per_s for device in own],
            text=[device.name for device in own],
            labels=[device.name for device in own],
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


def machines_document(known: MachineList) -> Document:
    """One row per machine, rented as a whole."""
    found = known.machines
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
    notes = ("Prices are on demand, for whole machines; '-' is unknown. --json has regions and sources.",)
    return Document(
        title="Machines",
        subtitle=f"{len(found)} of {known.n_known} known",
        tables=(Table(title="Machines", columns=_MACHINE, rows=rows),),
        charts=_prices_chart(found),
        notes=notes if found else ("Nothing matches; 'traincast devices --machines' lists all.",),
    )


def _prices_chart(found: Sequence[Machine]) -> tuple[Chart, ...]:
    """What all devices of a machine compute against its price; none where no price is known."""
    from traincast.hardware.catalog import find_device

    points: dict[str, list[tuple[str, float, float]]] = {}
    for machine in found:
        rate = find_device(machine.device).fp32_flop_per_s
        if machine.price_usd_per_hour and rate:
            own = points.setdefault(machine.provider, [])
            own.append((machine.name, machine.price_usd_per_hour, machine.n_devices * rate))
    chart = Chart(
        title="Price and compute of machines",
        kind="scatter",
        series=tuple(
            Series(
                name=provider,
                x=[usd for _, usd, _ in own],
                y=[rate for _, _, rate in own],
                text=[f"{name}: {show_usd(usd)} an hour, {show_flop_per_s(rate)}" for name, usd, rate in own],
                labels=[name for name, _, _ in own],
            )
            for provider, own in points.items()
        ),
        x_label="an hour",
        y_label="fp32 of all devices",
        x_show="usd",
        y_show="flop_per_s",
        log_x=True,
        log_y=True,
    )
    return (chart,) if points else ()
