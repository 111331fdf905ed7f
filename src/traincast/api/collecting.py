"""A collection of training runs: trained, and every log fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from traincast.api.recipe_forecast import forecasts_to_dict
from traincast.api.recipes import folder_of
from traincast.api.runnables import require_torch
from traincast.errors import TraincastError
from traincast.hardware.host import THIS_MACHINE
from traincast.options import catalog as o
from traincast.options.question import question
from traincast.recipes.usual import COLLECTION_EPOCHS, DATA, MODEL, SCRATCH

if TYPE_CHECKING:
    from traincast.api.recipe_forecast import RecipeForecast
    from traincast.recipes.collection import Grid
    from traincast.recipes.engine.stages import Stage
    from traincast.records.campaign import Progress
    from traincast.records.record import Record


@dataclass(frozen=True, eq=False, kw_only=True)
class CollectionPlan:
    """The runs of a grid, and the folder where they are going to run. It is forecast when that is first asked for."""

    grid: Grid
    stages: tuple[Stage, ...]
    folder: Path
    on: str  # what the forecast is for
    price_usd_per_hour: float | None

    @cached_property
    def forecast(self) -> RecipeForecast | None:
        """On the place that was asked about; None where that stands for no device of the grid."""
        return forecast_collection(self.stages, self.on, price_usd_per_hour=self.price_usd_per_hour)

    @cached_property
    def forecast_here(self) -> RecipeForecast | None:
        """What the runs are compared with."""
        is_elsewhere = self.on != THIS_MACHINE and set(self.grid.devices) == {"cpu"}
        return forecast_collection(self.stages) if is_elsewhere else self.forecast

    def check_devices(self) -> None:
        """Raises where torch cannot train on one of them here."""
        from traincast.recipes.engine.settings import check_device

        for device in self.grid.devices:
            check_device(device)

    def to_dict(self) -> dict[str, Any]:
        """What --forecast-only --json prints."""
        return {"forecast": None if self.forecast is None else self.forecast.to_dict()}

    def answer(self, collection: Collection) -> dict[str, Any]:
        """What --json prints of the runs with their forecast."""
        if self.forecast is None or self.forecast_here is None:
            return {"forecast": None, **collection.to_dict()}
        return {**forecasts_to_dict(self.forecast, self.forecast_here), **collection.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedRun:
    """One run of the grid and the curve through its training loss; `error` says why there is no run, or no curve."""

    name: str
    task: Mapping[str, Any]
    device: str | None = None  # by its name, as the machine that trained calls it
    host: str | None = None
    n_steps: int | None = None
    total_s: float | None = None
    train_loss: float | None = None  # of the last batch
    test_loss: float | None = None
    test_accuracy: float | None = None
    best_test_accuracy: float | None = None
    curve: Mapping[str, float] | None = None  # parameters of the likeliest law
    curve_end: float | None = None  # the fitted training loss at the last step
    log: Path | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A folder of logs, one per run, and what is in them."""

    folder: Path
    progress: Progress | None  # None: nothing was run just now
    runs: tuple[CollectedRun, ...]
    n_left: int

    @property
    def n_failed(self) -> int:
        """Runs that could not be trained to their end."""
        return sum(run.n_steps is None for run in self.runs)

    @property
    def is_in_vain(self) -> bool:
        """Whether all runs were tried and none came to its end."""
        return not self.n_left and self.n_failed == len(self.runs)

    def to_dict(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "progress": None if self.progress is None else asdict(self.progress),
            "n_left": self.n_left,
            "runs": [asdict(run) for run in self.runs],
        }


@question
def plan_collection(
    data: o.Data = DATA,
    *,
    models: o.TrainedModels = (MODEL,),
    n_epochs: o.EpochCounts = COLLECTION_EPOCHS,
    n_seeds: o.Seeds = 1,
    devices: o.TrainDevices = ("cpu",),
    batch_size: o.BatchOfStep = SCRATCH.batch_size,
    learning_rate: o.LearningRate = SCRATCH.learning_rate,
    optimizer: o.TrainOptimizer = SCRATCH.optimizer,
    weight_decay: o.WeightDecay = SCRATCH.weight_decay,
    on: o.ForecastPlace = THIS_MACHINE,
    on_download: Callable[[int, int | None], None] | None = None,
    **shared: Unpack[o.TrainingOptions],
) -> CollectionPlan:
    """Every model for every number of epochs with every seed on every device."""
    require_torch("Training", extra="recipes")
    from traincast.recipes.collection import Grid

    grid = Grid(
        models=tuple(dict.fromkeys(models)),
        devices=tuple(dict.fromkeys(devices)),
        n_epochs=tuple(sorted(set(n_epochs))),
        seeds=tuple(range(n_seeds)),
        data=str(data),
        image_side=shared["image_side"],
        batch_size=batch_size,
        learning_rate=learning_rate,
        optimizer=optimizer,
        weight_decay=weight_decay,
        precision=shared["precision"],
    )
    return CollectionPlan(
        grid=grid,
        stages=tuple(collection_stages(grid, download=shared["download"], on_download=on_download)),
        folder=folder_of(shared["out"], "collect", data),
        on=on,
        price_usd_per_hour=shared["price_usd_per_hour"],
    )


