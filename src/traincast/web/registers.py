"""The names that questions can use."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING

from traincast.web import usual_runs
from traincast.web.replies import DeviceName, MachineName, ModelName, ModelNames, PlaceNames, UsualRun
from traincast.web.usual_runs import usual_run

if TYPE_CHECKING:
    from traincast.frontend.models.named import NamedModel
    from traincast.frontend.models.zoo_model import ZooModel


@lru_cache(maxsize=1)
def model_names() -> ModelNames:
    from traincast.frontend.models.named import named_models
    from traincast.frontend.models.registry import ZOO

    zoo, named = ZOO.values(), named_models().values()
    return ModelNames(models=[*(_model(one, None) for one in zoo), *(_model(one, usual_run(one)) for one in named)])


def _model(one: ZooModel | NamedModel, usual: usual_runs.UsualRun | None) -> ModelName:
    told = None if usual is None else UsualRun(**asdict(usual))
    return ModelName(name=one.name, title=one.title, n_parameters=one.n_parameters, usual=told)


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
