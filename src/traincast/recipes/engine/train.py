"""One training run in one folder: begun, gone on with, or found finished."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from traincast.errors import TrainingError
from traincast.recipes.data.images import ImageDataset
from traincast.recipes.engine.checkpoint import load_weights
from traincast.recipes.engine.feed import Feed, feed_of
from traincast.recipes.engine.folder import RunFolder
from traincast.recipes.engine.identity import identity_of
from traincast.recipes.engine.interrupt import deferred_interrupt
from traincast.recipes.engine.loop import Loop
from traincast.recipes.engine.numerics import Numerics
from traincast.recipes.engine.progress import Progress
from traincast.recipes.engine.result import TrainResult, result_from
from traincast.recipes.engine.settings import TrainSettings, check_device


def train(  # noqa: PLR0913  (what to train, on what, how, where, and who is told)
    module: nn.Module,
    data: ImageDataset,
    settings: TrainSettings,
    folder: Path,
    *,
    name: str,
    weights: Tensor | None = None,
    on_progress: Progress | None = None,
) -> TrainResult:
    """Trains the module itself on a data set; see `train_on`. `weights` draw training images by weight."""
    chosen = settings.of(data)
    return train_on(module, feed_of(data, chosen, weights), chosen, folder, name=name, on_progress=on_progress)


def train_on(
    module: nn.Module,
    feed: Feed,
    settings: TrainSettings,
    folder: Path,
    *,
    name: str,
    on_progress: Progress | None = None,
) -> TrainResult:
    """Trains the module itself and leaves it, trained, on the device.

    A folder in which the same run has ended gives its result and its weights at once, or the error that ended it; one
    in which it was broken off goes on from its checkpoint, bit for bit as if nothing had happened (on a CPU, with as
    many threads). Parts of the
    module that are in evaluation mode stay in it, and weights without gradients stay as they are.
    """
    check_device(settings.device)
    run_folder = RunFolder(Path(folder))
    gpus = [torch.device(settings.device)] if settings.is_on_cuda else []
    Numerics(settings.device, settings.precision).place(module)  # first: what it starts from is what is trained
    with run_folder.held():
        run_folder.claim(identity_of(name, module, settings, feed.identity))
        finished = run_folder.result()
        if finished is not None:
            load_weights(module, run_folder.checkpoint_path)
            return result_from(finished, log_path=run_folder.log_path, checkpoint_path=run_folder.checkpoint_path)
        try:
            with torch.random.fork_rng(devices=gpus), deferred_interrupt() as interrupt:
                result = Loop(module, feed, settings, run_folder, name=name).run(interrupt, on_progress)
        except TrainingError as error:
            run_folder.finish_diverged(str(error))
            raise
        run_folder.finish(result.to_dict())
    return result
