"""How a model is trained: the numbers that, with data and first weights, decide every step."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch

from traincast.errors import InputError, ParameterError
from traincast.recipes.data.augmentation import Augmentation
from traincast.recipes.data.images import ImageDataset
from traincast.recipes.usual import CHECKPOINT_S, Usual
from traincast.trace.settings import OPTIMIZERS, PRECISIONS, check_choice

_LARGEST_SEED = 2**31 - 1
_DEVICE = re.compile(r"cpu|cuda(:\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """One training run. `milestones` are shares of the run at which the learning rate falls tenfold.

    An epoch is every training image once, or `n_samples` of them, with which the next epoch goes on. "usual" is the
    augmentation that the data set says. A checkpoint is due `checkpoint_s` after the one before, and after an epoch in
    a sixth of that: it changes nothing about the run.
    """

    n_epochs: int
    batch_size: int
    learning_rate: float
    optimizer: str = "momentum"
    milestones: tuple[float, ...] = (0.5, 0.75)
    weight_decay: float = 0.0
    seed: int = 0
    device: str = "cpu"
    precision: str = "fp32"
    augmentation: Augmentation | Literal["usual"] | None = "usual"
    evaluate_every: int = 1  # epochs; the last is always evaluated
    n_samples: int | None = None
    checkpoint_s: float = CHECKPOINT_S

    def __post_init__(self) -> None:
        for name in ("n_epochs", "batch_size", "evaluate_every"):
            check_whole(name, getattr(self, name), at_least=1)
        if self.n_samples is not None:
            check_whole("n_samples", self.n_samples, at_least=1)
        check_whole("seed", self.seed, at_least=0)
        if self.seed > _LARGEST_SEED:
            raise InputError(f"seed {self.seed} is too large: give at most {_LARGEST_SEED}.")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ParameterError("learning_rate", self.learning_rate, "give a number above 0")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise ParameterError("weight_decay", self.weight_decay, "give a number of at least 0")
        if not self.checkpoint_s >= 0:
            raise ParameterError("checkpoint_s", self.checkpoint_s, "give at least 0 seconds")
        if any(not 0 < share < 1 for share in self.milestones) or list(self.milestones) != sorted(self.milestones):
            raise InputError(
                f"milestones {self.milestones} should be rising fractions of the run, such as 0.5,0.75, or none."
            )
        check_choice("optimizer", self.optimizer, tuple(name for name in OPTIMIZERS if name != "none"))
        check_choice("precision", self.precision, PRECISIONS)
        if not _DEVICE.fullmatch(self.device):
            raise InputError(f"Training is not possible on the device '{self.device}': give cpu, cuda or cuda:1.")
        if self.precision == "tf32" and not self.is_on_cuda:
            raise InputError("tf32 is a mode of NVIDIA GPUs: on the CPU choose fp32 or bf16.")

    @property
    def is_on_cuda(self) -> bool:
        return self.device.partition(":")[0] == "cuda"

    def n_evaluations(self) -> int:
        """Epochs after which the test data are evaluated."""
        return math.ceil(self.n_epochs / self.evaluate_every)

    def is_evaluated_after(self, epoch: int) -> bool:
        """Of the epochs 0, 1, ...: every so many, and the last."""
        return (epoch + 1) % self.evaluate_every == 0 or epoch + 1 == self.n_epochs

    def rate_at(self, step: int, n_steps: int) -> float:
        """The learning rate of step 0, 1, ... of so many."""
        # Never at the first step and, if there are two, never after the last: short runs have all of their rates too.
        drops = (max(1, min(round(share * n_steps), n_steps - 1)) for share in self.milestones)
        return self.learning_rate / 10.0 ** sum(step >= drop for drop in drops)

    def of(self, data: ImageDataset) -> TrainSettings:
        """For these data: with their augmentation in the place of "usual"."""
        return replace(self, augmentation=data.augmentation) if self.augmentation == "usual" else self

    def to_dict(self) -> dict[str, Any]:
        """What makes the run what it is."""
        told = {**asdict(self), "milestones": list(self.milestones)}
        del told["checkpoint_s"]
        return told


def settings_like(usual: Usual, **given: Any) -> TrainSettings:
    """What a recipe usually trains with, but for what is given."""
    names = ("n_epochs", "batch_size", "learning_rate", "weight_decay", "optimizer")
    return TrainSettings(**{**{name: getattr(usual, name) for name in names}, **given})


def check_device(device: str) -> None:
    """Whether torch can train there."""
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return
    if not torch.cuda.is_available():
        raise InputError(f"There is no CUDA device to train on ('{device}'): this torch sees only the CPU.")
    if number and int(number) >= torch.cuda.device_count():
        raise InputError(f"There is no device '{device}': this machine has {torch.cuda.device_count()} GPUs.")


def check_whole(name: str, value: object, *, at_least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise ParameterError(name, value, f"give a whole number of at least {at_least}")
