"""How a step is run: precision, optimizer and what people choose beside them, by the names that users type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from traincast.errors import InputError, close_names

PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16", "bf16")
OPTIMIZERS = ("none", "sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam", "adamw")
MODES = ("train", "inference")
RECOMPUTE = ("none", "selective", "full", "reentrant")
STACKS = ("torch", "torch-compile", "megatron")
_EVERY = re.compile(r"full:([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class Settings:
    """A precision and an optimizer, and how the model is trained with them.

    `recompute` says which activations are made again in backward: "none", "selective" (what the stack does), "full"
    (every block), "full:2" (every second block), or "reentrant" (every block, to its last op, as PyTorch's older
    checkpointing does). `stack` is the software that trains.
    """

    precision: str = "fp32"
    optimizer: str = "sgd"
    recompute: str = "none"
    stack: str = "torch"

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("stack", self.stack, STACKS)
        if not _EVERY.fullmatch(self.recompute):
            check_choice("recompute", self.recompute, RECOMPUTE, also="full:2 (every second block)")

    def override(self, precision: str | None, optimizer: str | None) -> Settings:
        """These settings with what the user chose in their place."""
        return self.chosen({"precision": precision, "optimizer": optimizer})

    def chosen(self, options: Mapping[str, Any]) -> Settings:
        """These settings with those options that are theirs and that somebody gave."""
        own = {field.name: options[field.name] for field in fields(self) if options.get(field.name) is not None}
        return replace(self, **own)

    @property
    def extras(self) -> tuple[str, ...]:
        """What is chosen beside precision and optimizer, in words for a line of settings."""
        found = [] if self.recompute == "none" else [f"recompute {self.recompute}"]
        return (*found, *([] if self.stack == "torch" else [f"stack {self.stack}"]))


def check_choice(what: str, given: object, allowed: tuple[str, ...], *, also: str = "") -> None:
    """One sentence for a name that is not on the list."""
    if given not in allowed:
        names = ", ".join((*allowed, *([also] if also else [])))
        raise InputError(f"{what} '{given}' is not known.{close_names(given, allowed)} Choose from: {names}.")
