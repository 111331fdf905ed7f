"""One process's part of a run: epochs on its share of the data, gradients reduced by DistributedDataParallel.

Instants are marked around input, forward, loss, backward and update of every step and read at the end of an epoch, so
that a GPU is never made to wait for the clock. All processes enter an epoch together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from traincast.errors import MeasurementError
from traincast.measurement.processes.group import Group
from traincast.measurement.runnable import Runnable
from traincast.measurement.stopwatch import stopwatch_for
from traincast.measurement.training import Training
from traincast.recipes.data.batches import Batches
from traincast.recipes.data.images import ImageDataset
from traincast.recipes.models import build_model
from traincast.recipes.scaling_experiment.result import PARTS, CellRun, log_path
from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings
from traincast.recipes.scaling_experiment.share import batches_of, training_images
from traincast.recipes.scaling_experiment.split import measure_split
from traincast.records.environment import read_environment
from traincast.report.files import write_file

_HEADER = "epoch,step,loss,acc,lr,seconds"


@dataclass(frozen=True, eq=False, slots=True)
class Epoch:
    """Of one process: seconds by step and part, and the loss and share of right answers of each step's batch."""

    seconds: np.ndarray
    losses: np.ndarray
    accuracies: np.ndarray


def run_cell(
    group: Group, settings: ScalingSettings, cell: Cell, data: ImageDataset, *, log_folder: Path | None = None
) -> CellRun:
    """Train the epochs of a cell, then divide a step of it. All processes get the answer; the first writes the log."""
    batches = batches_of(data, settings, cell, rank=group.rank)
    replica = Replica(group, settings, n_classes=data.train.n_classes)
    epochs = []
    for number in range(settings.n_epochs):
        group.barrier()
        epochs.append(replica.epoch(batches, number))
    n_parameters = replica.n_parameters
    del replica  # its memory is wanted for the next
    of_all = group.gather([epoch.seconds.sum(axis=0) for epoch in epochs])
    by_process = np.array(of_all)  # processes x epochs x parts
    counted_s = by_process[:, 1:].mean(axis=(0, 1))
    loss = float(np.mean(group.gather(float(epochs[-1].losses.mean()))))
    if not np.isfinite(loss):
        raise MeasurementError(
            f"The loss of {settings.model} on {cell.n_devices} devices with {cell.batch_size} samples each is not "
            f"finite: try a learning rate below {settings.learning_rate:g}."
        )
    if group.is_first and log_folder is not None:
        write_file(log_path(log_folder, cell), _log(epochs, settings.learning_rate))
    split = None
    if group.n_processes > 1:
        split = measure_split(group, _runnable(settings, data.train.n_classes, batches), settings, cell)
    return CellRun(
        cell=cell,
        n_samples=training_images(data, settings).n_samples,
        n_parameters=n_parameters,
        epochs_s=tuple(by_process.sum(axis=2).max(axis=0).tolist()),
        parts_s=dict(zip(PARTS, counted_s.tolist(), strict=True)),
        loss=loss,
        accuracy=float(np.mean(group.gather(float(epochs[-1].accuracies.mean())))),
        device=read_environment(group.device).device,
        backend=group.backend,
        split=split,
    )


class Replica:
    """The model in this process, trained for real."""

    def __init__(self, group: Group, settings: ScalingSettings, *, n_classes: int) -> None:
        self._n_right: list[Any] = []
        runnable = _runnable(settings, n_classes, None, on_output=self._count)
        self._training = Training(
            Runnable(
                name=runnable.name,
                module=runnable.module,
                make_inputs=runnable.make_inputs,
                forward=lambda _, inputs: runnable.forward(self._called, inputs),
                loss=runnable.loss,
            ),
            optimizer=settings.optimizer,
            precision=settings.precision,
            device=group.device,
        )
        assert self._training.optimizer is not None  # 'none' is no choice here, and these models have weights
        for weights in self._training.optimizer.param_groups:
            weights["lr"] = settings.learning_rate
        self._called = self._training.module
        if group.n_processes > 1:
            self._called = DistributedDataParallel(self._training.module)
        self._stopwatch = stopwatch_for(group.device)

    @property
    def n_parameters(self) -> int:
        return sum(weight.numel() for weight in self._training.module.parameters())

    def epoch(self, batches: Batches, number: int) -> Epoch:
        """Every batch once."""
        self._n_right = []
        losses, sizes = [], []
        self._stopwatch.mark()
        for images, labels in batches.epoch(number):
            inputs = self._training.to_device((images, labels))
            losses.append(self._training.step(inputs, self._stopwatch))
            sizes.append(len(labels))
        seconds = np.array(self._stopwatch.read()).reshape(len(losses), len(PARTS))
        n_right = torch.stack(self._n_right).cpu().numpy()
        return Epoch(seconds, torch.stack(losses).float().cpu().numpy(), n_right / np.array(sizes))

    def _count(self, output: Any, labels: Any) -> None:
        self._n_right.append((output.detach().argmax(1) == labels).sum())


def _runnable(
    settings: ScalingSettings,
    n_classes: int,
    batches: Batches | None,
    *,
    on_output: Callable[[Any, Any], None] | None = None,
) -> Runnable:
    """The model with the same first weights in every process; its inputs are the first batch of its share."""

    def loss(output: Any, inputs: Any) -> Any:
        if on_output is not None:
            on_output(output, inputs[1])
        return cross_entropy(output.float(), inputs[1])

    def make_inputs(batch_size: int) -> Any:
        assert batches is not None  # epochs bring their own
        return next(batches.epoch(0))

    return Runnable(
        name=settings.model,
        module=build_model(settings.model, n_classes, seed=settings.seed),
        make_inputs=make_inputs,
        forward=lambda module, inputs: module(inputs[0]),
        loss=loss,
    )


def _log(epochs: list[Epoch], rate: float) -> str:
    """Rows of the first process, as `traincast converge` reads them."""
    lines, step, seconds = [_HEADER], 0, 0.0
    for number, epoch in enumerate(epochs, start=1):
        for taken_s, loss, accuracy in zip(epoch.seconds.sum(axis=1), epoch.losses, epoch.accuracies, strict=True):
            step, seconds = step + 1, seconds + float(taken_s)
            lines.append(f"{number},{step},{loss:.9g},{accuracy:.9g},{rate:.9g},{seconds:.4f}")
    return "\n".join(lines) + "\n"
