"""For the Trainer of transformers: `Trainer(..., callbacks=[ForecastCallback("run.csv")])`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from traincast.curves.log_question import LogQuestion
from traincast.errors import MissingExtraError
from traincast.launch.callbacks.guard import Tell, hook
from traincast.launch.callbacks.reporter import Reporter, columns_of

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise MissingExtraError("A callback for the Trainer", extra="hf") from error


class ForecastCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not read by the type checker
    """Writes a row whenever the Trainer logs, and tells every `every_s` seconds when the run will be done."""

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
        asked = LogQuestion(target=target, metric=metric, split=split, usd_per_hour=usd_per_hour)
        self._reporter = Reporter(path, asked, every_s=every_s, tell=tell)
        self.tell_user, self.is_off = self._reporter.tell_user, False

    @hook
    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            self._reporter.begin(state.max_steps)

    @hook
    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._reporter.works()

    @hook
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._reporter.waits()

    @hook
    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._reporter.pauses()

    @hook
    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._reporter.pauses()

    @hook
    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        self._reporter.pauses()
        if state.is_world_process_zero and logs and "train_runtime" not in logs:  # else a summary of the whole run
            numbers = {name: value for name, value in logs.items() if isinstance(value, int | float)}
            if numbers.get("loss") == 0 and not math.isfinite(numbers.get("grad_norm", 0.0)):
                numbers["loss"] = math.nan  # which the Trainer leaves out of its mean
            rate = numbers.get("learning_rate")
            self._reporter.add(state.global_step, epoch=state.epoch, rate=rate, **columns_of(numbers))
        self._reporter.waits()

    @hook
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            self._reporter.tell()
