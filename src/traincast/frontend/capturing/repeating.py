"""Captures a model whose blocks repeat from a few of them: it is built as it is, and run with most of a stack left out.

Blocks are alike if their modules have the same kinds, parameters and settings, and if lists of the model's config that
have an entry a block say the same of them. A model whose blocks turn out to differ in what they run is captured whole.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from traincast.errors import CaptureError
from traincast.frontend.capturing.capture import capture_step
from traincast.frontend.capturing.fold import capture_folded
from traincast.frontend.step import TrainingStep
from traincast.trace.folding.units import Stack
from traincast.trace.trace import Trace

_LEAST_UNITS = 6  # fewer are captured as they are
_MOST_FIRST, _LONGEST_PERIOD = 4, 12
_NUMBERS = ("idx", "index", "layer_id", "layer_number", "training")  # of a block, where it is: no difference
_ANY_LENGTH = 0  # a config is captured at one length
_SHOWN_AFTER_S = 2.0


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where blocks repeat, how many units there are, and what is left over."""

    stack: Stack
    n_units: int
    n_rest: int  # blocks of a last unit that is not whole

    def kept(self, n_units: int) -> int:
        return self.stack.start + n_units * self.stack.period + self.n_rest


def capture_repeating(step: TrainingStep) -> Trace:
    """The trace of what a frontend read, by way of a few of its blocks where they repeat."""
    blocks = repeated_blocks(step.module)
    if not blocks:
        return capture_step(step)
    started_s = time.monotonic()
    whole = {one.stack.path: list(step.module.get_submodule(one.stack.path)) for one in blocks}

    def shortened(n_units: Sequence[int], _: int) -> TrainingStep:
        _tell(started_s, step.name, blocks, n_units)
        for one, n in zip(blocks, n_units, strict=True):
            set_blocks(step.module, one.stack.path, whole[one.stack.path][: one.kept(n)])
        return step

    try:
        stacks, counts = [one.stack for one in blocks], [one.n_units for one in blocks]
        folded = capture_folded(shortened, stacks, counts, lengths=(_ANY_LENGTH,))
    except CaptureError:
        folded = None
    finally:
        for path, parts in whole.items():
            set_blocks(step.module, path, parts)
    return capture_step(step) if folded is None else folded.at(_ANY_LENGTH)


def repeated_blocks(module: Any) -> list[Blocks]:
    """The lists of blocks that repeat; none where one lies within another."""
    found = [one for path, part in module.named_modules() if (one := _blocks(module, path, part))]
    is_within = any(one.stack.path.startswith(f"{other.stack.path}.") for one in found for other in found)
    return [] if is_within else found


def _tell(started_s: float, name: str, blocks: Sequence[Blocks], n_units: Sequence[int]) -> None:
    if time.monotonic() - started_s > _SHOWN_AFTER_S:
        kept = sum(one.kept(n) for one, n in zip(blocks, n_units, strict=True))
        sys.stderr.write(f"Capturing {name} with {kept} of its blocks, to compare ...\n")


def _blocks(model: Any, path: str, part: Any) -> Blocks | None:
    """How the blocks of a list repeat; None if it is no list, or too short for it to matter."""
    if not isinstance(part, torch.nn.ModuleList) or len(part) < _LEAST_UNITS:
        return None
    lists = _lists_by_block(model, len(part))
    kinds = [(_signature(block), tuple(values[number] for values in lists)) for number, block in enumerate(part)]
    for start in range(_MOST_FIRST):
        for period in range(1, _LONGEST_PERIOD + 1):
            n_units, n_rest = divmod(len(part) - start, period)
            repeats = all(kinds[n] == kinds[n + period] for n in range(start, len(part) - period))
            if n_units >= _LEAST_UNITS and repeats:
                return Blocks(Stack(path, start, period), n_units, n_rest)
    return None


def _lists_by_block(model: Any, n_blocks: int) -> list[list[str]]:
    """What the model's config says of each block."""
    configs = {id(part.config): part.config for part in model.modules() if hasattr(part, "config")}
    found = []
    for config in configs.values():
        for value in vars(config).values():
            if isinstance(value, (list, tuple)) and len(value) == n_blocks:
                found.append([repr(item) for item in value])
    return found


def _signature(block: Any) -> tuple[object, ...]:
    """Kinds, parameters and settings of everything in a block."""
    found: list[object] = []
    for path, part in block.named_modules():
        settings = {
            name: value
            for name, value in vars(part).items()
            if isinstance(value, (int, float, str, type(None))) and not any(word in name for word in _NUMBERS)
        }
        shapes = [
            (name, tuple(one.shape), one.dtype, one.requires_grad) for name, one in part.named_parameters(recurse=False)
        ]
        buffers = [(name, tuple(one.shape), one.dtype) for name, one in part.named_buffers(recurse=False)]
        found.append((path, type(part), tuple(sorted(settings.items(), key=str)), tuple(shapes), tuple(buffers)))
    return tuple(found)


def set_blocks(model: Any, path: str, parts: Sequence[Any]) -> None:
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, torch.nn.ModuleList(parts))
