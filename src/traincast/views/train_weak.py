"""What `traincast train weak` shows: accuracy against noise, with and without resampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.chart import Chart
from traincast.report.document import Document
from traincast.report.table import Column, Row, Table
from traincast.units import show_percent, show_things
from traincast.views.seed_columns import flat_line, gain_columns, gain_words, interval_cells, mean_band, signed_cells

if TYPE_CHECKING:
    from traincast.api.recipe_forecast import RecipeForecast
    from traincast.recipes.weak_labels.recipe import WeakRecipe
    from traincast.recipes.weak_labels.result import WeakResult

_DRAWN = {False: "as they come", True: "square root"}


def weak_document(recipe: WeakRecipe, forecast: RecipeForecast, result: WeakResult) -> Document:
    """After the run."""
    from traincast.views.train import compared_chart, comparison_table

    return Document(
        title=f"{result.model} pretrained on noisy tags of {recipe.data.name}: {verdict(result)}",
        subtitle=subtitle(recipe, result),
        tables=(accuracy_table(result), resampling_table(result), comparison_table(forecast, result.stage_seconds)),
        charts=(accuracy_chart(result), compared_chart(forecast, result.stage_seconds)),
        notes=(*recipe.data.notes, *remarks(recipe, result)),
    )


def subtitle(recipe: WeakRecipe, result: WeakResult) -> str:
    """What is clean, what is tagged, and how it was trained."""
    settings = recipe.settings
    return (
        f"{result.n_clean:,} clean labels, {result.n_tagged:,} tagged images, "
        f"{show_things(len(result.seeds), 'seed')}, {show_things(settings.n_epochs, 'epoch')}, "
        f"batch {settings.batch_size}, rate {settings.learning_rate:g}"
    )


def verdict(result: WeakResult) -> str:
    """About fine-tuning after the least and the most noise, images drawn as they come."""
    plain = sorted((line for line in result.lines if not line.is_resampled), key=lambda line: line.noise_fraction)
    least, most = plain[0], plain[-1]
    told = [f"{show_percent(least.fine_tuned_accuracy.mean)} at {least.noise_fraction:.0%} added noise"]
    if most is not least:
        told.append(f"{show_percent(most.fine_tuned_accuracy.mean)} at {most.noise_fraction:.0%}")
    return ", ".join(told)


def accuracy_table(result: WeakResult) -> Table:
    """One row per way of drawing and share of noise; clean labels alone come first."""
    columns = (
        Column(key="drawn", header="images drawn", show="name"),
        Column(key="noise_fraction", header="noise", show="percent"),
        Column(key="right_fraction", header="true tag", show="percent"),
        Column(key="fine_tuned_accuracy_fraction", header="fine-tuned", show="percent"),
        Column(key="fine_tuned_low_fraction", header="95 % from", show="percent"),
        Column(key="fine_tuned_high_fraction", header="to", show="percent"),
        Column(key="probe_accuracy_fraction", header="linear probe", show="percent"),
        Column(key="probe_low_fraction", header="from", show="percent"),
        Column(key="probe_high_fraction", header="to ", show="percent"),
        *gain_columns("fine-tuned over clean alone"),
    )
    nothing = (None, None, None, None, None)
    rows: list[Row] = [("clean labels alone", None, None, *interval_cells(result.clean_accuracy), *nothing)]
    rows += [
        (
            _DRAWN[line.is_resampled],
            line.noise_fraction,
            line.right_fraction.mean,
            *interval_cells(line.fine_tuned_accuracy),
            *interval_cells(line.probe_accuracy),
            *signed_cells(line.gain),
        )
        for line in result.lines
    ]
    return Table(title="Accuracy on the test images", columns=columns, rows=tuple(rows))


def resampling_table(result: WeakResult) -> Table:
    """What drawing by the square root adds, seed by seed."""
    columns = (
        Column(key="noise_fraction", header="noise", show="percent"),
        Column(key="fine_tuned_points", header="fine-tuned", show="name"),
        Column(key="fine_tuned_interval_points", header="95 %", show="name"),
        Column(key="probe_points", header="linear probe", show="name"),
        Column(key="probe_interval_points", header="95 % ", show="name"),
    )
    rows = tuple(
        (line.noise_fraction, *signed_cells(line.fine_tuned), *signed_cells(line.probe)) for line in result.resampling
    )
    return Table(title="What square-root resampling adds, in points of accuracy", columns=columns, rows=rows)


def accuracy_chart(result: WeakResult) -> Chart:
    """Accuracy against noise: two ways of drawing, two ways of judging, and clean labels alone."""
    series, noise = [], sorted({line.noise_fraction for line in result.lines})
    for is_resampled, drawn in _DRAWN.items():
        own = sorted(
            (line for line in result.lines if line.is_resampled == is_resampled), key=lambda x: x.noise_fraction
        )
        series.append(mean_band(f"fine-tuned, {drawn}", noise, [line.fine_tuned_accuracy for line in own]))
        series.append(mean_band(f"linear probe, {drawn}", noise, [line.probe_accuracy for line in own]))
    series.append(flat_line("clean labels alone", noise, result.clean_accuracy))
    return Chart(
        title="Test accuracy against noise added to the tags",
        kind="line",
        series=tuple(series),
        x_label="tags replaced",
        y_label="test accuracy",
        x_show="percent",
        y_show="percent",
    )


def remarks(recipe: WeakRecipe, result: WeakResult) -> tuple[str, ...]:
    """What the numbers are and are not."""
    tagging = recipe.tagging
    notes = [
        f"Tags as they come lack the true one of {tagging.dropped_fraction:.0%} of the images and have a wrong one for "
        f"{tagging.added_fraction:.0%}; the commonest class has {recipe.imbalance:g} times the images of the rarest. "
        "Noise then replaces tags by others, drawn by how often they are used.",
        "An epoch is as many samples as the training set has, in every stage; clean labels alone get as many steps as "
        "pretraining and fine-tuning together.",
    ]
    if len(result.seeds) > 1:
        notes += [
            f"{_least_noise(result)}, resampling adds {gain_words(result.resampling[0].fine_tuned)} after fine-tuning.",
            f"Intervals are Student's, 95 %, over {len(result.seeds)} seeds; the {result.n_test:,} test images are the "
            "same for all.",
        ]
    else:
        notes.append("One seed has no interval.")
    return tuple(notes)


def _least_noise(result: WeakResult) -> str:
    share = result.resampling[0].noise_fraction
    return f"With {show_percent(share)} of the tags replaced" if share else "Without added noise"
