"""A teacher learns from few labels, a student from what the teacher thinks of the rest, and then from the labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from torch import Tensor, nn

from traincast.errors import InputError
from traincast.recipes.data.choose import subset_per_class
from traincast.recipes.data.images import ImageDataset
from traincast.recipes.engine.recipe import Progress
from traincast.recipes.engine.settings import TrainSettings
from traincast.recipes.engine.stages import Stage, inference_stage, train_stage
from traincast.recipes.engine.train import train
from traincast.recipes.models import build_model, meta_model
from traincast.recipes.passes import lengthened, others, repeated, samples_an_epoch
from traincast.recipes.step_count import StepCount
from traincast.recipes.teacher_student.result import SeedResult, Student, TeacherStudentResult
from traincast.recipes.teacher_student.scoring import score
from traincast.recipes.teacher_student.selection import Scores, select

TEACHER, SCORING, ALONE, PRETRAINING, FINE_TUNING = "teacher", "scoring", "student alone", "pretraining", "fine-tuning"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TeacherStudentRecipe:
    """Yalniz et al. (2019). In every stage an epoch is as many samples as the whole training set has.

    `settings` are those of the teacher and of pretraining; seeds count up from theirs. Fine-tuning begins at a tenth of
    the rate and takes half the epochs. The student alone learns from the labels for as many steps as a pretrained one
    takes in both of its stages.
    """

    data: ImageDataset
    settings: TrainSettings
    teacher: str = "cifar_resnet32"
    student: str = "cifar_resnet20"
    labeled_fraction: float = 0.05
    k_values: tuple[int, ...]
    p_values: tuple[int, ...]
    n_seeds: int = 5

    def __post_init__(self) -> None:
        n_classes = self.data.train.n_classes
        if not 0 < self.labeled_fraction < 1:
            raise InputError(f"The share of labels is above 0 and below 1, not {self.labeled_fraction:g}.")
        if not self.k_values or min(self.k_values) < 1:
            raise InputError(f"K is a number of images a class, at least 1, not {_listed(self.k_values)}.")
        if not self.p_values or not 1 <= min(self.p_values) <= max(self.p_values) <= n_classes:
            raise InputError(f"P is between 1 and the {n_classes} classes of the data, not {_listed(self.p_values)}.")
        if self.n_seeds < 1:
            raise InputError(f"The number of seeds is at least 1, not {self.n_seeds}.")

    @property
    def name(self) -> str:
        return "teacher-student"

    @property
    def n_labeled(self) -> int:
        return len(self.labeled(self.settings.seed))

    def stages(self) -> list[Stage]:
        """Each with all of its runs: every seed, and for students every K and P."""
        teacher, student = self._maker(self.teacher), self._maker(self.student)
        n_students = self.n_seeds * len(self.k_values) * len(self.p_values)
        labeled = self.labeled(self.settings.seed)
        labels = self.learns(labeled, self.data.train.labels[labeled], self.settings.seed)
        unlabeled = self.data.train.take(others(labeled, self.data.train.n_samples))
        scoring = inference_stage(SCORING, teacher, unlabeled, self.data, batch_size=self.settings.batch_size)
        return [
            repeated(train_stage(TEACHER, teacher, labels, self.settings), self.n_seeds),
            replace(scoring, n_epochs=self.n_seeds, precision=self.settings.precision, device=self.settings.device),
            repeated(train_stage(ALONE, student, labels, self.alone_settings), self.n_seeds),
            repeated(train_stage(PRETRAINING, student, labels, self.settings), n_students),
            repeated(train_stage(FINE_TUNING, student, labels, self.fine_settings), n_students),
        ]

    def run(self, folder: Path, on_progress: Progress | None = None) -> TeacherStudentResult:
        """In folders of its own for every seed and student: what was done once is not done again."""
        steps = StepCount(sum(stage.n_steps for stage in self.stages()), on_progress)
        spent_s: defaultdict[str, float] = defaultdict(float)
        first = self.settings.seed
        found = tuple(
            _Seed(self, seed, folder / f"seed-{seed}", steps, spent_s).run()
            for seed in range(first, first + self.n_seeds)
        )
        return TeacherStudentResult(
            teacher=self.teacher,
            student=self.student,
            n_labeled=self.n_labeled,
            n_unlabeled=self.data.train.n_samples - self.n_labeled,
            n_test=self.data.test.n_samples,
            seeds=found,
            stage_seconds=dict(spent_s),
        )

    @property
    def fine_settings(self) -> TrainSettings:
        """Of fine-tuning."""
        n_epochs = max(1, self.settings.n_epochs // 2)
        return replace(self.settings, learning_rate=self.settings.learning_rate / 10, n_epochs=n_epochs)

    @property
    def alone_settings(self) -> TrainSettings:
        """Of the student that has labels alone."""
        return replace(self.settings, n_epochs=self.settings.n_epochs + self.fine_settings.n_epochs)

    def labeled(self, seed: int) -> Tensor:
        """Numbers of the training images whose labels are known."""
        return subset_per_class(self.data.train.labels, share=self.labeled_fraction, seed=seed)

    def learns(self, images: Tensor, labels: Tensor, seed: int) -> ImageDataset:
        """The data set with these training images and labels, in epochs of the one length."""
        n_samples = samples_an_epoch(self.data.train.n_samples, self.settings.batch_size)
        return lengthened(self.data, images, labels, n_samples=n_samples, seed=seed)

    def _maker(self, model: str) -> Callable[[], nn.Module]:
        return partial(meta_model, model, self.data.train.n_classes)


class _Seed:
    """All runs of one seed."""

    def __init__(
        self, recipe: TeacherStudentRecipe, seed: int, folder: Path, steps: StepCount, spent_s: defaultdict[str, float]
    ) -> None:
        self._recipe, self._seed, self._folder, self._steps, self._spent_s = recipe, seed, folder, steps, spent_s
        self._labeled = recipe.labeled(seed)
        self._unlabeled = others(self._labeled, recipe.data.train.n_samples)
        self._truth = recipe.data.train.labels
        self._labels = recipe.learns(self._labeled, self._truth[self._labeled], seed)

    def run(self) -> SeedResult:
        recipe = self._recipe
        teacher = self._build(recipe.teacher)
        teacher_accuracy = self._train(teacher, self._labels, recipe.settings, "teacher", TEACHER)
        scores = self._score(teacher)
        alone = self._build(recipe.student)
        alone_accuracy = self._train(alone, self._labels, recipe.alone_settings, "student-alone", ALONE)
        students = [self._student(scores, k, p) for p, k in product(recipe.p_values, recipe.k_values)]
        return SeedResult(
            seed=self._seed,
            teacher_accuracy=teacher_accuracy,
            alone_accuracy=alone_accuracy,
            students=tuple(students),
        )

    def _student(self, scores: Scores, k: int, p: int) -> Student:
        selection = select(scores, k=k, p=p)
        images = self._unlabeled[selection.images]
        chosen = self._recipe.learns(images, selection.labels, self._seed)
        module = self._build(self._recipe.student)
        where = f"k{k}-p{p}"
        pretrained = self._train(module, chosen, self._recipe.settings, f"{where}/pretraining", PRETRAINING)
        tuned = self._train(module, self._labels, self._recipe.fine_settings, f"{where}/fine-tuning", FINE_TUNING)
        return Student(
            k=k,
            p=p,
            n_selected=len(selection),
            n_images=selection.n_images,
            right_fraction=float((self._truth[images] == selection.labels).float().mean()),
            pretrained_accuracy=pretrained,
            accuracy=tuned,
        )

    def _build(self, model: str) -> nn.Module:
        return build_model(model, self._recipe.data.train.n_classes, seed=self._seed)

    def _train(self, module: nn.Module, data: ImageDataset, settings: TrainSettings, where: str, stage: str) -> float:
        """The module itself is trained; gives its accuracy on the test images."""
        result = train(
            module,
            data,
            replace(settings, seed=self._seed),
            self._folder / where,
            name=f"{stage} of seed {self._seed}",
            on_progress=self._steps.within,
        )
        self._steps.ended(result.n_steps)
        self._spent_s[stage] += result.total_s
        return result.test_accuracy

    def _score(self, teacher: nn.Module) -> Scores:
        recipe, unlabeled = self._recipe, self._recipe.data.train.take(self._unlabeled)
        found = score(
            teacher,
            unlabeled,
            recipe.data,
            recipe.settings,
            p=max(recipe.p_values),
            path=self._folder / "teacher" / "scores.npz",
            on_progress=self._steps.within,
        )
        self._steps.ended(-(-unlabeled.n_samples // recipe.settings.batch_size))
        self._spent_s[SCORING] += found.seconds
        return found.scores


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values)) or "none at all"


def usual_k(data: ImageDataset, labeled_fraction: float) -> tuple[int, ...]:
    """An eighth, a half and twice of the unlabeled images that there are a class: few, many, and too many."""
    n_each = (1 - labeled_fraction) * data.train.n_samples / data.train.n_classes
    return tuple(max(1, round(share * n_each)) for share in (1 / 8, 1 / 2, 2))
