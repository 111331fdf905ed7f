"""Which unlabeled images the student is pretrained on, and as what.

For each class, the K images with the highest score for it among those that have it among their P likeliest classes.
Every class gets its images, also one that the teacher seldom ranks first; an image may serve several classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from traincast.errors import InputError


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Scores:
    """The likeliest classes of every image, best first: all that a selection needs, N x P instead of N x C."""

    classes: Tensor  # int64
    probabilities: Tensor  # float32

    def __post_init__(self) -> None:
        if self.classes.shape != self.probabilities.shape or self.classes.dim() != 2:
            shapes = f"{tuple(self.classes.shape)} and {tuple(self.probabilities.shape)}"
            raise ValueError(f"classes and their probabilities are two tables of one shape, not {shapes}")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Selection:
    """Pairs of an image and the class it was chosen for, class by class, best first."""

    images: Tensor  # int64: places among the unlabeled
    labels: Tensor  # int64

    def __len__(self) -> int:
        return len(self.images)

    @property
    def n_images(self) -> int:
        """Each counted once."""
        return int(self.images.unique().numel())


def likeliest(probabilities: Tensor, *, p: int) -> Scores:
    """The P largest of each row; of equal ones, the lower class first."""
    kept = torch.sort(probabilities, dim=1, descending=True, stable=True)
    return Scores(classes=kept.indices[:, :p], probabilities=kept.values[:, :p])


def select(scores: Scores, *, k: int, p: int) -> Selection:
    """At most K images a class, by score; of equal ones, the earlier image first."""
    n_kept = scores.classes.shape[1]
    if k < 1 or not 1 <= p <= n_kept:
        raise InputError(f"K is at least 1 and P between 1 and the {n_kept} classes that were kept, not {k} and {p}.")
    classes = scores.classes[:, :p].flatten()
    images = torch.arange(len(scores.classes)).repeat_interleave(p)
    by_score = torch.sort(scores.probabilities[:, :p].flatten(), descending=True, stable=True).indices
    by_class = by_score[torch.sort(classes[by_score], stable=True).indices]
    # After both sorts a class is one stretch, best first: the place within the stretch is the rank.
    sizes = torch.bincount(classes)
    rank = torch.arange(len(classes)) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    chosen = by_class[rank < k]
    return Selection(images=images[chosen], labels=classes[chosen])
