"""A teacher learns from few labels, a student from what the teacher thinks of the rest, and then from the labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path

from torch import Tensor, nn

from traincast.errors import InputError
from traincast.recipes.data.choose import subset_per_class
from traincast.recipes.data.images import ImageDataset
from traincast.recipes.engine.progress import Progress
from traincast.recipes.engine.settings import TrainSettings, settings_like
from traincast.recipes.engine.stages import Stage, inference_stage, train_stage
from traincast.recipes.models import meta_model
from traincast.recipes.passes import lengthened, others, repeated, samples_an_epoch
from traincast.recipes.seed_runs import SeedRuns, check_seeds
from traincast.recipes.step_count import StepCount
from traincast.recipes.teacher_student.result import SeedResult, Student, TeacherStudentResult
from traincast.recipes.teacher_student.scoring import score
from traincast.recipes.teacher_student.selection import Scores, select
from traincast.recipes.usual import LABELED_FRACTION, MODEL, P_VALUES, TEACHER_STUDENT
from traincast.recipes.usual import TEACHER as USUAL_TEACHER

TEACHER, SCORING, ALONE, PRETRAINING, FINE_TUNING = "teacher", "scoring", "student alone", "pretraining", "fine-tuning"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TeacherStudentRecipe:
    """Yalniz et al. (2019). In every stage an epoch is as many samples as the whole training set has.

    Where more pairs are selected than that, epochs go through them in turn. `settings` are those of the teacher and of
    pretraining; seeds count up from theirs. Fine-tuning begins at a tenth of the rate and takes half the epochs. The
    student alone learns from the labels for as many steps as a pretrained one takes in both of its stages. Networks of
    one kind start from the same weights in all runs of a seed. Without `k_values` they are those of `usual_k`.
    """

    data: ImageDataset
    settings: TrainSettings = field(default_factory=partial(settings_like, TEACHER_STUDENT))
    teacher: str = USUAL_TEACHER
    student: str = MODEL
    labeled_fraction: float = LABELED_FRACTION
    k_values: tuple[int, ...] | None = None
    p_values: tuple[int, ...] = P_VALUES
    n_seeds: int = TEACHER_STUDENT.n_seeds

    def __post_init__(self) -> None:
        n_classes = self.data.train.n_classes
        if not 0 < self.labeled_fraction < 1:
            raise InputError(f"The share of labels should be above 0 and below 1, not {self.labeled_fraction:g}.")
        if not self.ks or min(self.ks) < 1:
            raise InputError(f"K, the images per class, should be at least 1, not {_listed(self.ks)}.")
        if not self.p_values or not 1 <= min(self.p_values) <= max(self.p_values) <= n_classes:
            raise InputError(
                f"P should be between 1 and the {n_classes} classes of the data, not {_listed(self.p_values)}."
            )
        check_seeds(self.settings, self.n_seeds)

    @property
    def ks(self) -> tuple[int, ...]:
        """The numbers of images a class that students are pretrained on."""
        return usual_k(self.data, self.labeled_fraction) if self.k_values is None else self.k_values

    @property
    def name(self) -> str:
        return "teacher-student"

    @property
    def n_labeled(self) -> int:
        return len(self.labeled(self.settings.seed))

    def stages(self) -> list[Stage]:
        """Each with all of its runs: every seed, and for students every K and P."""
        teacher, student = self._maker(self.teacher), self._maker(self.student)
        n_students = self.n_seeds * len(self.ks) * len(self.p_values)
        labeled = self.labeled(self.settings.seed)
        labels = self.learns(labeled, self.data.train.labels[labeled], self.settings.seed)
        unlabeled = self.data.train.take(others(labeled, self.data.train.n_samples))
        scoring = inference_stage(SCORING, teacher, unlabeled, self.data, batch_size=self.settings.batch_size)
        return [
            repeated(train_stage(TEACHER, teacher, labels, self.own_settings), self.n_seeds),
            replace(scoring, n_epochs=self.n_seeds, precision=self.settings.precision, device=self.settings.device),
            repeated(train_stage(ALONE, student, labels, self.alone_settings), self.n_seeds),
            repeated(train_stage(PRETRAINING, student, labels, self.own_settings), n_students),
            repeated(train_stage(FINE_TUNING, student, labels, self.fine_settings), n_students),
        ]

    def run(self, folder: Path, on_progress: Progress | None = None) -> TeacherStudentResult:
        """In folders of its own for every seed and student: what was done once is not done again."""
        steps = StepCount(sum(stage.n_steps for stage in self.stages()), on_progress)
        spent_s: defaultdict[str, float] = defaultdict(float)
        first = self.settings.seed
        seeds = (
            SeedRuns(seed=seed, folder=folder / f"seed-{seed}", steps=steps, spent_s=spent_s)
            for seed in range(first, first + self.n_seeds)
        )
        found = tuple(_Seed(self, runs).run() for runs in seeds)
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
    def own_settings(self) -> TrainSettings:
        """Of the teacher and of pretraining, in epochs of the one length."""
        return replace(self.settings, n_samples=samples_an_epoch(self.data.train.n_samples, self.settings.batch_size))

    @property
    def fine_settings(self) -> TrainSettings:
        """Of fine-tuning."""
        n_epochs = max(1, self.settings.n_epochs // 2)
        return replace(self.own_settings, learning_rate=self.settings.learning_rate / 10, n_epochs=n_epochs)

    @property
    def alone_settings(self) -> TrainSettings:
        """Of the student that has labels alone."""
        return replace(self.own_settings, n_epochs=self.settings.n_epochs + self.fine_settings.n_epochs)

    def labeled(self, seed: int) -> Tensor:
        """Numbers of the training images whose labels are known."""
        return subset_per_class(self.data.train.labels, share=self.labeled_fraction, seed=seed)

    def learns(self, images: Tensor, labels: Tensor, seed: int) -> ImageDataset:
        """The data set with these training images and labels, enough of them for an epoch of the one length."""
        n_samples = samples_an_epoch(self.data.train.n_samples, self.settings.batch_size)
        return lengthened(self.data, images, labels, n_samples=n_samples, seed=seed)

    def _maker(self, model: str) -> Callable[[], nn.Module]:
        return partial(meta_model, model, self.data.train.n_classes)


class _Seed:
    """All models of one seed."""

    def __init__(self, recipe: TeacherStudentRecipe, runs: SeedRuns) -> None:
        self._recipe, self._runs, self._n_classes = recipe, runs, recipe.data.train.n_classes
        self._labeled = recipe.labeled(runs.seed)
        self._unlabeled = others(self._labeled, recipe.data.train.n_samples)
        self._truth = recipe.data.train.labels
        self._labels = recipe.learns(self._labeled, self._truth[self._labeled], runs.seed)

    def run(self) -> SeedResult:
        recipe, runs = self._recipe, self._runs
        teacher = runs.build(recipe.teacher, self._n_classes)
        teacher_accuracy = runs.train(teacher, self._labels, recipe.own_settings, where="teacher", stage=TEACHER)
        scores = self._score(teacher)
        alone = runs.build(recipe.student, self._n_classes)
        alone_accuracy = runs.train(alone, self._labels, recipe.alone_settings, where="student-alone", stage=ALONE)
        students = [self._student(scores, k, p) for p, k in product(recipe.p_values, recipe.ks)]
        return SeedResult(
            seed=runs.seed,
            teacher_accuracy=teacher_accuracy,
            alone_accuracy=alone_accuracy,
            students=tuple(students),
        )

    def _student(self, scores: Scores, k: int, p: int) -> Student:
        recipe, runs = self._recipe, self._runs
        selection = select(scores, k=k, p=p)
        images = self._unlabeled[selection.images]
        chosen = recipe.learns(images, selection.labels, runs.seed)
        module = runs.build(recipe.student, self._n_classes)
        where = f"k{k}-p{p}"
        pretrained = runs.train(module, chosen, recipe.own_settings, where=f"{where}/pretraining", stage=PRETRAINING)
        tuned = runs.train(module, self._labels, recipe.fine_settings, where=f"{where}/fine-tuning", stage=FINE_TUNING)
        return Student(
            k=k,
            p=p,
            n_selected=len(selection),
            n_images=selection.n_images,
            right_fraction=float((self._truth[images] == selection.labels).float().mean()),
            pretrained_accuracy=pretrained,
            accuracy=tuned,
        )

    def _score(self, teacher: nn.Module) -> Scores:
        recipe, runs, unlabeled = self._recipe, self._runs, self._recipe.data.train.take(self._unlabeled)
        found = score(
            teacher,
            unlabeled,
            recipe.data,
            recipe.settings,
            p=max(recipe.p_values),
            path=runs.folder / "teacher" / "scores.npz",
            on_progress=runs.steps.within,
        )
        runs.steps.ended(-(-unlabeled.n_samples // recipe.settings.batch_size))
        runs.spent_s[SCORING] += found.seconds
        return found.scores


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(map(str, values)) or "none"


def usual_k(data: ImageDataset, labeled_fraction: float) -> tuple[int, ...]:
    """An eighth, a half and twice of the unlabeled images that there are a class: few, many, and too many."""
    n_each = (1 - labeled_fraction) * data.train.n_samples / data.train.n_classes
    return tuple(dict.fromkeys(max(1, round(share * n_each)) for share in (1 / 8, 1 / 2, 2)))
