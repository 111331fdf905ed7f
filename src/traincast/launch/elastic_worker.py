"""One worker of an elastic job: its share of every batch, gradients averaged with the other workers over gloo.

The batch of a step is the same on any number of workers: each takes every N-th image of it, and gradients are weighted
by images. The checkpoint is that of a plain run, so a job goes on with another number of workers, or with none of this.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from traincast.errors import InputError, TraincastError
from traincast.launch.elastic_job import ElasticJob, JobFolder, Progress

FINISHED, STOPPED, LOST, FAILED = "finished", "stopped", "lost", "failed"
_LONGEST_WAIT_S = 60.0  # for another worker, and for the last process that trained in the folder
_TELL_S = 0.3
_LEARNING_RATE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRank:
    """Which worker of how many, of which start of the job."""

    folder: str
    rank: int
    n_workers: int
    attempt: int


class _StillHeldError(Exception):
    """Another process trains in the folder."""


def work(job: ElasticJob, place: WorkerRank) -> tuple[str, str]:
    """Trains until the end or until it is asked to stop; says which, and why where it failed."""
    import torch

    torch.set_num_threads(1)  # a device is one CPU
    try:
        is_finished = _train(job, place)
    except _StillHeldError as error:  # no fault of the job
        return LOST, str(error)
    except TraincastError as error:
        return FAILED, str(error)
    except RuntimeError as error:
        from traincast.measurement.processes.group import is_loss_of_another

        if not is_loss_of_another(error):
            raise
        return LOST, str(error).partition("\n")[0]
    return (FINISHED if is_finished else STOPPED), ""


def _train(job: ElasticJob, place: WorkerRank) -> bool:
    from traincast.recipes.data.load import load_dataset
    from traincast.recipes.engine.feed import feed_of
    from traincast.recipes.engine.folder import RunFolder
    from traincast.recipes.engine.identity import identity_of
    from traincast.recipes.engine.interrupt import Interrupt
    from traincast.recipes.engine.loop import Loop
    from traincast.recipes.engine.settings import TrainSettings
    from traincast.recipes.models import build_model

    data = load_dataset("digits")
    settings = TrainSettings(
        n_epochs=job.n_epochs,
        batch_size=job.batch_size,
        learning_rate=_LEARNING_RATE,
        augmentation=data.augmentation,
    )
    module = build_model(job.model, data.train.n_classes, seed=settings.seed)
    whole = feed_of(data, settings)
    folder = JobFolder(Path(place.folder))
    with contextlib.ExitStack() as stack:
        own = RunFolder(folder.run_path)
        if place.rank == 0:
            _hold(own, stack)
            own.claim(identity_of(job.model, module, settings, whole.identity))
            if own.result() is not None:
                return True
        interrupt = Interrupt()
        team = Team(place, folder, interrupt)
        stack.enter_context(team.met())
        if place.rank > 0:
            own = RunFolder(_copy(own, stack))
        team.wait()  # nobody writes before all have read
        share = _Share(whole.train, place.rank, place.n_workers, team)
        loop = Loop(module, replace(whole, train=share), settings, own, name=job.model)
        try:
            result = loop.run(interrupt, _Teller(folder, place) if place.rank == 0 else None)
        except KeyboardInterrupt:
            return False
        if place.rank == 0:
            own.finish(result.to_dict())
    return True


def _hold(folder: Any, stack: contextlib.ExitStack) -> None:
    """Workers of a scheduler that was killed end a moment after it."""
    until_s = time.monotonic() + _LONGEST_WAIT_S
    while True:
        try:
            stack.enter_context(folder.held())
            return
        except InputError as error:
            if time.monotonic() > until_s:
                raise _StillHeldError(str(error)) from None
            time.sleep(0.2)


def _copy(run: Any, stack: contextlib.ExitStack) -> Path:
    """Checkpoint and log for a worker that is not the first: it reads them, and what it writes is thrown away."""
    own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="traincast-worker-")))
    for path in (run.checkpoint_path, run.log_path):
        if path.exists():
            shutil.copy(path, own / path.name)
    return own


class Team:
    """The workers of one start, seen from one of them. In every step they add up gradients, and wishes to stop."""

    def __init__(self, place: WorkerRank, folder: JobFolder, interrupt: Any) -> None:
        self._place, self._folder, self._interrupt = place, folder, interrupt
        self.n_images = 0  # of this worker, in the step at hand

    @contextlib.contextmanager
    def met(self) -> Iterator[None]:
        import torch.distributed as dist
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        from traincast.measurement.processes.group import part

        dist.init_process_group(
            "gloo",
            init_method=self._folder.meeting_place(self._place.attempt).resolve().as_uri(),
            rank=self._place.rank,
            world_size=self._place.n_workers,
            timeout=timedelta(seconds=_LONGEST_WAIT_S),
        )
        hook = register_optimizer_step_pre_hook(self._before_update)
        try:
            yield
        finally:
            hook.remove()
            part()

    def wait(self) -> None:
        import torch.distributed as dist

        dist.barrier()

    def _before_update(self, optimizer: Any, *_: Any) -> None:
        """Gradients become those of the whole batch. All workers learn in the same step that they are to stop."""
        import torch
        import torch.distributed as dist

        weights = [weight for group in optimizer.param_groups for weight in group["params"] if weight.grad is not None]
        is_asked = self._place.rank == 0 and self._folder.is_asked_to_stop(self._place.attempt)
        said = torch.tensor([float(self.n_images), float(is_asked)])
        summed = torch.cat([*(weight.grad.flatten() * self.n_images for weight in weights), said])
        dist.all_reduce(summed)
        n_images, n_asked = summed[-2:].tolist()
        parts = summed[:-2].div_(n_images).split([weight.numel() for weight in weights])
        for weight, part in zip(weights, parts, strict=True):
            weight.grad.copy_(part.view_as(weight))
        if n_asked:
            self._interrupt.is_asked = True


@dataclass(frozen=True, slots=True)
class _Share:
    """Every N-th image of each batch. Whose share is empty works on one image that counts nothing."""

    whole: Any
    rank: int
    n_workers: int
    team: Team

    @property
    def n_steps(self) -> int:
        return int(self.whole.n_steps)

    def epoch(self, epoch: int, *, first_step: int = 0) -> Iterator[tuple[Any, Any]]:
        for images, labels in self.whole.epoch(epoch, first_step=first_step):
            own = slice(self.rank, None, self.n_workers)
            self.team.n_images = len(labels[own])
            yield (images[own], labels[own]) if self.team.n_images else (images[:1], labels[:1])


@dataclass(slots=True)
class _Teller:
    """Tells the scheduler, a few times a second at most."""

    folder: JobFolder
    place: WorkerRank
    first: tuple[int, float] | None = None  # the first step of this start takes longer and is not counted
    told_s: float = field(default=0.0)

    def __call__(self, step: int, n_steps: int) -> None:
        now_s = time.monotonic()
        if self.first is None:
            self.first = (step, now_s)
        n_since = step - self.first[0]
        if step < n_steps and now_s - self.told_s < _TELL_S:
            return
        self.told_s = now_s
        step_s = (now_s - self.first[1]) / n_since if n_since else None
        self.folder.tell(Progress(step=step, n_steps=n_steps, n_workers=self.place.n_workers, step_s=step_s))
