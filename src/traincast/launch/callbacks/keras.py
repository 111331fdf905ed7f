"""For Keras: `model.fit(..., callbacks=[ForecastCallback("run.csv")])`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from traincast.curves.log_question import LogQuestion
from traincast.errors import InputError, MissingExtraError
from traincast.launch.callbacks.guard import Tell, hook
from traincast.launch.callbacks.reporter import Reporter, columns_of
from traincast.logs import argument_checks

try:
    from keras import ops
    from keras.callbacks import Callback
except ImportError as error:
    raise MissingExtraError("A callback for Keras", extra="keras") from error


class ForecastCallback(Callback):  # type: ignore[misc]  # keras is not read by the type checker
    """Writes a row every `every_steps` steps and after each epoch, and tells when the run will be done.

    Keras reports means since the start of the epoch; a row has the mean since the row before it.
    """

    def __init__(  # noqa: PLR0913  (what is asked of the run, and who is told)
        self,
        path: str | Path = "traincast.csv",
        *,
        every_steps: int = 20,
        target: float | None = None,
        metric: str | None = None,
        split: str | None = None,
        usd_per_hour: float | None = None,
        every_s: float = 30.0,
        tell: Tell | None = None,
    ) -> None:
        super().__init__()
        if not argument_checks.number("every_steps", every_steps) >= 1:
            raise InputError(f"Rows should be written every 1 or more steps, not every {every_steps}.")
        asked = LogQuestion(target=target, metric=metric, split=split, usd_per_hour=usd_per_hour)
        self._reporter = Reporter(path, asked, every_s=every_s, tell=tell)
        self.tell_user, self.is_off = self._reporter.tell_user, False
        self._every_steps = every_steps
        self._epoch, self._step, self._first_step = 0, 0, 0
        self._n_batches = 0  # in the mean of the row before, of this epoch
        self._means: dict[str, float] = {}
        self._begun, self._n_at_once = 0, 1  # steps of one call

    @hook
    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if not _is_first_process():
            return
        steps, epochs = self.params.get("steps"), self.params.get("epochs")
        self._reporter.begin(steps * epochs if steps and epochs else None)

    @hook
    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch, self._n_batches, self._means = epoch, 0, {}
        steps = self.params.get("steps")
        self._first_step = epoch * steps if steps else self._step  # a resumed run begins at its initial_epoch

    @hook
    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._reporter.works(self._n_at_once)
        self._begun = batch

    @hook
    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._n_at_once = batch - self._begun + 1
        n_batches, steps = batch + 1, self.params.get("steps")  # one call may be of several steps
        self._step = self._first_step + n_batches
        if n_batches - self._n_batches >= self._every_steps or n_batches == steps:
            self._reporter.pauses()
            means = columns_of(logs or {})
            since = {name: self._since(name, mean, n_batches) for name, mean in means.items()}
            self._n_batches, self._means = n_batches, means
            epoch = self._epoch + n_batches / steps if steps else None
            self._reporter.add(self._step, epoch=epoch, rate=self._rate(), **since)
        self._reporter.waits()

    @hook
    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._reporter.pauses()
        found = {name: value for name, value in columns_of(logs or {}).items() if name.startswith("val_")}
        self._reporter.add(self._step, epoch=epoch + 1.0, **found)

    @hook
    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._reporter.tell()

    def _since(self, name: str, mean: float, n_batches: int) -> float:
        """The mean of the batches since the row before, out of two means since the start of the epoch."""
        before = self._means.get(name, 0.0)
        return (n_batches * mean - self._n_batches * before) / (n_batches - self._n_batches)

    def _rate(self) -> float | None:
        optimizer = getattr(self.model, "optimizer", None)
        return None if optimizer is None else float(ops.convert_to_numpy(optimizer.learning_rate))


def _is_first_process() -> bool:
    """Of those that train together: by torchrun's rank, TensorFlow's task or JAX's process, whichever there is."""
    if "RANK" in os.environ:
        return os.environ["RANK"] == "0"
    if "TF_CONFIG" in os.environ:
        return _is_first_task(os.environ["TF_CONFIG"])
    jax = sys.modules.get("jax")
    return jax is None or jax.process_index() == 0


def _is_first_task(text: str) -> bool:
    """By TF_CONFIG. Where that is damaged it leads no processes together, and each is the first of its own."""
    try:
        config = json.loads(text)
        first = {"type": "chief" if "chief" in config.get("cluster", {}) else "worker", "index": 0}
        return first == {**first, **config.get("task", {})}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return True
