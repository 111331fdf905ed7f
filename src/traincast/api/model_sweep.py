"""A sweep by what it changes, with the forecasts of its rows: what `traincast measure --sweep` answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

from traincast.api.model_measuring import how_to_run
from traincast.api.models import model_options
from traincast.errors import InputError, ParameterError
from traincast.options import catalog as o
from traincast.options.question import question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.sweeps.batch import BatchSweep
    from traincast.measurement.sweeps.optimizers import OptimizerSweep
    from traincast.measurement.sweeps.variants import VariantSweep
    from traincast.measurement.sweeps.workers import WorkersSweep

# Who uses what only one sweep has; with any other it would be left out quietly.
_LEARNING = ("optimizers", "norm")
_SWEEP_OF: dict[str, tuple[str, ...]] = {
    "max_step_s": ("batch",),
    "data": ("workers", *_LEARNING),
    "sample_cost_s": ("workers",),
    "sample_waits": ("workers",),
    "n_epochs": _LEARNING,
}
_CHANGED = {"optimizers": ("optimizer", "sgd"), "precision": ("precision", "fp32")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSweep:
    """The sweep, and the forecasts of its rows by batch size, optimizer or label."""

    what: str
    sweep: BatchSweep | WorkersSweep | OptimizerSweep | VariantSweep
    forecasts: Mapping[Any, Forecast] = field(default_factory=dict)
    elsewhere: tuple[Forecast, ...] = ()  # on GPUs that are not here
    no_forecast: str = ""

    @property
    def was_stopped(self) -> bool:
        """By Ctrl-C."""
        return self.sweep.was_stopped

    def to_dict(self) -> dict[str, Any]:
        """What --json prints. Neither loader workers nor a model without its batch norm have forecasts."""
        if self.what in ("workers", "norm"):
            return self.sweep.to_dict()
        forecasts = [found.to_dict() for found in (*self.forecasts.values(), *self.elsewhere)]
        return {**self.sweep.to_dict(), "forecasts": forecasts}


@question
def sweep_model(
    what: o.Sweep,
    model: o.ModelToRun,
    batch_size: o.MaybeBatchToRun = None,
    *,
    max_step_s: o.MaxStepS = None,
    data: o.DataFunction = None,
    sample_cost_s: o.SampleCostS = None,
    sample_waits: o.SampleWaits = False,
    n_epochs: o.LearnedEpochs = None,
    n_steps: o.TimedSteps = None,
    on_row: Callable[[Any], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Unpack[o.NamedRunOptions],
) -> ModelSweep:
    """Changes one thing about a step again and again: a row each, beside its forecast.

    A sweep of "batch" begins at `batch_size` (1); all others need it. `on_row` hears of every row as it comes.
    """
    own = {
        "max_step_s": max_step_s,
        "data": data,
        "sample_cost_s": sample_cost_s,
        "sample_waits": sample_waits,
        "n_epochs": n_epochs,
    }
    _check(what, batch_size, own, options)
    settings = {"n_steps": n_steps, "on_row": on_row, "on_progress": on_progress, **how_to_run(options)}
    given = {name: value for name, value in own.items() if value is not None and what in _SWEEP_OF[name]}
    run = {"batch": _batches, "workers": _workers, "optimizers": _optimizers}.get(what, _variants)
    return run(what, str(model), batch_size or 1, given, settings, model_options(options))


_Named = dict[str, Any]


def _batches(what: str, model: str, batch: int, own: _Named, settings: _Named, options: _Named) -> ModelSweep:
    from traincast.api.sweeping import sweep_batches

    how = {name: value for name, value in settings.items() if name != "on_progress"}
    sweep = sweep_batches(model, first_batch_size=batch, **own, **how, **options)
    forecasts, why_not = _forecasts({row.batch_size: row.measurement for row in sweep.rows}, model, options)
    return ModelSweep(what=what, sweep=sweep, forecasts=forecasts, no_forecast=why_not)


def _workers(what: str, model: str, batch: int, own: _Named, settings: _Named, options: _Named) -> ModelSweep:
    from traincast.api.sweeping import sweep_workers

    is_busy = not own.pop("sample_waits")
    n_batches = settings.pop("n_steps")
    sweep = sweep_workers(model, batch_size=batch, is_busy=is_busy, n_batches=n_batches, **own, **settings, **options)
    return ModelSweep(what=what, sweep=sweep)


def _optimizers(what: str, model: str, batch: int, own: _Named, settings: _Named, options: _Named) -> ModelSweep:
    from traincast.api.sweeping import sweep_optimizers

    sweep = sweep_optimizers(model, batch_size=batch, options=options, **own, **settings)
    forecasts, why_not = _forecasts({row.optimizer: row.measurement for row in sweep.rows}, model, options)
    return ModelSweep(what=what, sweep=sweep, forecasts=forecasts, no_forecast=why_not)


def _variants(what: str, model: str, batch: int, own: _Named, settings: _Named, options: _Named) -> ModelSweep:
    from traincast.api.sweeping import forecasts_beside, sweep_variants

    sweep = sweep_variants(what, model, batch_size=batch, options=options, **own, **settings)
    if what == "norm":  # it changes the model in a way that a forecast by its name does not know
        return ModelSweep(what=what, sweep=sweep)
    forecasts, why_not = _forecasts({row.label: row.measurement for row in sweep.measured}, model, options)
    if what != "device":
        return ModelSweep(what=what, sweep=sweep, forecasts=forecasts, no_forecast=why_not)
    how = {name: settings[name] for name in ("precision", "optimizer")}
    elsewhere, why_none = forecasts_beside(model, batch_size=batch, options=options, **how)
    reason = why_not or why_none
    return ModelSweep(what=what, sweep=sweep, forecasts=forecasts, elsewhere=elsewhere, no_forecast=reason)


def _forecasts(measured: Mapping[Any, Any], model: str, options: _Named) -> tuple[dict[Any, Forecast], str]:
    """Of what was measured, by the same keys; where something has none, also the first reason."""
    from traincast.api.measuring import forecast_of

    answers = {key: forecast_of(one, model, **options) for key, one in measured.items() if one is not None}
    forecasts = {key: found for key, (found, _) in answers.items() if found is not None}
    return forecasts, next((reason for _, reason in answers.values() if reason), "")


def _check(what: str, batch_size: int | None, own: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    for name, value in own.items():
        if value not in (None, False) and what not in _SWEEP_OF[name]:
            raise ParameterError(
                name, value, f"only a sweep of {' or '.join(_SWEEP_OF[name])} uses it, not one of {what}"
            )
    if own["data"] is not None and what in _LEARNING and not own["n_epochs"]:
        raise ParameterError("data", own["data"], "it is what is learned from: give epochs, too")
    if own["sample_waits"] and own["sample_cost_s"] is None:
        raise ParameterError("sample_waits", True, "also give the cost of a sample, which it describes")
    if batch_size is None and what != "batch":
        raise InputError(f"The batch size is missing: a sweep of {what} needs the samples of a step.")
    name, usual = _CHANGED.get(what, ("", ""))
    if name and options[name] != usual:
        raise ParameterError(name, options[name], "the sweep changes it, so leave it out")
