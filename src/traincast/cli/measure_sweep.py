"""`traincast measure --sweep`: one thing changed again and again, shown side by side."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from traincast.errors import InputError, StoreError, close_names

if TYPE_CHECKING:
    from traincast.cli.measure_question import Outputs, Question
    from traincast.cli.measure_sweep_options import SweepFlags
    from traincast.forecasting.forecast import Forecast
    from traincast.measurement.measured import Measurement
    from traincast.report.document import Document

_Key = TypeVar("_Key", int, str)
SWEEPS = ("batch", "workers", "optimizers", "norm", "device", "precision", "compile")
_CHANGED = {"optimizers": ("--optimizer", "optimizer", "sgd"), "precision": ("--precision", "precision", "fp32")}


def run_sweep(what: str, question: Question, flags: SweepFlags, outputs: Outputs) -> None:
    """Measures, keeps each row as it comes, and shows all; Ctrl-C shows what there is."""
    model, batch, how, options = question.need_model(), question.batch_size, question.how, question.options
    _check(what, question)
    outputs.check()
    task = {"sweep": what, "model": model, "batch_size": batch, **how, **options}
    rows = _Rows(task, outputs.store)
    with outputs.measuring():
        settings = {**how, "n_steps": question.n_steps, "on_row": rows.add}
        sweep, document, data = _SWEEPS[what](model, batch, flags, settings, options)
    outputs.show(document, data)
    rows.end()
    outputs.end(was_stopped=sweep.was_stopped)


def _check(what: str, question: Question) -> None:
    if what not in SWEEPS:
        raise InputError(f"No sweep named '{what}'.{close_names(what, SWEEPS)} Choose from: {', '.join(SWEEPS)}.")
    if what != "batch":
        question.need_batch_size()
    flag, name, usual = _CHANGED.get(what, ("", "", ""))
    if name and question.how[name] != usual:
        raise InputError(f"{flag} is what --sweep {what} changes: leave it out.")


def _batch(
    model: str, batch: int | None, flags: SweepFlags, settings: dict[str, Any], options: dict[str, Any]
) -> tuple[Any, Document, dict[str, Any]]:
    from traincast.api.sweeping import MAX_STEP_S, sweep_batches
    from traincast.views.sweep import batch_document

    max_step_s = MAX_STEP_S if flags.max_step_s is None else flags.max_step_s
    first = 1 if batch is None else batch
    sweep = sweep_batches(model, first_batch_size=first, max_step_s=max_step_s, **settings, **options)
    rows = {row.batch_size: row.measurement for row in sweep.rows if row.measurement}
    forecasts, why_not = _forecasts_of(rows, model, options)
    return sweep, batch_document(sweep, forecasts, why_not), _with_forecasts(sweep, forecasts.values())


def _forecasts_of(
    rows: Mapping[_Key, Measurement], model: str, options: dict[str, Any]
) -> tuple[dict[_Key, Forecast], str]:
    """Of what was measured, by the same keys; where something has none, also the first reason."""
    from traincast.api.measuring import forecast_of

    answers = {key: forecast_of(measured, model, **options) for key, measured in rows.items()}
    forecasts = {key: found for key, (found, _) in answers.items() if found is not None}
    return forecasts, next((reason for _, reason in answers.values() if reason), "")


def _with_forecasts(sweep: Any, forecasts: Iterable[Forecast]) -> dict[str, Any]:
    return {**sweep.to_dict(), "forecasts": [found.to_dict() for found in forecasts]}


def _workers(
    model: str, batch: int | None, flags: SweepFlags, settings: dict[str, Any], options: dict[str, Any]
) -> tuple[Any, Document, dict[str, Any]]:
    from traincast.api.sweeping import sweep_workers
    from traincast.cli.progress import ProgressBar
    from traincast.views.sweep import workers_document

    cost_s = None if flags.sample_ms is None else flags.sample_ms * 1e-3
    settings = {name: value for name, value in settings.items() if name != "n_steps"} | {
        "n_batches": settings["n_steps"]
    }
    with ProgressBar(f"Loader workers of {model}") as bar:
        sweep = sweep_workers(
            model,
            batch_size=batch or 0,
            data=flags.data,
            sample_cost_s=cost_s,
            is_busy=not flags.sample_waits,
            on_progress=bar,
            **settings,
            **options,
        )
    return sweep, workers_document(sweep), sweep.to_dict()


def _optimizers(
    model: str, batch: int | None, flags: SweepFlags, settings: dict[str, Any], options: dict[str, Any]
) -> tuple[Any, Document, dict[str, Any]]:
    from traincast.api.sweeping import sweep_optimizers
    from traincast.cli.progress import ProgressBar
    from traincast.views.sweep import optimizers_document

    with ProgressBar(f"Optimizers of {model}") as bar:
        sweep = sweep_optimizers(
            model, batch_size=batch or 0, n_epochs=flags.epochs or 0, options=options, on_progress=bar, **settings
        )
    rows = {row.optimizer: row.measurement for row in sweep.rows if row.measurement}
    forecasts, why_not = _forecasts_of(rows, model, options)
    return sweep, optimizers_document(sweep, forecasts, why_not), _with_forecasts(sweep, forecasts.values())


def _variants(what: str) -> Any:
    def run(
        model: str, batch: int | None, flags: SweepFlags, settings: dict[str, Any], options: dict[str, Any]
    ) -> tuple[Any, Document, dict[str, Any]]:
        from traincast.api.sweeping import forecasts_beside, sweep_variants
        from traincast.cli.progress import ProgressBar
        from traincast.views.sweep import variants_document

        with ProgressBar(f"{what.capitalize()} of {model}") as bar:
            sweep = sweep_variants(what, model, batch_size=batch or 0, options=options, on_progress=bar, **settings)
        if what == "norm":  # it changes the model in a way that a forecast by its name does not know
            return sweep, variants_document(sweep), sweep.to_dict()
        rows = {row.label: row.measurement for row in sweep.measured if row.measurement}
        forecasts, why_not = _forecasts_of(rows, model, options)
        if what != "device":
            return (
                sweep,
                variants_document(sweep, forecasts, no_forecast=why_not),
                _with_forecasts(sweep, forecasts.values()),
            )
        how = {name: settings[name] for name in ("precision", "optimizer")}
        elsewhere, why_none = forecasts_beside(model, batch_size=batch or 0, options=options, **how)
        document = variants_document(sweep, forecasts, elsewhere, no_forecast=why_not or why_none)
        return sweep, document, _with_forecasts(sweep, [*forecasts.values(), *elsewhere])

    return run


_SWEEPS: dict[str, Any] = {
    "batch": _batch,
    "workers": _workers,
    "optimizers": _optimizers,
    **{what: _variants(what) for what in ("norm", "device", "precision", "compile")},
}


class _Rows:
    """Every row as it comes: a line on the terminal, and a record where a store was named.

    A store that fails in the middle is told at the end: the sweep goes on, and is shown.
    """

    def __init__(self, task: dict[str, Any], path: Path | None) -> None:
        self._task, self._path, self._asked_s = task, path, time.time()
        self._n, self._n_kept = 0, 0
        self._failure: StoreError | None = None

    def add(self, row: Any) -> None:
        self._n += 1
        if sys.stderr.isatty():
            typer.echo(f"  {_told(row)}", err=True)
        if self._path is None or self._failure is not None:
            return
        from traincast.measurement.store import Store

        try:
            with Store(self._path) as store:
                store.add(_record(row, {**self._task, "row": self._n, "asked_s": self._asked_s}))
        except StoreError as error:
            self._failure = error
        else:
            self._n_kept += 1

    def end(self) -> None:
        if self._path is not None:
            typer.echo(f"Kept {self._n_kept} of {self._n} rows in {self._path}", err=True)
        if self._failure is not None:
            raise self._failure


def _told(row: Any) -> str:
    from traincast.units import show_duration

    found = row.to_dict()
    name = next(str(found[key]) for key in ("batch_size", "n_workers", "optimizer", "label") if key in found)
    took = found.get("step_s") or found.get("batch_s")
    return f"{name}: {found.get('status') or 'not measured' if took is None else show_duration(took)}"


def _record(row: Any, task: dict[str, Any]) -> Any:
    from traincast.measurement.environment import read_environment
    from traincast.measurement.identity import SWEEP, task_of
    from traincast.measurement.record import Record

    measured = getattr(row, "measurement", None) or getattr(row, "epoch", None)
    environment = read_environment(task["device"]) if measured is None else measured.environment
    if measured is not None:
        task = {**task, **task_of(measured.to_dict())}
    return Record(kind=SWEEP, task=task, values=row.to_dict(), environment=environment, created_s=time.time())
