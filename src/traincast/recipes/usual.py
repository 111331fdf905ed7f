"""What recipes do unless they are told otherwise: on the digits and two cores, about a minute each.

Free of torch, so that `traincast train --help` can tell it at once.
"""

from __future__ import annotations

from dataclasses import dataclass

DATA, MODEL, TEACHER = "digits", "cifar_resnet20", "cifar_resnet32"
CHECKPOINT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """How one recipe trains."""

    n_epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 1e-4
    optimizer: str = "momentum"
    n_seeds: int = 1


SCRATCH = Usual(n_epochs=10, batch_size=128, learning_rate=0.1)
# The course's; the rate is that of the source task, the grid has its own.
TRANSFER = Usual(n_epochs=6, batch_size=64, learning_rate=0.1, weight_decay=0.0, n_seeds=3)
N_SOURCE_EPOCHS = 10
TEACHER_STUDENT = Usual(n_epochs=3, batch_size=32, learning_rate=0.03, n_seeds=2)
LABELED_FRACTION, P_VALUES = 0.05, (1,)
WEAK = Usual(n_epochs=3, batch_size=32, learning_rate=0.03, n_seeds=2)
CLEAN_FRACTION, IMBALANCE, NOISE_FRACTIONS = 0.05, 10.0, (0.0, 0.5)
DROPPED_FRACTION, ADDED_FRACTION = 0.1, 0.3
SCALING_EPOCHS, SCALING_DEVICES = 2, (1, 2)
COLLECTION_EPOCHS = (2, 4)
