"""A model with what it takes to really run a step of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Runnable:
    """Made by whoever read the model; nothing here depends on how.

    `make_inputs` maps a batch size to inputs, `forward` calls the module with them, and `loss` maps
    (output, inputs) to a scalar tensor.
    """

    name: str
    module: Any
    make_inputs: Callable[[int], Any]
    forward: Callable[[Any, Any], Any]
    loss: Callable[[Any, Any], Any]
