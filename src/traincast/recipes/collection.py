"""A grid of trainings from scratch as tasks of a campaign: what predictive models of learning curves are made from.

Every run has a folder of its own with the log that `traincast converge` reads. A run that was killed goes on from its
checkpoint when the campaign comes back to it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import InputError
from traincast.recipes.usual import DATA, SCRATCH
from traincast.records.record import Settings, Values
from traincast.records.work_list import Task

if TYPE_CHECKING:
    from traincast.recipes.data.images import ImageDataset
    from traincast.recipes.scratch import ScratchRecipe
    from traincast.records.campaign import Run

KIND, CAMPAIGN = "training", "collection"
_AXES = ("models", "devices", "n_epochs", "seeds")
COMMON_FILE, _RUNS = "common.json", "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Every model on every device for every number of epochs with every seed; all else is common to them.

    A path of data becomes a whole one: tasks may run in another folder, on another machine.
    """

    models: tuple[str, ...]
    devices: tuple[str, ...] = ("cpu",)
    n_epochs: tuple[int, ...] = (1,)
    seeds: tuple[int, ...] = (0,)
    data: str = DATA
    image_side: int | None = None  # None: as the data are
    batch_size: int = SCRATCH.batch_size
    learning_rate: float = SCRATCH.learning_rate
    optimizer: str = SCRATCH.optimizer
    weight_decay: float = SCRATCH.weight_decay
    precision: str = "fp32"

    def __post_init__(self) -> None:
        for name in _AXES:
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise InputError(f"A grid needs at least one of its {name}, each only once, not {list(values)}.")
        if Path(self.data).expanduser().exists():
            object.__setattr__(self, "data", str(Path(self.data).expanduser().resolve()))

    @property
    def common(self) -> dict[str, Any]:
        """What all runs share."""
        return {name: value for name, value in asdict(self).items() if name not in _AXES}

    def tasks(self) -> list[Task]:
        """One a run. Short ones first: an early end leaves whole curves of as many as possible."""
        axes = itertools.product(sorted(self.n_epochs), self.models, self.seeds, self.devices)
        return [
            Task(KIND, {"model": model, "device": device, "n_epochs": n_epochs, "seed": seed, **self.common})
            for n_epochs, model, seed, device in axes
        ]


def run_name(settings: Settings) -> str:
    """The folder of a run."""
    device = str(settings["device"]).replace(":", "")
    return f"{settings['model']}-{device}-{settings['n_epochs']}epochs-seed{settings['seed']}"


def run_folder(folder: Path, settings: Settings) -> Path:
    return folder / _RUNS / run_name(settings)


def runner(folder: Path, *, download: bool = False) -> Run:
    """What does a task, with its logs below this folder; `download` lets a machine without the data fetch them."""
    return partial(train_task, folder=str(folder.resolve()), download=download)


def recipe_of(settings: Settings, data: ImageDataset) -> ScratchRecipe:
    """The training that a task asks for."""
    from traincast.recipes.engine.settings import TrainSettings
    from traincast.recipes.scratch import ScratchRecipe

    names = ("n_epochs", "batch_size", "learning_rate", "optimizer", "weight_decay", "seed", "device", "precision")
    chosen: dict[str, Any] = {name: settings[name] for name in names}
    return ScratchRecipe(model=str(settings["model"]), data=data, settings=TrainSettings(**chosen))


def data_of(settings: Settings, *, download: bool = False) -> ImageDataset:
    """What a task trains on."""
    from traincast.recipes.data.load import load_dataset

    side = settings["image_side"]
    return load_dataset(str(settings["data"]), image_side=None if side is None else int(side), download=download)


def train_task(settings: Settings, *, folder: str, download: bool = False) -> Values:
    """One training from scratch; begun, gone on with, or found finished in its folder."""
    own = run_folder(Path(folder), settings)
    recipe = recipe_of(settings, data_of(settings, download=download))
    with _alone(own):
        found = recipe.run(own).training.to_dict()
    return {"run": own.name, **{key: value for key, value in found.items() if not key.endswith("_path")}}


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Waits for another process that is at this very run: after its lease a task may be given to a second one.

    The second then finds the run finished. The system lets go of the lock when a process ends, however it ends.
    """
    from traincast.recipes.engine.folder import make_folder

    try:
        import fcntl
    except ImportError:  # a system without it has no leases that end early on one machine either
        yield
        return
    make_folder(folder)
    with (folder / ".campaign").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
