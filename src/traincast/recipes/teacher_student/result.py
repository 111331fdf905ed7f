"""What came out of a teacher and its students, over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traincast.recipes.over_seeds import OverSeeds, over_seeds, paired


@dataclass(frozen=True, slots=True, kw_only=True)
class Student:
    """One student: pretrained on K images a class by the P rule, then fine-tuned. Accuracies are of the test images."""

    k: int
    p: int
    n_selected: int  # pairs of image and class
    n_images: int  # each once
    right_fraction: float  # of the pairs that have the true class, which nobody learns from
    pretrained_accuracy: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    """All models of one seed: it draws the labeled images, first weights and the order of batches."""

    seed: int
    teacher_accuracy: float
    alone_accuracy: float  # the student's network, trained on labels alone for as many steps
    students: tuple[Student, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One K and P over all seeds. `gain` is over the teacher of the same seed, `own_gain` over the student alone."""

    k: int
    p: int
    n_selected: OverSeeds
    right_fraction: OverSeeds
    pretrained_accuracy: OverSeeds
    accuracy: OverSeeds
    gain: OverSeeds
    own_gain: OverSeeds


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherStudentResult:
    """Students have the same K and P, in the same order, for every seed."""

    teacher: str
    student: str
    n_labeled: int
    n_unlabeled: int
    n_test: int
    seeds: tuple[SeedResult, ...]
    stage_seconds: Mapping[str, float]

    @property
    def teacher_accuracy(self) -> OverSeeds:
        return over_seeds([each.teacher_accuracy for each in self.seeds])

    @property
    def alone_accuracy(self) -> OverSeeds:
        return over_seeds([each.alone_accuracy for each in self.seeds])

    @property
    def lines(self) -> tuple[Line, ...]:
        """By P, then by K."""
        return tuple(self._line(place) for place in range(len(self.seeds[0].students)))

    @property
    def chosen(self) -> tuple[Student, ...] | None:
        """For each seed, the student whose K and P were best with the *other* seeds; None for a single seed.

        The best of a table looks better than it is, because luck helped to choose it. Here it did not.
        """
        if len(self.seeds) < 2:
            return None
        return tuple(own.students[_best([each for each in self.seeds if each is not own])] for own in self.seeds)

    def chosen_gains(self) -> tuple[OverSeeds, OverSeeds] | None:
        """Of those students: over the teacher, and over the student alone."""
        chosen = self.chosen
        if chosen is None:
            return None
        accuracies = [student.accuracy for student in chosen]
        return (
            paired(accuracies, [each.teacher_accuracy for each in self.seeds]),
            paired(accuracies, [each.alone_accuracy for each in self.seeds]),
        )

    def to_dict(self) -> dict[str, Any]:
        """What --json prints: every run, and the means."""
        return {
            "teacher": self.teacher,
            "student": self.student,
            "n_labeled": self.n_labeled,
            "n_unlabeled": self.n_unlabeled,
            "n_test": self.n_test,
            "teacher_accuracy": self.teacher_accuracy,
            "alone_accuracy": self.alone_accuracy,
            "lines": self.lines,
            "chosen": self.chosen,
            "chosen_gains": self.chosen_gains(),
            "seeds": self.seeds,
            "stage_seconds": dict(self.stage_seconds),
        }

    def _line(self, place: int) -> Line:
        students = [each.students[place] for each in self.seeds]
        accuracies = [student.accuracy for student in students]
        return Line(
            k=students[0].k,
            p=students[0].p,
            n_selected=over_seeds([student.n_selected for student in students]),
            right_fraction=over_seeds([student.right_fraction for student in students]),
            pretrained_accuracy=over_seeds([student.pretrained_accuracy for student in students]),
            accuracy=over_seeds(accuracies),
            gain=paired(accuracies, [each.teacher_accuracy for each in self.seeds]),
            own_gain=paired(accuracies, [each.alone_accuracy for each in self.seeds]),
        )


def _best(seeds: Sequence[SeedResult]) -> int:
    """The place of the K and P with the highest mean; of equal ones the first, which takes the fewest images."""
    means = [
        over_seeds([each.students[place].accuracy for each in seeds]).mean for place in range(len(seeds[0].students))
    ]
    return means.index(max(means))
