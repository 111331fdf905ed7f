"""Optimizers as lists of elementwise ops over the parameters, as PyTorch 2.13 dispatches them after the first step.

A line reads `output op inputs`: p parameter, g gradient, t u temporaries, other letters the optimizer's state. An op
that ends with an underscore writes its output in place. On CUDA each line is one multi-tensor (foreach) op over all
parameters; on CPU it is one op a parameter. Weight decay is zero, except in AdamW, whose default it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traincast.trace.dtypes import FLOAT32
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.lowering.program import SCALAR, Program


@dataclass(frozen=True, slots=True)
class Recipe:
    """State tensors a parameter, whether it counts steps, and the lines of the two variants."""

    states: str
    counts_steps: bool
    single: tuple[str, ...]
    foreach: tuple[str, ...]


def _recipe(states: str, counts_steps: bool, lines: str, foreach: str | None = None) -> Recipe:
    return Recipe(states, counts_steps, _lines(lines), _lines(foreach or lines))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split(";"))


_ADAM = "m lerp_ m g; v mul_ v; v addcmul_ v g; t sqrt v; u div t; u add_ u; p addcdiv_ p m u"
_ADAM_FOREACH = "m lerp_ m g; v mul_ v; v addcmul_ v g; t sqrt v; t div_ t; t add_ t; p addcdiv_ p m t"

RECIPES = {
    "none": Recipe("", False, (), ()),
    "sgd": _recipe("", False, "p add_ p g"),
    "momentum": _recipe("m", False, "m mul_ m; m add_ m g; p add_ p m"),
    "nesterov": _recipe(
        "m", False, "m mul_ m; m add_ m g; t add g m; p add_ p t", "m mul_ m; m add_ m g; g add_ g m; p add_ p g",
    ),
    "adagrad": _recipe(
        "s", True, "s addcmul_ s g; t sqrt s; t add_ t; p addcdiv_ p g t",
        "s addcmul_ s g; t sqrt s; t add_ t; u mul g; p addcdiv_ p u t",
    ),
    "adadelta": _recipe(
        "sd", True,
        "s mul_ s; s addcmul_ s g; t add s; t sqrt_ t; u add d; u sqrt_ u; u div_ u t; u mul_ u g; d mul_ d;"
        " d addcmul_ d u; p add_ p u",
    ),
    "rmsprop": _recipe("s", True, "s mul_ s; s addcmul_ s g; t sqrt s; t add_ t; p addcdiv_ p g t"),
    "adam": _recipe("mv", True, _ADAM, _ADAM_FOREACH),
    "adamw": _recipe("mv", True, f"p mul_ p; {_ADAM}", f"p mul_ p; {_ADAM_FOREACH}"),
    "lion": _recipe("m", False, "p mul_ p; t lerp m g; t sign_ t; p add_ p t; m lerp_ m g"),
}  # fmt: skip


def add_optimizer(program: Program, optimizer: str, weights: Sequence[tuple[int, int]], *, foreach: bool) -> None:
    """Appends the optimizer's ops for (parameter, gradient) pairs of lowered tensors."""
    recipe = RECIPES[optimizer]
    if not recipe.single or not weights:
        return
    groups = [list(weights)] if foreach else [[pair] for pair in weights]
    for group in groups:
        _add_group(program, recipe, group, foreach=foreach)


def _add_group(program: Program, recipe: Recipe, group: list[tuple[int, int]], *, foreach: bool) -> None:
    bound = {"p": [parameter for parameter, _ in group], "g": [gradient for _, gradient in group]}
    for state in recipe.states:
        bound[state] = [_state(program, parameter) for parameter, _ in group]
    if recipe.counts_steps:
        counters = [program.tensor(SCALAR, FLOAT32, program.storage(StorageKind.OPTIMIZER_STATE)) for _ in group]
        _emit(program, "add_", counters, [program.again(counter) for counter in counters], foreach=foreach)
    for line in recipe.foreach if foreach else recipe.single:
        target, op, *sources = line.split()
        inputs = [tensor for source in sources for tensor in bound[source]]
        if op.endswith("_"):
            outputs = [program.again(tensor) for tensor in bound[target]]
        else:
            outputs = [program.like(tensor) for tensor in bound[sources[0]]]
        _emit(program, op, inputs, outputs, foreach=foreach)
        bound[target] = outputs


def _state(program: Program, parameter: int) -> int:
    storage = program.storage(StorageKind.OPTIMIZER_STATE)
    return program.tensor(program.tensor_shape[parameter], program.tensor_dtype[parameter], storage)


def _emit(program: Program, op: str, inputs: list[int], outputs: list[int], *, foreach: bool) -> None:
    name = f"aten._foreach_{op}" if foreach else f"aten.{op}"
    program.emit(name, inputs, outputs, phase=Phase.OPTIMIZER, module=0)
