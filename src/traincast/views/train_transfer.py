"""What `traincast train transfer` shows: accuracy by approach and rate, the winner, predicted beside measured time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.chart import Chart
from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.units import show_percent, show_things
from traincast.views.seed_columns import interval_cells, mean_band

if TYPE_CHECKING:
    from traincast.api.recipe_forecast import RecipeForecast
    from traincast.recipes.data.images import ImageDataset
    from traincast.recipes.over_seeds import OverSeeds
    from traincast.recipes.transfer_learning.recipe import TransferRecipe
    from traincast.recipes.transfer_learning.result import Outcome, TransferResult

_MOST_ROWS = 20  # of the classes


def transfer_document(recipe: TransferRecipe, forecast: RecipeForecast, result: TransferResult) -> Document:
    """After the run."""
    from traincast.views.train import comparison_table, times_chart

    winner = result.winner
    verdict = "every run diverged" if winner is None else f"{winner.approach} at {winner.learning_rate:g} is best"
    times = times_table(recipe, forecast, result)
    return Document(
        title=f"{recipe.model} carried over to {recipe.target.name}: {verdict}",
        subtitle=_subtitle(recipe),
        tables=(accuracy_table(result), times, comparison_table(forecast, _whole_stages(recipe, result))),
        charts=(accuracy_chart(recipe, result), times_chart([(row[0], row[2], row[5]) for row in times.rows])),
        notes=(*_verdict(recipe, result), *_remarks(recipe, result)),
    )


def class_table(data: ImageDataset) -> Table:
    """Images per class, for training and for the test; of very many classes the first ones."""
    from traincast.recipes.data.picture import class_counts

    counts = [class_counts(part).tolist() for part in (data.train, data.test)]
    rows = tuple(zip(data.train.class_names, *counts, strict=True))
    least, most = min(counts[0]), max(counts[0])
    more = f"{len(rows) - _MOST_ROWS:,} more classes; all have {least:,} to {most:,} training images."
    return Table(
        title=f"Images per class of {data.name}",
        columns=columns_of("class_name: class as name, n_train: training images, n_test: test images"),
        rows=rows[:_MOST_ROWS],
        notes=(*((more,) if len(rows) > _MOST_ROWS else ()), *data.notes),
    )


def accuracy_table(result: TransferResult) -> Table:
    """One row per approach and rate, with Student's interval over the seeds."""
    columns = columns_of(
        "approach as name, learning_rate: rate as name, accuracy_fraction: final accuracy, "
        "accuracy_low_fraction: 95 % from, accuracy_high_fraction: to, n_seeds: seeds, "
        "n_diverged: diverged, is_best:"
    )
    best = result.best_by_approach
    return Table(
        title="Accuracy on the test images",
        columns=columns,
        rows=tuple(
            (
                outcome.approach,
                f"{outcome.learning_rate:g}",
                *interval_cells(outcome.accuracy),
                len(outcome.accuracies),
                outcome.n_diverged or None,
                "winner" if outcome == result.winner else "best rate" if outcome == best.get(outcome.approach) else "",
            )
            for outcome in result.outcomes
        ),
    )


def times_table(recipe: TransferRecipe, forecast: RecipeForecast, result: TransferResult) -> Table:
    """Predicted beside measured time of one run, by stage: runs that diverged have stopped early and do not count."""
    columns = columns_of(
        "stage as name, n_runs: runs, predicted_run_s: predicted for one, predicted_p10_s: p10, "
        "predicted_p90_s: p90, measured_run_s: measured, ratio: predicted/measured, "
        "step_s: predicted step, backward_s: its backward, peak_memory_bytes: memory"
    )
    rows = []
    for stage in forecast.stages:
        n_planned = _n_planned(recipe, stage.name)
        n_ended = result.stage_runs[stage.name]
        measured_s = result.stage_seconds[stage.name] / n_ended if n_ended else None
        total = stage.total.times(1 / n_planned)
        ratio = total.p50 / measured_s if measured_s else None
        spans = (total.p50, *total.ends, measured_s, ratio)
        step = (stage.step.step_s, stage.step.backward_s or None, stage.peak_memory_bytes)
        rows.append((stage.name, n_ended, *spans, *step))
    return Table(title="Time of a run", columns=columns, rows=tuple(rows))


def _whole_stages(recipe: TransferRecipe, result: TransferResult) -> dict[str, float]:
    """Seconds of the stages whose runs all came to their end: the others were shorter than forecast."""
    runs = result.stage_runs
    return {name: took for name, took in result.stage_seconds.items() if runs[name] == _n_planned(recipe, name)}


