"""Why a step takes what it takes, what was predicted beside what was measured, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from traincast.api.models import model_options
from traincast.errors import InputError, ParameterError
from traincast.options import catalog as o
from traincast.options.question import question
from traincast.report.input_files import is_there

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast
    from traincast.forecasting.layer_sum import LayerSum
    from traincast.forecasting.mirrored_methods import MirroredMethods
    from traincast.planning.gap import Gap
    from traincast.records.measured_step import MeasuredStep
    from traincast.records.record import Record, Settings
    from traincast.trace.trace import Trace

HERE = "here"
_TOLD = {
    "batch_size": "batch",
    "precision": "precision",
    "optimizer": "optimizer",
    "compiled": "compiled",
    "n_devices": "devices",
}


@question
def explain(
    model: o.Model,
    on: o.Place,
    batch_size: o.BatchSize,
    *,
    measured: o.Measured = None,
    **options: Unpack[o.ExplainOptions],
) -> Gap:
    """A forecast by phase and kind of op, beside a measurement of the same step; its `advice` is what would help.

    `measured` is a file (a trace of torch.profiler, a store, a CSV table, what 'traincast measure --json' prints), or
    "here": the step is run and profiled now, on this machine.
    """
    from traincast.api.forecasts import forecast
    from traincast.forecasting.by_kind import predicted_by_kind
    from traincast.hardware.host import THIS_MACHINE
    from traincast.planning.gap import explain_gap

    if options["mode"] == "inference" and measured is not None:
        raise InputError(
            "Only steps of training are compared with measured ones: leave the measurement or the mode out."
        )
    if options["host"] is None and isinstance(on, str) and on.strip().lower() == THIS_MACHINE:
        options["host"] = THIS_MACHINE
    _check_measured(measured, model, options)
    answer = forecast(model, on, batch_size, **options)
    found = None
    if measured == HERE:
        found = _profiled(model, answer, model_options(options))
    elif measured is not None:
        found = _read(Path(measured), answer)
    return explain_gap(answer, predicted_by_kind(answer.question), found)


@question
def lone_layers(model: o.Model, on: o.Place, batch_size: o.BatchSize, **options: Unpack[o.ExplainOptions]) -> LayerSum:
    """Every layer timed alone as in the benchmarks of Justus et al., added up, against the whole model's step."""
    from traincast.api.forecasts import forecast
    from traincast.forecasting.layer_sum import layer_sum

    return layer_sum(forecast(model, on, batch_size, **options).question)


@question
def mirrored(
    model: o.Model,
    on: o.Place,
    batch_size: o.BatchSize,
    *,
    measured: o.Measured = None,
    **options: Unpack[o.ExplainOptions],
) -> MirroredMethods:
    """The practicum's three methods for a step under MirroredStrategy and our forecast, beside a measured step.

    `measured` is a file as `explain` reads it; without devices in it, a row is taken to be of these.
    """
    from dataclasses import replace

    from traincast.api.forecasts import forecast
    from traincast.forecasting.mirrored_methods import mirrored_methods

    answer = forecast(model, on, batch_size, **options)
    found = mirrored_methods(answer.question)
    return found if measured is None else replace(found, measured_s=_read(Path(measured), answer).step_s)


def _check_measured(measured: str | Path | None, model: object, options: Mapping[str, Any]) -> None:
    """Before a model is captured, which may take long."""
    if measured == HERE:
        if not isinstance(model, (str, Path)):
            raise ParameterError("measured", HERE, "a trace has no module to run, so name a model or file.py:factory")
        if options["compiled"] or options["accumulation_steps"] > 1:
            raise ParameterError("measured", HERE, _ONE_PASS)
    elif measured is not None and not is_there(measured):
        raise InputError(f"There is no file '{measured}' with measurements.")


_ONE_PASS = "it profiles one eager pass on one device, without compilation and accumulation"


