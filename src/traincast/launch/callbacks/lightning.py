"""For Lightning: `Trainer(..., callbacks=[ForecastCallback("run.csv")])`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from traincast.curves.log_question import LogQuestion
from traincast.errors import MissingExtraError
from traincast.launch.callbacks.guard import Tell, hook
from traincast.launch.callbacks.reporter import Reporter, columns_of

try:
    _lightning = import_module("lightning.pytorch")
except ImportError:
    try:
        _lightning = import_module("pytorch_lightning")  # what it was called before
    except ImportError as error:
        raise MissingExtraError("A callback for Lightning", extra="lightning") from error


class ForecastCallback(_lightning.Callback):  # type: ignore[name-defined,misc]  # it may not be installed
    """Writes a row every `log_every_n_steps` steps and after each validation, and tells when the run will be done.

    The training loss is what `training_step` returns; the rest is what the module logs.
    """

    def __init__(  # noqa: PLR0913  (what is asked of the run, and who is told)
        self,
        path: str | Path = "traincast.csv",
        *,
        target: float | None = None,
        metric: str | None = None,
        split: str | None = None,
        usd_per_hour: float | None = None,
        every_s: float = 30.0,
        tell: Tell | None = None,
    ) -> None:
        super().__init__()
        asked = LogQuestion(target=target, metric=metric, split=split, usd_per_hour=usd_per_hour)
        self._reporter = Reporter(path, asked, every_s=every_s, tell=tell)
        self.tell_user, self.is_off = self._reporter.tell_user, False
        self._last_step = 0

    @hook
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self._reporter.begin(trainer.estimated_stepping_batches)

    @hook
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._reporter.works()

    @hook
    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        step = trainer.global_step
        if trainer.is_global_zero and step % max(trainer.log_every_n_steps, 1) == 0 and step != self._last_step:
            self._last_step = step  # batches that only accumulate gradients are not steps
            self._reporter.pauses()
            told = columns_of({"train_loss": outputs.get("loss") if isinstance(outputs, Mapping) else outputs})
            # Lightning divides it by the batches whose gradients are added up.
            found = {name: loss * trainer.accumulate_grad_batches for name, loss in told.items()}
            logged = {
                name: value for name, value in columns_of(trainer.callback_metrics).items() if name == "train_acc"
            }
            self._reporter.add(step, rate=_rate(trainer), epoch=_epoch(trainer, batch_idx), **found, **logged)
        self._reporter.waits()

    @hook
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._reporter.pauses()

    @hook
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.is_global_zero or trainer.sanity_checking:
            return
        found = columns_of(trainer.callback_metrics)
        self._reporter.add(
            trainer.global_step, **{name: found[name] for name in ("val_loss", "val_acc") if name in found}
        )

    @hook
    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._reporter.pauses()

    @hook
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self._reporter.tell()


def _rate(trainer: Any) -> float | None:
    groups = [group for optimizer in trainer.optimizers for group in optimizer.param_groups]
    return float(groups[0]["lr"]) if groups else None


def _epoch(trainer: Any, batch_idx: int) -> float | None:
    """Completed epochs, with the part of the one that runs."""
    n_batches = trainer.num_training_batches
    return trainer.current_epoch + (batch_idx + 1) / n_batches if 0 < n_batches < float("inf") else None
