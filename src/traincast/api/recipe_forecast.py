"""What a recipe will take, stage by stage, before it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traincast.estimate import Estimate
from traincast.hardware.host import THIS_MACHINE

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.api.scaling_cells import ScalingForecast
    from traincast.forecasting.forecast import Forecast
    from traincast.hardware.cluster import Cluster
    from traincast.recipes.data.batches import Batches
    from traincast.recipes.engine.stages import Stage
    from traincast.trace.trace import Trace

PARTS = ("train_s", "input_s", "evaluate_s")
_SHORT_S = 1.0  # a run of 70 ms was forecast at a third of that: the rest was log and checkpoint


NONE = Estimate(0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class StageForecast:
    """One stage. `step` is the forecast of a full batch; the evaluation has the reading of its images in it.

    What one machine does too slowly it does so everywhere: the seconds of its parts err together.
    """

    stage: Stage
    step: Forecast
    train: Estimate
    evaluate: Estimate
    input: Estimate
    price_usd_per_hour: float | None

    @property
    def name(self) -> str:
        return self.stage.name

    @property
    def total(self) -> Estimate:
        return self.train.plus(self.evaluate).plus(self.input)

    @property
    def train_s(self) -> float:
        return self.train.p50

    @property
    def evaluate_s(self) -> float:
        return self.evaluate.p50

    @property
    def input_s(self) -> float:
        return self.input.p50

    @property
    def total_s(self) -> float:
        return self.total.p50

    @property
    def is_short(self) -> bool:
        """Whether writing a log and checkpoints, which is not forecast, is much of each of its runs."""
        return self.stage.kind == "train" and self.total_s / self.stage.n_runs < _SHORT_S

    @property
    def peak_memory_bytes(self) -> int:
        return self.step.peak_memory_bytes

    @property
    def cost_usd(self) -> float | None:
        return None if self.price_usd_per_hour is None else self.price_usd_per_hour * self.total_s / 3600

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.stage.kind,
            "n_steps": self.stage.n_steps,
            "batch_size": self.stage.batch_size,
            "step_s": self.step.step_s,
            **{part: getattr(self, part) for part in PARTS},
            "total_s": self.total_s,
            "total_interval_s": self.total.ends,
            "peak_memory_bytes": self.peak_memory_bytes,
            "fits": self.step.fits,
            "cost_usd": self.cost_usd,
        }


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class RecipeForecast:
    """All stages, one after the other. `has_input` is False on another machine, whose reading nobody has timed."""

    place: str
    stages: tuple[StageForecast, ...]
    has_input: bool
    warnings: tuple[str, ...]

    @property
    def total(self) -> Estimate:
        return functools.reduce(Estimate.plus, (stage.total for stage in self.stages), NONE)

    @property
    def total_s(self) -> float:
        return self.total.p50

    def interval(self) -> tuple[float, float]:
        """p10 and p90 of the total."""
        return self.total.ends

    @property
    def peak_memory_bytes(self) -> int:
        return max(stage.peak_memory_bytes for stage in self.stages)

    @property
    def cost_usd(self) -> float | None:
        costs = [stage.cost_usd for stage in self.stages]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "on": self.place,
            "stages": [stage.to_dict() for stage in self.stages],
            "total_s": self.total_s,
            "total_interval_s": self.interval(),
            "peak_memory_bytes": self.peak_memory_bytes,
            "cost_usd": self.cost_usd,
            "has_input": self.has_input,
            "warnings": self.warnings,
        }

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.units import show_bytes, show_duration

        rows = [
            (
                stage.name,
                f"{stage.stage.n_steps:,}",
                *(show_duration(seconds) for seconds in (stage.total_s, *stage.total.ends)),
                show_bytes(stage.peak_memory_bytes),
            )
            for stage in self.stages
        ]
        header = ("stage", "steps", "total", "p10", "p90", "memory")
        title = f"On {self.place}: {show_duration(self.total_s)}"
        return to_notebook(title, rows, header=header, notes=self.warnings)


def forecasts_to_dict(
    asked: RecipeForecast | ScalingForecast, here: RecipeForecast | ScalingForecast
) -> dict[str, Any]:
    """What JSON has of the forecast that was asked for, and of what a run here is compared with if that is another."""
    told = {"forecast": asked.to_dict()}
    return told if asked is here else {**told, "forecast_here": here.to_dict()}


def forecast_stages(
    stages: Sequence[Stage],
    on: str | Cluster = THIS_MACHINE,
    *,
    is_here: bool | None = None,
    price_usd_per_hour: float | None = None,
    devices: str | Path | None = None,
) -> RecipeForecast:
    """What the stages of a recipe take on a place, as `forecast` has them.

    Where the recipe is going to run on this very machine (`is_here`, by default of "this-machine" alone), some batches
    are really read, and the time of reading is part of the forecast: the loop waits for its images.
    """
    here = on == THIS_MACHINE if is_here is None else is_here
    traces = _Traces()
    reading = _Reading() if here else None
    options: dict[str, Any] = {"price_usd_per_hour": price_usd_per_hour, "devices": devices}
    found = tuple(_forecast_stage(stage, on, traces, reading, options) for stage in stages)
    return RecipeForecast(
        place=found[0].step.place, stages=found, has_input=here, warnings=_warnings(found, is_here=here)
    )


def _warnings(stages: Sequence[StageForecast], *, is_here: bool) -> tuple[str, ...]:
    """Of all stages, each once."""
    from traincast.forecasting.forecast import NO_LENGTH
    from traincast.kernels.cpu.times import MEMORY_IS_KEPT

    told = (warning for stage in stages for warning in stage.step.warnings)
    found = dict.fromkeys(warning for warning in told if warning != NO_LENGTH)  # a stage knows its own samples
    short = [f"'{stage.name}'" for stage in stages if stage.is_short]
    if short:
        named = ", ".join(short[:3]) + (" and more" if len(short) > 3 else "")
        found[f"Writing logs and checkpoints is not forecast, but it dominates runs as short as those of {named}."] = (
            None
        )
    if not is_here:
        found["Reading and augmenting images is not included: it was timed only on this machine."] = None
        return tuple(found)
    from traincast.measurement.heap import keep_memory

    if keep_memory():  # as the loop does
        found = {warning: None for warning in found if not warning.startswith(MEMORY_IS_KEPT)}
    if any(stage.stage.device != "cpu" and stage.step.question.device.kind == "cpu" for stage in stages):
        found["Training runs on a GPU, but this forecast is for a CPU: name the GPU (on: T4)."] = None
    return tuple(found)


def _forecast_stage(
    stage: Stage, on: str | Cluster, traces: _Traces, reading: _Reading | None, options: dict[str, Any]
) -> StageForecast:
    is_trained = stage.kind == "train"
    options = {**options, "precision": stage.precision}
    optimizer = stage.optimizer if is_trained else "none"
    steps = _Steps(traces.of(stage, "train" if is_trained else "inference"), on, {**options, "optimizer": optimizer})
    evaluate, read = NONE, NONE
    if stage.n_evaluations and stage.n_test_samples:
        passes = _Steps(traces.of(stage, "inference"), on, {**options, "optimizer": "none"})
        evaluate = passes.epoch(stage.n_test_samples, stage.batch_size)
        if reading is not None:
            evaluate = evaluate.plus(reading.of(stage.reads_test, stage.n_test_samples))
    if reading is not None:
        read = reading.of(stage.reads, stage.n_samples)
    step = steps.at(min(stage.batch_size, stage.n_samples))
    return StageForecast(
        stage=stage,
        step=step,
        train=steps.epoch(stage.n_samples, stage.batch_size).times(stage.n_epochs),
        evaluate=evaluate.times(stage.n_evaluations),
        input=read.times(stage.n_epochs),
        price_usd_per_hour=step.question.run_price_usd_per_hour,
    )


class _Traces:
    """Captured once for each model, way of running and size of image."""

    def __init__(self) -> None:
        self._found: dict[tuple[Callable[[], Any], str, tuple[int, ...]], Trace] = {}

    def of(self, stage: Stage, mode: str) -> Trace:
        from traincast.frontend.capturing.capture import capture
        from traincast.frontend.models.training_step import label_loss

        key = (stage.make_module, mode, tuple(stage.example(2).shape))
        if key not in self._found:
            module = stage.make_module()
            self._found[key] = capture(module, stage.example, loss=label_loss, mode=mode)
        return self._found[key]


class _Steps:
    """Steps of one trace at one place."""

    def __init__(self, trace: Trace, on: str | Cluster, options: dict[str, Any]) -> None:
        self._trace, self._on, self._options = trace, on, options

    def at(self, batch_size: int) -> Forecast:
        from traincast.api.forecasts import forecast

        return forecast(self._trace, self._on, batch_size, **self._options)

    def epoch(self, n_samples: int, batch_size: int) -> Estimate:
        """Full batches, and one with the rest, in which each of several devices has a sample at least."""
        full = self.at(batch_size)
        n_full, n_rest = divmod(n_samples, batch_size)
        seconds = _step_seconds(full).times(n_full)
        if not n_rest:
            return seconds
        rest = self.at(max(n_rest, full.question.n_devices))
        return seconds.plus(_step_seconds(rest))


def _step_seconds(answer: Forecast) -> Estimate:
    low_s, high_s = answer.interval("step_s")
    return Estimate(low_s, answer.step_s, high_s)


class _Reading:
    """Batches that are read alike are timed once."""

    def __init__(self) -> None:
        self._s_per_sample: dict[tuple[Any, ...], float] = {}

    def of(self, batches: Batches | None, n_samples: int) -> Estimate:
        from traincast.recipes.engine.input_time import input_s_per_sample

        if batches is None:
            return NONE
        key = (id(batches.data.images), batches.batch_size, batches.augmentation)
        if key not in self._s_per_sample:
            self._s_per_sample[key] = input_s_per_sample(batches)
        seconds = self._s_per_sample[key] * n_samples
        return Estimate(seconds, seconds, seconds)