def _profiled(model: str | Path | Trace, answer: Forecast, options: dict[str, Any]) -> MeasuredStep:
    """On CUDA where the forecast is of a GPU, else on the CPU."""
    assert isinstance(model, (str, Path))  # as was checked
    from traincast.api.runnables import runnable_of

    runnable = runnable_of(model, **options)
    from traincast.measurement.profile_step import profile_step
    from traincast.records.measured_step import step_of_profile

    question = answer.question
    if question.n_devices > 1:
        raise ParameterError("measured", HERE, _ONE_PASS)
    run = profile_step(
        runnable,
        batch_size=answer.batch_size,
        optimizer=question.settings.optimizer,
        precision=question.settings.precision,
        device="cpu" if question.device.kind == "cpu" else "cuda",
    )
    return step_of_profile(run)


def _read(path: Path, answer: Forecast) -> MeasuredStep:
    """The record of the step that was asked about; a trace, which does not say what it is of, is taken at its word."""
    from dataclasses import replace

    from traincast.records.identity import measurements_among
    from traincast.records.imports.read import read_measured
    from traincast.records.measured_step import step_of_record

    records = list(measurements_among(read_measured(path)))
    if not records:
        raise InputError(f"'{path}' has no measured steps.")
    chosen = _matching(records, answer)
    if not chosen:
        settings, n_devices = answer.question.settings, answer.question.n_devices
        several = f" on {n_devices} devices" if n_devices > 1 else ""
        raise InputError(
            f"'{path}' has no measured step of {answer.model} at batch {answer.batch_size:,} in {settings.precision} "
            f"with {settings.optimizer}{several}. It has: {_listed(records)}."
        )
    newest = max(chosen, key=lambda record: record.created_s)
    step = step_of_record(newest, source=str(path))
    notes = list(step.notes)
    if len(chosen) > 1:
        notes.append(f"{len(chosen)} measured steps fit the question; this is the newest.")
    if newest.kind == "profile":
        notes.append(
            f"A trace does not name its model: it was taken for {answer.model} at batch {answer.batch_size:,}."
        )
    return replace(step, notes=(*notes, *_other_place(newest, answer)))


def _other_place(record: Record, answer: Forecast) -> list[str]:
    """A sentence where the run was on something else than what the forecast is of."""
    device, written = answer.question.device, record.task.get("device")
    kind = {"cpu": "cpu", "cuda": "gpu", "gpu": "gpu"}.get(
        str(record.values.get("device_kind", record.environment.device_kind))
    )
    if kind is not None and kind != device.kind:
        other = "an accelerator" if device.kind == "accelerator" else f"a {device.kind.upper()}"
        return [f"It was measured on a {kind.upper()} and predicted for {answer.place}, {other}."]
    if kind is None and written is not None and str(written).lower() != device.name.lower():
        return [f"It was measured on {written} and predicted for {answer.place}."]
    return []


def _matching(records: Sequence[Record], answer: Forecast) -> list[Record]:
    """Those that contradict the question in nothing they tell; a trace, which tells nothing, where no other fits."""
    from traincast.records.identity import PROFILE, fits

    settings = answer.question.settings
    wanted: Settings = {
        "model": answer.model,
        "batch_size": answer.batch_size,
        "precision": settings.precision,
        "optimizer": settings.optimizer,
        "compiled": answer.question.compiled,
        "n_devices": answer.question.n_devices,
    }
    fitting = [record for record in records if record.error is None and fits(record, wanted)]
    return [record for record in fitting if record.kind != PROFILE] or fitting


def _listed(records: Sequence[Record], *, most: int = 5) -> str:
    from traincast.records.identity import settings_of

    told = []
    for record in records:
        said = settings_of(record)
        parts = [f"{word} {said[name]}" for name, word in _TOLD.items() if said.get(name) not in (None, False)]
        told.append(", ".join([str(said.get("model", said.get("source", "?"))), *parts]))
    names = list(dict.fromkeys(told))
    return "; ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
