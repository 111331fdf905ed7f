"""`traincast train teacher-student`: few labels, many images without."""

from typing import Annotated

import typer

from traincast.cli.options import AsJson, HtmlFile, PngFile
from traincast.cli.train_options import (
    BatchSize,
    Data,
    Download,
    ForecastOnly,
    ImageSide,
    LearningRate,
    On,
    Out,
    Price,
    Seed,
    TrainDevice,
    TrainPrecision,
    out_folder,
)


def teacher_student(
    data: Data = "digits",
    teacher: Annotated[str, typer.Option(help="The network that learns from the labels first.")] = "cifar_resnet32",
    student: Annotated[str, typer.Option(help="The network that learns from the teacher.")] = "cifar_resnet20",
    labeled: Annotated[str, typer.Option(metavar="SHARE", help="Labels that are known: 5% or 0.05.")] = "5%",
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
        typer.Option("--p", help="Likeliest classes that an image may serve; again for more.", show_default="1, 3"),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Of teaching and pretraining, each as long as the training set.")] = 3,
    batch_size: BatchSize = 32,
    learning_rate: LearningRate = 0.03,
    seeds: Annotated[int, typer.Option(help="Runs of everything, each with labels of its own.")] = 5,
    seed: Seed = 0,
    out: Out = None,
    image_side: ImageSide = None,
    download: Download = False,
    on: On = "this-machine",
    device: TrainDevice = "cpu",
    precision: TrainPrecision = "fp32",
    price: Price = None,
    forecast_only: ForecastOnly = False,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """Does a student that is pretrained on what its teacher selects beat the teacher?

    Examples: traincast train teacher-student; traincast train teacher-student --labeled 10% --k 50 --k 200 --p 1
    --seeds 3
    """
    from traincast.api.runnables import require_torch
    from traincast.cli.fractions import fraction_of
    from traincast.cli.show import show
    from traincast.cli.train_flow import Asked, forecast_recipe, run_recipe
    from traincast.cli.train_teacher_student_document import teacher_student_document

    require_torch("Training")
    from traincast.recipes.data.load import load_dataset
    from traincast.recipes.engine.settings import TrainSettings
    from traincast.recipes.scratch import usual_augmentation
    from traincast.recipes.teacher_student.recipe import TeacherStudentRecipe, usual_k

    images = load_dataset(data, image_side=image_side, download=download)
    labeled_fraction = fraction_of(labeled, "--labeled")
    recipe = TeacherStudentRecipe(
        data=images,
        settings=TrainSettings(
            n_epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=1e-4,
            seed=seed,
            device=device,
            precision=precision,
            augmentation=usual_augmentation(images),
        ),
        teacher=teacher,
        student=student,
        labeled_fraction=labeled_fraction,
        k_values=tuple(sorted(set(k))) if k else usual_k(images, labeled_fraction),
        p_values=tuple(sorted(set(p))) if p else (1, min(3, images.train.n_classes)),
        n_seeds=seeds,
    )
    folder = out_folder(out, "teacher-student", teacher, student, data)
    asked = Asked(
        folder=folder,
        on=on,
        device=device,
        price_usd_per_hour=price,
        forecast_only=forecast_only,
        as_json=as_json,
        html=html,
        png=png,
    )
    forecast = forecast_recipe(recipe, asked)
    if forecast is None:
        return
    result = run_recipe(recipe.run, recipe.name, folder)
    answer = {"forecast": forecast.to_dict(), "result": result.to_dict()}
    show(teacher_student_document(recipe, forecast, result), as_json=as_json, html=html, png=png, data=answer)
