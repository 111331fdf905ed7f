"""The names that questions can use."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from traincast.web.replies import DeviceName, MachineName, ModelName, ModelNames, PlaceNames

if TYPE_CHECKING:
    from traincast.frontend.models.named import NamedModel
    from traincast.frontend.models.zoo_model import ZooModel


@lru_cache(maxsize=1)
def model_names() -> ModelNames:
    from traincast.frontend.models.named import named_models
    from traincast.frontend.models.registry import ZOO

    known: list[ZooModel | NamedModel] = [*ZOO.values(), *named_models().values()]
    return ModelNames(
        models=[ModelName(name=one.name, title=one.title, n_parameters=one.n_parameters) for one in known]
    )


@lru_cache(maxsize=1)
def place_names() -> PlaceNames:
    from traincast.hardware.catalog import all_devices
    from traincast.hardware.machines import all_machines
    from traincast.planning.offers import all_offers

    devices = [DeviceName(name=one.name, year=one.year, memory_bytes=one.memory_bytes) for one in all_devices()]
    machines = [
        MachineName(
            name=one.name,
            provider=one.provider,
            devices=f"{one.n_devices}x{one.device}",
            price_usd_per_hour=one.price_usd_per_hour,
            price_date=one.price_date or None,
        )
        for one in all_machines()
    ]
    return PlaceNames(devices=devices, machines=machines, providers=sorted({offer.provider for offer in all_offers()}))
