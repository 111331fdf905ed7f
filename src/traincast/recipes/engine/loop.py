"""The loop: batches, steps, evaluations, checkpoints."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor, nn

from traincast.errors import FileFormatError, InputError, TrainingError
from traincast.measurement.failures import failure, is_out_of_memory
from traincast.measurement.training import make_optimizer
from traincast.recipes.engine.checkpoint import load_checkpoint, put_weights, save_checkpoint
from traincast.recipes.engine.clock import Clock
from traincast.recipes.engine.evaluate import Evaluation, count_right, evaluate_on
from traincast.recipes.engine.feed import Feed
from traincast.recipes.engine.folder import RunFolder
from traincast.recipes.engine.interrupt import Interrupt
from traincast.recipes.engine.log_file import LogFile, evaluation_row, step_row
from traincast.recipes.engine.numerics import Numerics
from traincast.recipes.engine.progress import Progress
from traincast.recipes.engine.result import TrainResult
from traincast.recipes.engine.settings import TrainSettings

_AFTER_EPOCH = 1 / 6  # of the time between checkpoints: the end of an epoch is a good place for one
_FLUSH_S = 1.0  # reading a loss makes a GPU's host wait: not at every step


class Loop:
    """A run at some step: begun, or read back from its folder."""

    def __init__(self, module: nn.Module, feed: Feed, settings: TrainSettings, folder: RunFolder, *, name: str) -> None:
        self._clock = Clock()
        self._feed, self._settings, self._folder, self._name = feed, settings, folder, name
        self._numerics = Numerics(settings.device, settings.precision)
        self._module = self._numerics.place(module)
        optimizer = make_optimizer(
            settings.optimizer,
            module.parameters(),
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
        )
        if optimizer is None:
            raise InputError(f"{name} has nothing to train: all its weights are frozen.")
        self._optimizer: Any = optimizer
        self._scaler = self._numerics.scaler()
        self._n_steps = feed.train.n_steps * settings.n_epochs
        self._step, self._last_loss, self._best_accuracy = 0, math.nan, 0.0
        self._evaluation: Evaluation | None = None
        self._pending: list[tuple[int, float, float, int, Tensor, Tensor]] = []
        self._resumed_at: int | None = None
        n_log_bytes = self._go_back() if folder.checkpoint_path.exists() else 0
        self._log = LogFile(folder.log_path, n_log_bytes)
        self._flushed_s = self._saved_s = time.monotonic()

    def run(self, interrupt: Interrupt, tell: Progress | None) -> TrainResult:
        """To the end, or until Ctrl-C: then a checkpoint is written first."""
        try:
            while self._step < self._n_steps:
                epoch, first_step = divmod(self._step, self._feed.train.n_steps)
                self._epoch(epoch, first_step, interrupt, tell)
        finally:
            self._log.close()
        return self._result()

    def _epoch(self, epoch: int, first_step: int, interrupt: Interrupt, tell: Progress | None) -> None:
        self._clock.lap("other")
        for images, labels in self._feed.train.epoch(epoch, first_step=first_step):
            self._clock.lap("input")
            self._learn(epoch, images, labels)
            if tell is not None:
                tell(self._step, self._n_steps)
            # After the last step of an epoch its evaluation comes first: a run that goes on must not miss it.
            if self._step % self._feed.train.n_steps:
                self._look_around(interrupt, self._settings.checkpoint_s)
        self._flush()
        if self._settings.is_evaluated_after(epoch):
            self._evaluate(epoch)
        is_last = self._step == self._n_steps
        self._look_around(interrupt, 0.0 if is_last else _AFTER_EPOCH * self._settings.checkpoint_s)

    def _learn(self, epoch: int, images: Tensor, labels: Tensor) -> None:
        rate = self._settings.rate_at(self._step, self._n_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        # Dropout and its like draw what they would have drawn at this step of an unbroken run.
        torch.manual_seed((self._settings.seed << 32) + self._step)
        try:
            loss, n_right = self._update(*self._numerics.move(images, labels))
        except ValueError as error:
            if len(labels) > 1 or "more than 1 value per channel" not in str(error):
                raise
            raise InputError(
                f"With a batch size of {self._settings.batch_size} the last batch of an epoch has 1 image, which "
                "batch norm cannot normalise: choose another batch size."
            ) from error
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise failure(f"Step {self._step + 1} of {self._name}", error) from error
        self._step += 1
        self._clock.lap("train")
        self._pending.append((epoch, rate, self._clock.total_s, len(labels), loss, n_right))

    def _update(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        with self._numerics.math():
            with self._numerics.autocast():
                logits = self._module(images)
                loss = nn.functional.cross_entropy(logits, labels)
            n_right = count_right(logits.detach(), labels)
            del logits  # its memory is free as soon as backward has used it
            self._scaler.scale(loss).backward()
            self._scaler.step(self._optimizer)
            self._scaler.update()
            self._module.zero_grad(set_to_none=True)
        return loss.detach(), n_right

    def _flush(self) -> None:
        """Steps that were made become rows. Waiting for a GPU to make them is part of training."""
        self._numerics.wait()
        self._clock.lap("train")
        rows: list[str] = []
        first = self._step - len(self._pending) + 1
        for step, (epoch, rate, seconds, n, loss, n_right) in enumerate(self._pending, start=first):
            self._last_loss = float(loss)
            if not math.isfinite(self._last_loss):
                self._log.add(rows)
                raise TrainingError(
                    f"The loss of {self._name} is {self._last_loss} at step {step} of {self._n_steps}, with a "
                    f"learning rate of {rate:g}: try a smaller one."
                )
            rows.append(
                step_row(epoch + 1, step, loss=self._last_loss, accuracy=int(n_right) / n, rate=rate, seconds=seconds)
            )
        self._pending.clear()
        self._log.add(rows)
        self._flushed_s = time.monotonic()
        self._clock.lap("other")

    def _evaluate(self, epoch: int) -> None:
        self._evaluation = evaluate_on(self._module, self._feed.test, self._numerics)
        self._best_accuracy = max(self._best_accuracy, self._evaluation.accuracy)
        self._clock.lap("evaluate")
        found = self._evaluation
        if not math.isfinite(found.loss):
            raise TrainingError(
                f"The test loss of {self._name} is {found.loss} after step {self._step} of {self._n_steps}, with "
                f"a learning rate of {self._settings.learning_rate:g}: try a smaller one."
            )
        row = evaluation_row(
            epoch + 1, self._step, loss=found.loss, accuracy=found.accuracy, seconds=self._clock.total_s
        )
        self._log.add([row])

    def _look_around(self, interrupt: Interrupt, due_s: float) -> None:
        """Between two steps: what is to be written, and whether to go on."""
        now_s = time.monotonic()
        if interrupt.is_asked or now_s - self._saved_s >= due_s:
            self._flush()
            self._save()
            self._saved_s = time.monotonic()
        elif now_s - self._flushed_s >= _FLUSH_S:
            self._flush()
        self._clock.lap("other")
        if interrupt.is_asked:
            raise KeyboardInterrupt

    def _save(self) -> None:
        found = self._evaluation
        save_checkpoint(
            self._folder.checkpoint_path,
            {
                "name": self._name,
                "module": self._module.state_dict(),
                "optimizer": self._optimizer.state_dict(),
                "scaler": self._scaler.state_dict(),
                "step": self._step,
                "n_steps": self._n_steps,
                "last_loss": self._last_loss,
                "best_accuracy": self._best_accuracy,
                "evaluation": None if found is None else [found.loss, found.accuracy, found.n],
                "spent_s": dict(self._clock.spent_s),
                "n_log_bytes": self._log.n_bytes,
            },
        )

    def _go_back(self) -> int:
        """To the checkpoint; gives the length that the log had."""
        path = self._folder.checkpoint_path
        content = load_checkpoint(path)
        put_weights(self._module, content["module"], path)
        try:
            self._optimizer.load_state_dict(content["optimizer"])
            self._scaler.load_state_dict(content["scaler"])
            found = content["evaluation"]
            self._evaluation = None if found is None else Evaluation(loss=found[0], accuracy=found[1], n=found[2])
            self._clock.add(content["spent_s"])
            self._step, self._last_loss = int(content["step"]), float(content["last_loss"])
            self._best_accuracy = float(content["best_accuracy"])
            n_log_bytes = int(content["n_log_bytes"])
            name, n_steps = content["name"], content["n_steps"]
        except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise FileFormatError(f"'{path}' is not a checkpoint of this run: delete the folder.") from error
        if (name, n_steps) != (self._name, self._n_steps):
            raise FileFormatError(f"'{path}' is the checkpoint of another run ({name}).")
        self._resumed_at = self._step
        return n_log_bytes

    def _result(self) -> TrainResult:
        assert self._evaluation is not None  # the last epoch is always evaluated
        spent_s = self._clock.spent_s
        return TrainResult(
            name=self._name,
            n_steps=self._n_steps,
            **{f"{part}_s": seconds for part, seconds in spent_s.items()},
            final_loss=self._last_loss,
            test_loss=self._evaluation.loss,
            test_accuracy=self._evaluation.accuracy,
            best_test_accuracy=self._best_accuracy,
            log_path=self._folder.log_path,
            checkpoint_path=self._folder.checkpoint_path,
            resumed_at_step=self._resumed_at,
        )
