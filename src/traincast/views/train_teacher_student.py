"""What `traincast train teacher-student` shows: accuracy against K, and what the student gains, whatever comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.chart import Chart
from traincast.report.document import Document
from traincast.report.table import Column, Table, columns_of
from traincast.units import show_percent, show_things
from traincast.views.seed_columns import flat_line, gain_columns, gain_words, interval_cells, mean_band, signed_cells

if TYPE_CHECKING:
    from traincast.api.recipe_forecast import RecipeForecast
    from traincast.recipes.teacher_student.recipe import TeacherStudentRecipe
    from traincast.recipes.teacher_student.result import TeacherStudentResult


def teacher_student_document(
    recipe: TeacherStudentRecipe, forecast: RecipeForecast, result: TeacherStudentResult
) -> Document:
    """After the run."""
    from traincast.views.train import compared_chart, comparison_table

    return Document(
        title=f"{result.teacher} teaches {result.student} on {recipe.data.name}: {verdict(result)}",
        subtitle=subtitle(recipe, result),
        tables=(baselines_table(result), students_table(result), comparison_table(forecast, result.stage_seconds)),
        charts=(accuracy_chart(result), compared_chart(forecast, result.stage_seconds)),
        notes=(*recipe.data.notes, *remarks(recipe, result)),
    )


def subtitle(recipe: TeacherStudentRecipe, result: TeacherStudentResult) -> str:
    """How much is labeled, and how it was trained."""
    share = show_percent(result.n_labeled / (result.n_labeled + result.n_unlabeled))
    settings = recipe.settings
    return (
        f"{result.n_labeled:,} labels ({share}), {result.n_unlabeled:,} unlabeled images, "
        f"{show_things(len(result.seeds), 'seed')}, {show_things(settings.n_epochs, 'epoch')}, "
        f"batch {settings.batch_size}, rate {settings.learning_rate:g}"
    )


def verdict(result: TeacherStudentResult) -> str:
    """About the student whose K and P were chosen without its own seed, against both that have labels alone."""
    gains = result.chosen_gains()
    if gains is None:
        best = max(result.lines, key=lambda line: line.accuracy.mean)
        gains = best.gain, best.own_gain
    return f"{gain_words(gains[0])} over the teacher, {gain_words(gains[1])} over the student alone"


def baselines_table(result: TeacherStudentResult) -> Table:
    """The two that have labels alone, and the student chosen without looking at its own seed."""
    from traincast.recipes.over_seeds import over_seeds, paired

    teachers, alone = ([getattr(each, f"{who}_accuracy") for each in result.seeds] for who in ("teacher", "alone"))
    nothing, own = signed_cells(None), signed_cells(paired(alone, teachers))
    rows = [
        (f"{result.teacher}, labels alone (teacher)", *interval_cells(result.teacher_accuracy), *nothing, *nothing),
        (f"{result.student}, labels alone", *interval_cells(result.alone_accuracy), *own, *nothing),
    ]
    chosen, gains = result.chosen, result.chosen_gains()
    if chosen is not None and gains is not None:
        accuracy = interval_cells(over_seeds([student.accuracy for student in chosen]))
        cells = (*signed_cells(gains[0]), *signed_cells(gains[1]))
        rows.append((f"{result.student}, taught; K and P chosen on other seeds", *accuracy, *cells))
    return Table(
        title="Teacher, student alone, student taught",
        columns=(Column(key="model", header="", show="name"), *_ACCURACY, *_GAINS),
        rows=tuple(rows),
    )


def students_table(result: TeacherStudentResult) -> Table:
    """One row per P and K."""
    columns = (
        *columns_of(
            "p: P as integer, k: K as integer, n_selected: selected, right_fraction: rightly, "
            "pretrained_accuracy_fraction: pretrained"
        ),
        *_ACCURACY,
        *_GAINS,
    )
    rows = tuple(
        (
            line.p,
            line.k,
            line.n_selected.mean,
            line.right_fraction.mean,
            line.pretrained_accuracy.mean,
            *interval_cells(line.accuracy),
            *signed_cells(line.gain),
            *signed_cells(line.own_gain),
        )
        for line in result.lines
    )
    return Table(title="Students, by P and K", columns=columns, rows=rows)


def accuracy_chart(result: TeacherStudentResult) -> Chart:
    """Accuracy against K, one line a P with its interval over seeds, and the two that have labels alone."""
    lines = result.lines
    k_values = sorted({line.k for line in lines})
    x = [f"K = {k:,}" for k in k_values]
    series = []
    for p in dict.fromkeys(line.p for line in lines):
        own = {line.k: line.accuracy for line in lines if line.p == p}
        series.append(mean_band(f"taught, P = {p}", x, [own[k] for k in k_values]))
    return Chart(
        title="Test accuracy against images selected a class",
        kind="line",
        series=(
            *series,
            flat_line(f"{result.teacher} alone (teacher)", x, result.teacher_accuracy),
            flat_line(f"{result.student} alone", x, result.alone_accuracy),
        ),
        x_label="images selected a class",
        y_label="test accuracy",
        y_show="percent",
    )


def remarks(recipe: TeacherStudentRecipe, result: TeacherStudentResult) -> tuple[str, ...]:
    """What the numbers are and are not."""
    notes = [
        "An epoch is as many samples as the training set has, in every stage; the student alone takes as many steps as "
        "a taught one in both of its stages.",
        "'selected' counts pairs of image and class, 'rightly' those whose class is the true one; nothing learns from "
        "that.",
    ]
    gains = result.chosen_gains()
    if gains is None:
        notes.append("One seed has no interval: the best K and P may be best by luck.")
    else:
        notes += [
            f"Intervals are Student's, 95 %, over {len(result.seeds)} seeds, which draw labels, first weights and "
            f"order; the {result.n_test:,} test images are the same for all.",
        ]
    if max(recipe.p_values) == 1:
        notes.append("With P = 1 alone an image serves one class.")
    return tuple(notes)


_ACCURACY = columns_of("accuracy_fraction: accuracy, accuracy_low_fraction: 95 % from, accuracy_high_fraction: to")
_GAINS = (*gain_columns("over the teacher"), *gain_columns("over the student alone", "own_gain"))
