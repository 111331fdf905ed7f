"""A teacher, a student, 5 % labels:  python benchmarks/recipe_teacher_student.py [--runs DIR] [--times] [--write]

Trains on scikit-learn's digits: five seeds, three K, two P, which is more seeds and P than the command does by itself;
then both networks on labels alone for two lengths, and a teacher of the student's own network. Takes about fifteen
minutes of one core; killed or stopped, the same command goes on. With --times a run of one seed and one student is
forecast and timed instead, for which nothing else should run. With --write the tables of docs/teacher_student.md are
renewed, and its image.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from itertools import product
from pathlib import Path

from recipe_page import DOCS, markdown, timed, write_page
from traincast.recipes.data.load import load_dataset
from traincast.recipes.engine.settings import TrainSettings
from traincast.recipes.engine.train import train
from traincast.recipes.models import build_model
from traincast.recipes.over_seeds import over_seeds, paired
from traincast.recipes.teacher_student.recipe import TeacherStudentRecipe, usual_k
from traincast.recipes.teacher_student.result import TeacherStudentResult
from traincast.views.train_teacher_student import accuracy_chart, baselines_table, students_table, verdict

PAGE = DOCS / "teacher_student.md"
LABELED = 0.05


def main() -> None:
    """Trains or times, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/teacher-student-digits"))
    parser.add_argument("--times", action="store_true", help="forecast and time one student instead")
    parser.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    given = parser.parse_args()
    if given.times:
        with tempfile.TemporaryDirectory() as folder:
            tables, charts = {"times": timed(_recipe(few=True), Path(folder))}, {}
    else:
        recipe = _recipe()
        result = recipe.run(given.runs, lambda done, total: print(f"\r{done:,} of {total:,}", end="", flush=True))
        tables = {**_tables(result), "controls": _controls(recipe, result, given.runs / "controls")}
        same = _recipe(same_network=True).run(given.runs / "same-network")
        tables |= {"same_network": f"{markdown(baselines_table(same))}\n\n{markdown(students_table(same))}"}
        charts = {"teacher_student": accuracy_chart(result)}
    print(*(f"\n{name}\n{table}" for name, table in tables.items()), sep="\n")
    if given.write:
        write_page(PAGE, tables, charts)


def _recipe(*, few: bool = False, same_network: bool = False) -> TeacherStudentRecipe:
    data = load_dataset("digits")
    settings = TrainSettings(n_epochs=3, batch_size=32, learning_rate=0.03, weight_decay=1e-4)
    k_values = usual_k(data, LABELED)
    return TeacherStudentRecipe(
        data=data,
        settings=settings,
        teacher="cifar_resnet20" if same_network else "cifar_resnet32",
        student="cifar_resnet20",
        labeled_fraction=LABELED,
        k_values=k_values[1:2] if few else k_values,
        p_values=(1,) if few or same_network else (1, 3),
        n_seeds=1 if few else 5,
    )


def _tables(result: TeacherStudentResult) -> dict[str, str]:
    by_seed = "\n".join(
        f"| {seed.seed} | {100 * seed.teacher_accuracy:.1f} % | {100 * seed.alone_accuracy:.1f} % | "
        f"{100 * chosen.accuracy:.1f} % | {chosen.k} | {chosen.p} |"
        for seed, chosen in zip(result.seeds, result.chosen or (), strict=True)
    )
    return {
        "verdict": f"The student, its K and P chosen on the other seeds, has {verdict(result)}.",
        "models": markdown(baselines_table(result)),
        "seeds": f"| seed | teacher | student alone | student taught | K | P |\n| ---: {'| ---: ' * 5}|\n{by_seed}",
        "students": markdown(students_table(result)),
    }


def _controls(recipe: TeacherStudentRecipe, result: TeacherStudentResult, folder: Path) -> str:
    """Labels alone, both networks at both lengths: what network and steps do without any unlabeled image."""
    taught = [student.accuracy for student in result.chosen or ()]
    lengths = {recipe.settings.n_epochs: "teacher's", recipe.alone_settings.n_epochs: "taught student's"}
    lines = [
        "| labels alone | epochs | accuracy | 95 % | taught student over it | 95 % |",
        "| --- | ---: | ---: | --- | ---: | --- |",
    ]
    for model, n_epochs in product((recipe.student, recipe.teacher), lengths):
        accuracies = [_labels_alone(recipe, model, n_epochs, each.seed, folder) for each in result.seeds]
        own, gain = over_seeds(accuracies), paired(taught, accuracies)
        lines.append(
            f"| {model} | {n_epochs} (the {lengths[n_epochs]}) | {100 * own.mean:.1f} % | "
            f"{100 * (own.low or 0):.1f} to {100 * (own.high or 0):.1f} % | {100 * gain.mean:+.1f} | "
            f"{100 * (gain.low or 0):+.1f} to {100 * (gain.high or 0):+.1f} |"
        )
    return "\n".join(lines)


def _labels_alone(recipe: TeacherStudentRecipe, model: str, n_epochs: int, seed: int, folder: Path) -> float:
    labeled = recipe.labeled(seed)
    found = train(
        build_model(model, recipe.data.train.n_classes, seed=seed),
        recipe.learns(labeled, recipe.data.train.labels[labeled], seed),
        replace(recipe.own_settings, n_epochs=n_epochs, seed=seed),
        folder / f"seed-{seed}" / f"{model}-{n_epochs}",
        name="labels alone",
    )
    return found.test_accuracy


if __name__ == "__main__":
    main()
