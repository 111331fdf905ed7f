"""How a model is trained: the numbers that, with data and first weights, decide every step."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from traincast.errors import InputError
from traincast.recipes.data.batches import Augmentation
from traincast.trace.settings import OPTIMIZERS, PRECISIONS, check_choice

_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """One training run. `milestones` are shares of the run at which the learning rate falls tenfold."""

    n_epochs: int
    batch_size: int
    learning_rate: float
    optimizer: str = "momentum"
    milestones: tuple[float, ...] = (0.5, 0.75)
    weight_decay: float = 0.0
    seed: int = 0
    device: str = "cpu"
    precision: str = "fp32"
    augmentation: Augmentation | None = field(default_factory=Augmentation)
    evaluate_every: int = 1  # epochs; the last is always evaluated

    def __post_init__(self) -> None:
        for name in ("n_epochs", "batch_size", "evaluate_every"):
            _check_whole(name, getattr(self, name), at_least=1)
        _check_whole("seed", self.seed, at_least=0)
        if self.seed > _LARGEST_SEED:
            raise InputError(f"seed {self.seed} is too large: give at most {_LARGEST_SEED}.")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InputError(f"learning_rate cannot be {self.learning_rate!r}: give a number above 0.")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise InputError(f"weight_decay cannot be {self.weight_decay!r}: give 0 or a number above.")
        if any(not 0 < share < 1 for share in self.milestones) or list(self.milestones) != sorted(self.milestones):
            raise InputError(f"milestones {self.milestones} are not rising shares of the run: give 0.5,0.75 or none.")
        check_choice("optimizer", self.optimizer, tuple(name for name in OPTIMIZERS if name != "none"))
        check_choice("precision", self.precision, PRECISIONS)
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
        n_drops = sum(step >= round(share * n_steps) for share in self.milestones)
        return self.learning_rate / 10.0**n_drops

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "milestones": list(self.milestones)}


def check_device(device: str) -> None:
    """Whether torch can train there."""
    kind = device.partition(":")[0]
    if kind not in ("cpu", "cuda"):
        raise InputError(f"There is no training on the device '{device}': give cpu, cuda or cuda:1.")
    if kind == "cuda":
        if not torch.cuda.is_available():
            raise InputError(f"There is no CUDA device to train on ('{device}'): this torch sees only the CPU.")
        number = device.partition(":")[2]
        if number and (not number.isdigit() or int(number) >= torch.cuda.device_count()):
            raise InputError(f"There is no device '{device}': this machine has {torch.cuda.device_count()} GPUs.")


def _check_whole(name: str, value: object, *, at_least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise InputError(f"{name} cannot be {value!r}: give a whole number of at least {at_least}.")
