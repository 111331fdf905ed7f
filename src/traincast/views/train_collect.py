"""What `traincast train collect` shows: the grid before it runs, then its runs and the curves through their logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Row, Table, columns_of
from traincast.units import show_duration, show_things

if TYPE_CHECKING:
    from traincast.api.collecting import CollectedRun, Collection
    from traincast.api.recipe_forecast import RecipeForecast
    from traincast.recipes.collection import Grid

_MOST_LINES = 12  # of a chart: more cannot be told apart
_MOST_BARS = 40


def plan_document(grid: Grid, n_runs: int, forecast: RecipeForecast | None) -> Document:
    """Before the runs."""
    from traincast.views.train import forecast_notes, forecast_table, stages_chart

    runs = show_things(n_runs, "training run")
    how = f"{grid.data}, batch {grid.batch_size:,}, {grid.precision}, {grid.optimizer}"
    unknown = "Runs on a GPU are not forecast: name it with --on."
    if forecast is None:
        return Document(title=runs, subtitle=how, notes=(unknown,))
    n_unknown = n_runs - len(forecast.stages)
    elsewhere = (f"Not forecast, as on another device: {show_things(n_unknown, 'run')}.",) if n_unknown else ()
    return Document(
        title=f"{runs} on {forecast.place}: {show_duration(forecast.total_s)}",
        subtitle=f"forecast, before anything runs, one after the other; {how}",
        tables=(forecast_table(forecast),),
        charts=(stages_chart(forecast),),
        notes=(*forecast_notes(forecast), *elsewhere),
    )


def collection_document(collection: Collection, forecast: RecipeForecast | None) -> Document:
    """One row per run, with its curve, and what it was expected to take."""
    done = [run for run in collection.runs if run.n_steps is not None]
    predicted_s = {} if forecast is None else {stage.name: stage.total_s for stage in forecast.stages}
    columns = columns_of(
        "name: run as name, n_steps: steps, test_accuracy_fraction: test accuracy, "
        "best_test_accuracy_fraction: best, train_loss: train loss as ratio, "
        "fitted_loss: fitted as ratio, floor as ratio, scale as ratio, exponent as ratio, drop as ratio, "
        "total_s: took, predicted_s: predicted, ratio: predicted/took"
    )
    progress = collection.progress
    n_runs = len(collection.runs) + collection.n_left
    title = f"{len(done)} of {n_runs} training runs are in '{collection.folder}'"
    verb = "tried" if collection.n_failed else "trained"
    notes = [] if progress is None else [f"{progress.n_now} {verb} now, {progress.n_before} before."]
    notes += [f"{run.name}: {run.error}" for run in collection.runs if run.error is not None]
    if collection.n_failed:
        none = "None of the runs came to its end" if not done else f"{collection.n_failed} did not come to their end"
        notes.append(f"{none}: --retry-failed tries them again; other settings need another --out.")
    if done:
        where = f"{collection.folder}/runs/RUN/log.csv"
        notes += [_LAW, f"'traincast converge {where}' draws a curve; each run has its folder."]
    table = Table(title="Runs", columns=columns, rows=tuple(_row(run, predicted_s) for run in done))
    return Document(
        title=title,
        subtitle=_hosts(done),
        tables=(table,) if done else (),
        charts=_charts(done, predicted_s) if done else (),
        notes=tuple(notes),
    )


_LAW = (
    "Fitted to the training loss: (floor + scale * progress ** -exponent) * exp(-drop * annealed), with progress the "
    "share of the run's learning rates so far, and annealed how far the rate has come down."
)


def _row(run: CollectedRun, predicted_s: dict[str, float]) -> Row:
    curve = run.curve or {}
    law = tuple(curve.get(name) for name in ("floor", "scale", "exponent", "drop"))
    expected_s = predicted_s.get(run.name)
    ratio = expected_s / run.total_s if expected_s and run.total_s else None
    learned = (run.test_accuracy, run.best_test_accuracy, run.train_loss, run.curve_end)
    return (run.name, run.n_steps, *learned, *law, run.total_s, expected_s, ratio)


def _hosts(runs: Sequence[CollectedRun]) -> str:
    return ", ".join(dict.fromkeys(f"{run.device} ({run.host})" for run in runs))


def _charts(done: Sequence[CollectedRun], predicted_s: dict[str, float]) -> tuple[Chart, ...]:
    from traincast.views.train import times_chart

    known = [run for run in done if run.name in predicted_s]
    times = [(run.name, predicted_s[run.name], run.total_s) for run in known[:_MOST_BARS]]
    return (_losses(done), *((times_chart(times, "run"),) if times else ()))


def _losses(runs: Sequence[CollectedRun]) -> Chart:
    """The training losses of the first runs."""
    from traincast.api.logs import read_log

    lines = []
    for run in [each for each in runs if each.log is not None][:_MOST_LINES]:
        found = read_log(run.log).find("loss", "train")  # type: ignore[arg-type]  # chosen above
        lines.append(Series(name=run.name, x=found.steps.tolist(), y=found.values.tolist()))
    return Chart(
        title="Training loss",
        kind="line",
        series=tuple(lines),
        x_label="step",
        y_label="loss",
        x_show="integer",
        log_y=True,
    )
