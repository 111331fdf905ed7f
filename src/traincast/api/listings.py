"""What is known by name: models of the zoo, devices as sold, machines as rented."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traincast.options import listing as o
from traincast.options.question import question
from traincast.options.step import Devices

if TYPE_CHECKING:
    from traincast.frontend.models.named import NamedModel
    from traincast.frontend.models.zoo_model import ZooModel
    from traincast.hardware.device import Device
    from traincast.hardware.machines import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """Models with a text in their name."""

    models: tuple[ZooModel | NamedModel, ...]
    text: str
    n_known: int

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {"models": [_model_data(model) for model in self.models]}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceList:
    """Devices that match, those of a user's file first."""

    devices: tuple[Device, ...]
    n_known: int

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        from traincast.report.json_ import plain

        return {"devices": plain(self.devices)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineList:
    """Machines that match, or whose devices do."""

    machines: tuple[Machine, ...]
    n_known: int

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        from traincast.report.json_ import plain

        return {"machines": plain(self.machines)}


@question
def list_models(text: o.PartOfModelName = "") -> ModelList:
    """Models whose name contains the text, in any case: those of the zoo, then published ones by name."""
    from traincast.frontend.models.named import named_models
    from traincast.frontend.models.registry import ZOO

    known: dict[str, ZooModel | NamedModel] = {**ZOO, **named_models()}
    found = tuple(model for name, model in known.items() if text.lower() in name.lower())
    return ModelList(models=found, text=text, n_known=len(known))


@question
def list_devices(
    text: o.PartOfDeviceName = "",
    *,
    vendor: o.Vendor = None,
    arch: o.Arch = None,
    min_memory_bytes: o.MinMemoryBytes = 0,
    devices: Devices = None,
) -> DeviceList:
    """Devices whose name or an alias contains the text. `devices` is a file with devices of your own."""
    from traincast.hardware.catalog import all_devices, matching_devices

    known = all_devices(devices)
    found = matching_devices(known, text=text, vendor=vendor, arch=arch, min_memory_bytes=min_memory_bytes)
    return DeviceList(devices=found, n_known=len(known))


@question
def list_machines(
    text: o.PartOfDeviceName = "",
    *,
    vendor: o.Vendor = None,
    arch: o.Arch = None,
    min_memory_bytes: o.MinMemoryBytes = 0,
) -> MachineList:
    """Machines whose name, provider or device contains the text; the other filters are about their devices."""
    from traincast.hardware.catalog import all_devices, matching_devices
    from traincast.hardware.machines import all_machines, matching_machines

    having = matching_devices(all_devices(), vendor=vendor, arch=arch, min_memory_bytes=min_memory_bytes)
    names = {device.name for device in having}
    found = tuple(machine for machine in matching_machines(text) if machine.device in names)
    return MachineList(machines=found, n_known=len(all_machines()))


def _model_data(model: ZooModel | NamedModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "title": model.title,
        "source": model.source,
        "n_parameters": model.n_parameters,
        "options": model.options,
        "multiply_adds": None if model.gmacs is None else round(model.gmacs * 1e9),
        "multiply_adds_source": model.gmacs_source,
    }