def _n_planned(recipe: TransferRecipe, stage: str) -> int:
    return recipe.n_runs(stage) if stage in recipe.approaches else 1


def accuracy_chart(recipe: TransferRecipe, result: TransferResult) -> Chart:
    """Final accuracy against the learning rate, one line an approach, with bands where there are several seeds."""
    lines = []
    for approach in recipe.approaches:
        found = [
            (each.learning_rate, each.accuracy)
            for each in result.outcomes
            if each.approach == approach and each.accuracy is not None
        ]
        own = sorted(found, key=lambda each: each[0])
        lines.append(mean_band(approach, [rate for rate, _ in own], [accuracy for _, accuracy in own]))
    return Chart(
        title=f"Final accuracy of {recipe.model} on {recipe.target.name}",
        kind="line",
        series=tuple(lines),
        x_label="learning rate at the start",
        y_label="accuracy on the test images",
        y_show="percent",
        log_x=True,
    )


def _subtitle(recipe: TransferRecipe) -> str:
    target = recipe.target
    source = "weights of this run's own source task" if recipe.weights is None else f"weights of '{recipe.weights}'"
    return (
        f"{source}, {target.train.n_samples:,} images of {target.train.n_classes} classes, "
        f"{show_things(recipe.n_epochs, 'epoch')}, batch {recipe.batch_size}, momentum 0.9, "
        "three tenfold drops of the rate"
    )


def _verdict(recipe: TransferRecipe, result: TransferResult) -> tuple[str, ...]:
    winner = result.winner
    if winner is None:
        return ("Every rate had a run that diverged: try smaller ones.",)
    notes = [f"Winner: {_named(winner)}."]
    for approach, other in result.best_by_approach.items():
        lead = result.lead_over(approach)
        if approach != winner.approach and lead is not None:
            notes.append(f"It is {_ahead(lead)} of {_named(other)}{_doubt(lead)}.")
    return (*notes, *_edges(recipe, result))


def _edges(recipe: TransferRecipe, result: TransferResult) -> tuple[str, ...]:
    """A best rate at the end of what was tried may not be the best there is."""
    notes = []
    for end, beyond, choose in (("largest", "larger", max), ("smallest", "smaller", min)):
        names = [
            approach
            for approach, best in result.best_by_approach.items()
            if len(recipe.rates_of(approach)) > 1 and best.learning_rate == choose(recipe.rates_of(approach))
        ]
        if names:
            notes.append(f"The best rate of {', '.join(names)} is the {end} tried: a {beyond} one may be better.")
    return tuple(notes)


def _named(outcome: Outcome) -> str:
    mean, low, high = interval_cells(outcome.accuracy)
    assert mean is not None  # what is named has runs that ended
    n = len(outcome.accuracies)
    spread = (
        "1 seed, no interval" if low is None or high is None else f"{show_percent(low)} to {show_percent(high)}, n={n}"
    )
    return f"{outcome.approach} at {outcome.learning_rate:g} with {show_percent(mean)} ({spread})"


def _ahead(lead: OverSeeds) -> str:
    return f"{100 * lead.mean:.1f} points ahead"


def _doubt(lead: OverSeeds) -> str:
    """Whether the lead is more than the luck of the seeds."""
    if lead.low is None or lead.high is None:
        return "; one seed cannot say whether that is luck"
    span = f"{100 * lead.low:+.1f} to {100 * lead.high:+.1f} points, paired by seed, n={lead.n}"
    return f" ({span})" + ("" if lead.low > 0 else ": that may be luck")


def _remarks(recipe: TransferRecipe, result: TransferResult) -> tuple[str, ...]:
    notes = list(recipe.data.notes)
    if result.source_accuracy is not None and recipe.source is not None:
        notes.append(
            f"The source task was {recipe.source.name}, learned from scratch in "
            f"{show_things(recipe.n_source_epochs, 'epoch')} to {show_percent(result.source_accuracy)}; "
            "all runs start from that one network."
        )
    notes.append(
        "Seeds change the new last layer, the order of the images and their augmentation; the "
        f"{result.n_test_samples:,} test images are the same for all, and the best rate was chosen on them."
    )
    if "frozen" in recipe.approaches:
        notes.append(
            "frozen: all but the last layer get no gradient, so nothing runs backward through them, and batch norms "
            "keep the statistics of the source."
        )
    if "cached" in recipe.approaches:
        notes.append("cached: as frozen, on features that were computed once; images cannot be augmented then.")
    return tuple(notes)
