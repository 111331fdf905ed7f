"""One thing about a training step changed again and again, by the name of a model."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.api.runnables import require_torch, runnable_of
from traincast.errors import InputError, TraincastError

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.sweeps.batch import BatchRow, BatchSweep
    from traincast.measurement.sweeps.learning import Problem
    from traincast.measurement.sweeps.optimizers import OptimizerSweep
    from traincast.measurement.sweeps.variants import VariantSweep
    from traincast.measurement.sweeps.workers import WorkersSweep

MAX_STEP_S = 20.0
SYNTHETIC_COST_S = 1e-3  # about what it takes to decode a small photograph
_N_SYNTHETIC = 4096
GPUS_BESIDE = ("T4", "A10", "A100-SXM4-40GB", "H100-SXM5-80GB")
OnRow = Callable[[Any], None]


def sweep_batches(
    model: str,
    *,
    first_batch_size: int = 1,
    max_step_s: float = MAX_STEP_S,
    memory_bytes: int | None = None,
    n_steps: int | None = None,
    optimizer: str = "sgd",
    precision: str = "fp32",
    device: str = "cpu",
    on_row: OnRow | None = None,
    **options: Any,
) -> BatchSweep:
    """Batch sizes times 4 until memory ends, or until a step takes longer than `max_step_s`.

    Each runs in a process of its own that may take `memory_bytes`, by default what is free then, so that only that
    process dies of it.
    """
    require_torch("Measuring a step")
    from traincast.measurement.measure import check_batch_size, check_count_of
    from traincast.measurement.sweeps.batch import sweep_batches as run

    check_batch_size(first_batch_size)
    check_count_of("steps", n_steps)
    if not max_step_s > 0:
        raise InputError(f"A step cannot take at most {max_step_s:g} s: give more than 0.")
    measure = {"n_steps": n_steps, "optimizer": optimizer, "precision": precision, "device": device}
    limits = {"max_step_s": max_step_s, "memory_bytes": memory_bytes}
    attempt = partial(_batch_in_child, model=model, options=options, measure=measure, limits=limits)
    return run(model, attempt, first=first_batch_size, max_step_s=max_step_s, on_row=on_row)


def sweep_workers(
    model: str,
    *,
    batch_size: int,
    data: str | None = None,
    sample_cost_s: float | None = None,
    is_busy: bool = True,
    n_batches: int | None = None,
    optimizer: str = "sgd",
    precision: str = "fp32",
    device: str = "cpu",
    on_row: OnRow | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> WorkersSweep:
    """Loader workers 0, 1, 2, 4 ... until more stop helping.

    `data` is "file.py:function", a function that gives a data set; without it that is `dataset` of the model's own
    file. Where there is none, samples are synthetic, each after `sample_cost_s` of CPU work (or of waiting).
    """
    runnable = runnable_of(model, **options)
    from traincast.measurement.measure import check_batch_size
    from traincast.measurement.sweeps.workers import sweep_workers as run

    check_batch_size(batch_size)
    dataset, name = _find_data(model, data, sample_cost_s, is_busy=is_busy, make_inputs=runnable.make_inputs)
    settings = {"optimizer": optimizer, "precision": precision, "device": device, "n_batches": n_batches}
    return run(runnable, dataset, data=name, batch_size=batch_size, on_row=on_row, on_progress=on_progress, **settings)


def sweep_optimizers(
    model: str,
    *,
    batch_size: int,
    n_epochs: int = 0,
    data: str | None = None,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> OptimizerSweep:
    """The step with every optimizer, and what each learns in `n_epochs`. `settings` are those of `measure`."""
    runnable = runnable_of(model, **(options or {}))
    from traincast.measurement.sweeps.optimizers import sweep_optimizers as run

    if n_epochs < 0:
        raise InputError(f"{n_epochs} epochs cannot be: give 0 to time the step only, or more.")
    return run(runnable, batch_size=batch_size, n_epochs=n_epochs, problem=_problem(data), **settings)


def sweep_variants(
    what: str,
    model: str,
    *,
    batch_size: int,
    data: str | None = None,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> VariantSweep:
    """`what` is "norm", "device", "precision" or "compile"; `settings` are those of `measure`."""
    from traincast.measurement.sweeps.compiling import sweep_compile
    from traincast.measurement.sweeps.variants import sweep_devices, sweep_norm, sweep_precisions

    sweeps = {"norm": sweep_norm, "device": sweep_devices, "precision": sweep_precisions, "compile": sweep_compile}
    if what not in sweeps:
        raise InputError(f"No variants of '{what}': choose {', '.join(sweeps)}.")
    if what == "norm":
        settings["problem"] = _problem(data)
    return sweeps[what](runnable_of(model, **(options or {})), batch_size=batch_size, **settings)


def _problem(data: str | None) -> Problem | None:
    """The images of CIFAR-10 files or of a folder of classes; None: the digits."""
    if data is None:
        return None
    import torch

    from traincast.measurement.sweeps.learning import Problem
    from traincast.recipes.data.load import load_dataset

    dataset = load_dataset(data)
    parts = (dataset.train, dataset.test)
    images = torch.cat([part.images.read(torch.arange(len(part.labels))) for part in parts]).float()
    normal = (images - images.mean()) / images.std()
    labels = torch.cat([torch.as_tensor(part.labels) for part in parts])
    return Problem(name=str(data), images=normal, labels=labels, n_test=len(dataset.test.labels))


def forecasts_beside(
    model: str, *, batch_size: int, precision: str, optimizer: str, options: dict[str, Any]
) -> tuple[tuple[Forecast, ...], str]:
    """What the same step would take on some GPUs that are not here; where it cannot be told, none and why."""
    from traincast.api.forecasts import forecast_many
    from traincast.api.models import load_model

    try:
        trace = load_model(model, **options)
        found = forecast_many(trace, GPUS_BESIDE, [batch_size], precision=precision, optimizer=optimizer)
    except TraincastError as error:  # the measurement stands by itself
        return (), f"No forecast beside it: {error}"
    return found.forecasts(), ""


def _batch_in_child(
    batch_size: int, *, model: str, options: dict[str, Any], measure: dict[str, Any], limits: dict[str, Any]
) -> BatchRow:
    from traincast.measurement.measured import Measurement
    from traincast.measurement.sweeps.batch import BatchRow
    from traincast.measurement.sweeps.child import run_child
    from traincast.measurement.sweeps.process_memory import available_bytes

    request = {
        "model": model,
        "options": options,
        "measure": {**measure, "batch_size": batch_size},
        "max_step_s": limits["max_step_s"],
        "memory_bytes": limits["memory_bytes"] or available_bytes(),
    }
    outcome = run_child("traincast.api.sweep_child", request)
    if outcome.answer is None:
        message = f"{outcome.last_words}."
        if outcome.died_of_memory:
            return BatchRow(batch_size=batch_size, status="out of memory", message=message)
        return BatchRow(batch_size=batch_size, status="failed", message=message)
    answer = dict(outcome.answer)
    if answer["status"] == "mistake":
        raise InputError(answer["message"])
    measured = answer.pop("measurement", None)
    measurement = None if measured is None else Measurement.from_dict(measured)
    return BatchRow(batch_size=batch_size, measurement=measurement, **answer)


def _find_data(
    model: str, data: str | None, cost_s: float | None, *, is_busy: bool, make_inputs: Callable[[int], Any]
) -> tuple[Any, str]:
    """The data set, and how to call it."""
    from traincast.frontend.python_file import call_in_file
    from traincast.measurement.sweeps.loading import check_dataset
    from traincast.measurement.synthetic_data import SyntheticDataset

    own = _own_data(model) if data is None and cost_s is None else None
    where = data or own
    if data is not None and cost_s is not None:
        raise InputError(f"Either the data of '{data}' or synthetic samples of known cost can be loaded, not both.")
    if where is not None:
        return check_dataset(call_in_file(where), where), where
    chosen_s = SYNTHETIC_COST_S if cost_s is None else cost_s
    kind = "CPU work" if is_busy else "waiting"
    name = f"synthetic samples of {1e3 * chosen_s:g} ms {kind} each"
    return SyntheticDataset(make_inputs, _N_SYNTHETIC, chosen_s, is_busy=is_busy), name


def _own_data(model: str) -> str | None:
    """'file.py:dataset', if the file of 'file.py:factory' has such a function."""
    file, _, name = model.rpartition(":")
    if not file.endswith(".py") or not name:
        return None
    tree = ast.parse(Path(file).read_bytes())  # it has been run by now: it can be read, in its own encoding
    has_data = any(isinstance(part, ast.FunctionDef) and part.name == "dataset" for part in tree.body)
    return f"{file}:dataset" if has_data else None
