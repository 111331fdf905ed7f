"""What every recipe of `traincast train` can be asked for: options that are written down once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.cli.train_options import (
    CheckpointEvery,
    Data,
    Download,
    ForecastOnly,
    ImageSide,
    On,
    Out,
    Price,
    Seed,
    TrainDevice,
    TrainPrecision,
    out_folder,
)
from traincast.hardware.host import THIS_MACHINE
from traincast.recipes.usual import CHECKPOINT_S, DATA

if TYPE_CHECKING:
    from traincast.recipes.data.images import ImageDataset
    from traincast.report.document import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The fields are options of the command, as they are annotated and by default."""

    data: Data = DATA
    seed: Seed = 0
    out: Out = None
    image_side: ImageSide = None
    download: Download = False
    on: On = THIS_MACHINE
    device: TrainDevice = "cpu"
    precision: TrainPrecision = "fp32"
    checkpoint_every: CheckpointEvery = CHECKPOINT_S
    price: Price = None
    forecast_only: ForecastOnly = False
    as_json: AsJson = False
    html: HtmlFile = None
    png: PngFile = None

    @property
    def is_here(self) -> bool:
        """Whether the forecast is for what is going to train. A GPU that trains here is named by --on."""
        return self.on == THIS_MACHINE or self.device != "cpu"

    @property
    def training(self) -> dict[str, Any]:
        """What all settings of a training take over."""
        own = {name: getattr(self, name) for name in ("seed", "device", "precision")}
        return {**own, "checkpoint_s": self.checkpoint_every}

    def folder(self, *parts: str) -> Path:
        """Where it runs; by default what tells the run from others."""
        return out_folder(self.out, *parts, self.data)

    def images(self) -> ImageDataset:
        """The data, fetched with a bar if they may be."""
        from traincast.cli.train_flow import downloading
        from traincast.recipes.data.load import load_dataset

        with downloading() as tell:
            return load_dataset(self.data, image_side=self.image_side, download=self.download, on_progress=tell)

    def show(self, document: Document, data: dict[str, Any], page: Document | None = None) -> None:
        """At the end of the command."""
        from traincast.cli.show import show

        show(document, as_json=self.as_json, html=self.html, png=self.png, data=data, page=page)


def recipe_command(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first parameter is `Asked`: --data comes before its own options, the others after them."""
    hints = get_type_hints(Asked, include_extras=True)
    shared = {
        each.name: inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name]
        )
        for each in fields(Asked)
    }
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    first, *others = shared.values()
    parameters = [first, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own), *others]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        asked = Asked(**{name: given.pop(name) for name in shared})
        command(asked, **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
