"""How a step is run: precision, optimizer and what people choose beside them, by the names that users type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from traincast.errors import InputError, close_names
from traincast.trace.adapter_text import find_adapter

PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16", "bf16")
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune")  # of torch.compile
OPTIMIZERS = ("none", "sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adam", "adamw")
HALF_WEIGHTS = ("bf16", "fp8")  # precisions whose weights have 16 bits
# What a step can also be asked about, and what is not run here.
FORECAST_PRECISIONS = (*PRECISIONS, "fp8")
FORECAST_OPTIMIZERS = (*OPTIMIZERS, "adam-fused", "adamw-fused", "adamw-8bit", "adafactor", "lion", "muon")
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
    master_weights: bool | None = None  # of a step: none unless they are asked for
    clip_gradients: bool = False
    adapter: str | None = None  # "lora:16" | "lora:16:q,v" | "qlora:16"

    def __post_init__(self) -> None:
        check_choice("precision", self.precision, FORECAST_PRECISIONS)
        check_choice("optimizer", self.optimizer, FORECAST_OPTIMIZERS)
        check_choice("stack", self.stack, STACKS)
        if self.master_weights is not None and self.precision not in HALF_WEIGHTS:
            raise InputError(
                f"master_weights is about 16-bit weights, and precision '{self.precision}' keeps fp32 ones as it is: "
                f"leave it out, or choose precision bf16."
            )
        if self.adapter is not None:
            find_adapter(self.adapter)
        if not _EVERY.fullmatch(self.recompute):
            check_choice("recompute", self.recompute, RECOMPUTE, also="full:2 (every second block)")

    def override(self, precision: str | None, optimizer: str | None) -> Settings:
        """These settings with what the user chose in their place."""
        return self.chosen({"precision": precision, "optimizer": optimizer})

    def chosen(self, options: Mapping[str, Any]) -> Settings:
        """These settings with those options that are theirs and that somebody gave."""
        own = {field.name: options[field.name] for field in fields(self) if options.get(field.name) is not None}
        return replace(self, **own)

    def resolved(self, *, is_sharded: bool = False) -> Settings:
        """Masters as they are usual: FSDP, DeepSpeed and Megatron keep fp32 weights, plain PyTorch in bf16 has none."""
        if self.master_weights is not None or self.precision not in HALF_WEIGHTS:
            return self
        return replace(self, master_weights=True) if is_sharded or self.stack == "megatron" else self

    @property
    def keeps_masters(self) -> bool:
        """Whether fp32 weights stand behind those of 16 bits that the step computes with."""
        return bool(self.master_weights)

    @property
    def fuses_update(self) -> bool:
        """Whether the whole update is one kernel, as in Megatron, instead of a few passes over all parameters."""
        is_elementwise = self.update not in ("none", "adamw-8bit", "adafactor", "muon")
        return self.optimizer.endswith("-fused") or (self.stack == "megatron" and is_elementwise)

    @property
    def update(self) -> str:
        """The optimizer, however its ops are put together."""
        return self.optimizer.removesuffix("-fused")

    @property
    def extras(self) -> tuple[str, ...]:
        """What is chosen beside precision and optimizer, in words for a line of settings."""
        told = {
            str(self.adapter): self.adapter is not None,
            f"recompute {self.recompute}": self.recompute != "none",
            "fp32 masters": self.keeps_masters,
            "gradients clipped": self.clip_gradients,
            f"stack {self.stack}": self.stack != "torch",
        }
        return tuple(words for words, is_so in told.items() if is_so)


def check_choice(what: str, given: object, allowed: tuple[str, ...], *, also: str = "") -> None:
    """One sentence for a name that is not on the list."""
    if given not in allowed:
        names = ", ".join((*allowed, *([also] if also else [])))
        raise InputError(f"{what} '{given}' is not known.{close_names(given, allowed)} Choose from: {names}.")
