"""`traincast train teacher-student`: few labels, many images without."""

from typing import Annotated

import typer

from traincast.cli.train_asked import Asked, recipe_command
from traincast.cli.train_options import BatchSize, LearningRate
from traincast.recipes.usual import LABELED_FRACTION, MODEL, P_VALUES, TEACHER, TEACHER_STUDENT


@recipe_command
def teacher_student(
    asked: Asked,
    teacher: Annotated[str, typer.Option(help="The network that learns from the labels first.")] = TEACHER,
    student: Annotated[str, typer.Option(help="The network that learns from the teacher.")] = MODEL,
    labeled: Annotated[
        str, typer.Option(metavar="SHARE", help="Labels that are known: 5% or 0.05.")
    ] = f"{LABELED_FRACTION:.0%}",
    k: Annotated[
        list[int] | None,
        typer.Option(
            "--k",
            help="Images selected a class; again for more. Default: 1/8, 1/2 and 2 times those there are a class.",
            show_default=False,
        ),
    ] = None,
    p: Annotated[
        list[int] | None,
        typer.Option(
            "--p",
            help="Likeliest classes that an image may serve; again for more.",
            show_default=", ".join(map(str, P_VALUES)),
        ),
    ] = None,
    epochs: Annotated[
        int, typer.Option(help="Of teaching and pretraining, each as long as the training set.")
    ] = TEACHER_STUDENT.n_epochs,
    batch_size: BatchSize = TEACHER_STUDENT.batch_size,
    learning_rate: LearningRate = TEACHER_STUDENT.learning_rate,
    seeds: Annotated[
        int, typer.Option(help="Runs of everything, each with labels of its own.")
    ] = TEACHER_STUDENT.n_seeds,
) -> None:
    """Does a student that is pretrained on what its teacher selects beat the teacher?

    Examples: traincast train teacher-student; traincast train teacher-student --labeled 10% --k 50 --k 200 --p 1
    --p 3 --seeds 5
    """
    from traincast.api.runnables import require_torch
    from traincast.cli.train_flow import run_command
    from traincast.options.typed import SHARE
    from traincast.views.train_teacher_student import teacher_student_document

    require_torch("Training", extra="recipes")
    from traincast.recipes.engine.settings import settings_like
    from traincast.recipes.teacher_student.recipe import TeacherStudentRecipe

    recipe = TeacherStudentRecipe(
        data=asked.images(),
        settings=settings_like(
            TEACHER_STUDENT,
            n_epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            **asked.training,
        ),
        teacher=teacher,
        student=student,
        labeled_fraction=SHARE.of(labeled, "--labeled"),
        k_values=tuple(sorted(set(k))) if k else None,
        p_values=tuple(sorted(set(p))) if p else P_VALUES,
        n_seeds=seeds,
    )
    folder = asked.folder("teacher-student", teacher, student)
    run_command(recipe, asked, folder, lambda forecast, result: teacher_student_document(recipe, forecast, result))
