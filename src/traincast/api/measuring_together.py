"""Several processes by the name of a model: their step beside its forecast, the link between them, or both."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from traincast.api.model_measuring import how_to_run
from traincast.api.models import model_options
from traincast.errors import InputError, ParameterError
from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.processes.link_result import AllReduceMeasurement
    from traincast.measurement.processes.result import ProcessesMeasurement
    from traincast.records.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherMeasurement:
    """What was measured: the steps with their forecast, or why there is none; the link; never neither."""

    steps: ProcessesMeasurement | None
    link: AllReduceMeasurement | None
    forecast: Forecast | None = None
    no_forecast: str = ""
    was_stopped: bool = False  # by Ctrl-C

    @property
    def kind(self) -> str:
        """Of its record in a store."""
        from traincast.records.identity import PROCESSES

        return "all-reduce" if self.steps is None else PROCESSES

    @property
    def environment(self) -> Environment:
        return self._first.environment

    def values(self) -> dict[str, Any]:
        """What a store keeps."""
        values = self._first.to_dict()
        return values if self.steps is None or self.link is None else {**values, "link": self.link.to_dict()}

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        if self.steps is None:
            return self.values()
        return {**self.values(), "forecast": None if self.forecast is None else self.forecast.to_dict()}

    @property
    def _first(self) -> ProcessesMeasurement | AllReduceMeasurement:
        known = self.link if self.steps is None else self.steps
        assert known is not None
        return known


def is_under_torchrun() -> bool:
    """Whether this process is one of several that the user started."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys()


def is_first_process() -> bool:
    """Whether it is this one that shows the answer of all."""
    return not is_under_torchrun() or os.environ["RANK"] == "0"


@question
def measure_together(
    model: o.MaybeModelToRun = None,
    batch_size: o.MaybeBatchToRun = None,
    *,
    n_processes: o.Processes = None,
    all_reduce: o.AllReduce = False,
    n_steps: o.TimedSteps = None,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Unpack[o.NamedRunOptions],
) -> TogetherMeasurement:
    """Data-parallel steps of a model, the link between the processes (`all_reduce`), or one after the other.

    `n_processes` start here and share `batch_size`; inside the user's own torchrun there are as many as it started.
    """
    _check(model, batch_size, n_processes, all_reduce=all_reduce, others={"n_steps": n_steps, **options})
    from traincast.api.processes import measure_all_reduce

    link = None
    if all_reduce:
        link = measure_all_reduce(n_processes=n_processes, device=options["device"], on_progress=on_progress)
    if model is None or batch_size is None or (link is not None and link.is_partial):
        return TogetherMeasurement(steps=None, link=link, was_stopped=link is not None and link.is_partial)
    try:
        steps = _steps(str(model), batch_size, n_processes, n_steps, options, on_progress)
    except KeyboardInterrupt:
        if link is None:
            raise
        return TogetherMeasurement(steps=None, link=link, was_stopped=True)  # the link is known all the same
    from traincast.api.measuring import forecast_of

    is_shown = is_first_process()
    forecast, why_not = forecast_of(steps, model, **model_options(options)) if is_shown else (None, "")
    return TogetherMeasurement(
        steps=steps, link=link, forecast=forecast, no_forecast=why_not, was_stopped=steps.is_partial
    )


def _steps(
    model: str,
    batch_size: int,
    n_processes: int | None,
    n_steps: int | None,
    options: Mapping[str, Any],
    on_progress: Callable[[int, int], None] | None,
) -> ProcessesMeasurement:
    from traincast.api.processes import measure_processes

    return measure_processes(
        model,
        batch_size,
        n_processes=n_processes,
        n_steps=n_steps,
        options=model_options(options),
        on_progress=on_progress,
        **how_to_run(options),
    )


def _check(
    model: Any, batch_size: int | None, n_processes: int | None, *, all_reduce: bool, others: Mapping[str, Any]
) -> None:
    """Nothing is left out quietly: without a model nothing is trained."""
    if model is None and not all_reduce:
        raise InputError("Nothing to measure: name a model, or ask for the link between the processes.")
    if model is None:
        usual = {"optimizer": "sgd", "precision": "fp32"}
        asked = {"batch_size": batch_size, **others}
        for name in ("batch_size", "optimizer", "precision", "n_steps", *o.ModelOptions.__annotations__):
            if asked[name] != usual.get(name):
                raise ParameterError(name, asked[name], "the link alone trains nothing, so name a model, too")
    elif batch_size is None:
        raise InputError("The batch size is missing: give the samples of a step, over all processes.")
    if is_under_torchrun() and n_processes is not None:
        raise ParameterError("n_processes", n_processes, "torchrun has started the processes already, so leave it out")
    if not is_under_torchrun() and n_processes is None:
        raise InputError("Measuring the link needs several processes: say how many, such as 2.")