def collection_stages(
    grid: Grid, *, download: bool = False, on_download: Callable[[int, int | None], None] | None = None
) -> list[Stage]:
    """Every run of the grid as a stage, for a forecast. The data are read, and fetched if they may be."""
    from dataclasses import replace
    from functools import partial

    from traincast.recipes.collection import recipe_of, run_name
    from traincast.recipes.data.load import load_dataset
    from traincast.recipes.models import meta_model

    data = load_dataset(grid.data, image_side=grid.image_side, download=download, on_progress=on_download)
    # One callable per model: stages that share it are captured once.
    makers = {model: partial(meta_model, model, data.train.n_classes) for model in grid.models}
    return [
        replace(stage, name=run_name(task.settings), make_module=makers[str(task.settings["model"])])
        for task in grid.tasks()
        for stage in recipe_of(task.settings, data).stages()
    ]


def forecast_collection(
    stages: Sequence[Stage], on: str = THIS_MACHINE, *, price_usd_per_hour: float | None = None
) -> RecipeForecast | None:
    """Of the runs whose device that place stands for: a GPU that is named for those on one, this machine for the rest.

    None where it stands for none of them, as this machine does for runs on its GPUs, until `on` names these.
    """
    from traincast.api.recipe_forecast import forecast_stages

    on_gpus = [stage for stage in stages if stage.device != "cpu"]
    own = [stage for stage in stages if stage.device == "cpu"] if on == THIS_MACHINE else on_gpus or list(stages)
    is_here = on == THIS_MACHINE or bool(on_gpus)
    return forecast_stages(own, on, is_here=is_here, price_usd_per_hour=price_usd_per_hour) if own else None


@question
def collect(
    grid: Grid,
    folder: str | Path,
    *,
    on_ray: o.OnRay = None,
    cpus_per_task: o.CpusPerTask = None,
    retry_failed: o.RetryFailed = False,
    download: o.Download = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Collection:
    """Train the grid, each run in a folder of its own, and fit every log. What is done already is not done again.

    `on_ray` is the address of a Ray cluster ("local" starts one), where a run gets a GPU, or all CPUs of a node unless
    `cpus_per_task` says how many; its machines must all see the folder, and with `download` may fetch the data.
    """
    from traincast.launch.recipe_campaign import run_collection

    if on_ray is None:
        from traincast.recipes.engine.settings import check_device

        for device in grid.devices:
            check_device(device)  # or every run of it would be stored as one that failed

    progress = run_collection(
        grid,
        Path(folder),
        on_ray=on_ray,
        cpus_per_task=cpus_per_task,
        retry_failed=retry_failed,
        download=download,
        on_progress=on_progress,
    )
    return read_collection(grid, folder, progress=progress)


def read_collection(grid: Grid, folder: str | Path, *, progress: Progress | None = None) -> Collection:
    """What is trained by now of the grid, with its curves."""
    from traincast.launch.recipe_campaign import STORE
    from traincast.recipes.collection import CAMPAIGN
    from traincast.records.store import Store

    folder = Path(folder)
    with Store(folder / STORE) as store:
        records = {record.key: record for record in store.records(campaign=CAMPAIGN)}
    tasks = grid.tasks()
    runs = tuple(_run(folder, records[task.key]) for task in tasks if task.key in records)
    return Collection(folder=folder, progress=progress, runs=runs, n_left=len(tasks) - len(runs))


def _run(folder: Path, record: Record) -> CollectedRun:
    from traincast.recipes.collection import run_folder, run_name

    name, task = run_name(record.task), dict(record.task)
    if record.error is not None:
        return CollectedRun(name=name, task=task, host=record.environment.host, error=record.error)
    log, values = run_folder(folder, record.task) / "log.csv", record.values
    known: dict[str, Any] = {
        "name": name,
        "task": task,
        "device": record.environment.device,
        "host": record.environment.host,
        "train_loss": values["final_loss"],
        **{key: values[key] for key in ("n_steps", "total_s", "test_loss", "test_accuracy", "best_test_accuracy")},
    }
    if not log.exists():
        where = f"'{log.parent}' is not here: '{record.environment.host}' wrote it to a folder that is not shared."
        return CollectedRun(**known, error=where)
    try:
        return CollectedRun(**known, log=log, **_fitted(log))
    except TraincastError as error:  # a run of two steps has been trained, though it has no curve
        return CollectedRun(**known, log=log, error=str(error))


def _fitted(path: Path) -> dict[str, Any]:
    """The law of the training loss along its learning rates, as `traincast converge` fits it."""
    from traincast.api.converging import converge

    status = converge(path, metric="loss", split="train")
    curve = status.curve
    if curve is None:
        return {}
    return {"curve": dict(curve.parameters), "curve_end": float(curve.predict(curve.last_step))}
