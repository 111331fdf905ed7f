"""What every frontend hands to the capture: a module, inputs for any batch size, and a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """A model and how one step of it is run.

    `example` maps a batch size to the arguments of `module`: a tensor, a tuple, or a dict of keyword arguments.
    `loss` maps (output, inputs) to a scalar; None means the model's own loss, or the mean of its logits.
    `assumptions` say in a sentence each what the frontend had to take for granted; they end up in the trace.
    """

    name: str
    module: Any
    example: Callable[[int], Any]
    loss: Callable[[Any, Any], Any] | None = None
    assumptions: tuple[str, ...] = ()
