"""How a step is run: precision and optimizer, by the names that users type."""

from __future__ import annotations

from dataclasses import dataclass

from traincast.errors import InputError, close_names

PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16", "bf16")
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune")  # of torch.compile
OPTIMIZERS = ("none", "sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam", "adamw")
MODES = ("train", "inference")


@dataclass(frozen=True, slots=True)
class Settings:
    """A precision and an optimizer."""

    precision: str = "fp32"
    optimizer: str = "sgd"

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)

    def override(self, precision: str | None, optimizer: str | None) -> Settings:
        """These settings with what the user chose in their place."""
        return Settings(
            self.precision if precision is None else precision, self.optimizer if optimizer is None else optimizer
        )


def check_choice(what: str, given: object, allowed: tuple[str, ...]) -> None:
    """One sentence for a name that is not on the list."""
    if given not in allowed:
        raise InputError(
            f"{what} '{given}' is not known.{close_names(given, allowed)} Choose from: {', '.join(allowed)}."
        )
