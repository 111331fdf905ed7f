"""An ONNX graph as a torch module: layers for nodes that own weights, an interpreter for the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from traincast.errors import CaptureError, TraincastError
from traincast.frontend.onnx_model.ops_shape import reshape_target

if TYPE_CHECKING:
    from traincast.frontend.onnx_model.graph import Graph, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do: call `run` with these values, keep its outputs, drop what nobody needs any more."""

    node: Node
    run: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    drops: tuple[str, ...]
    takes_node: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSlot:
    """Where the tensor of a value hangs on the module, and whether its axes are swapped there."""

    owner: str
    attribute: str
    swapped: bool = False


class OnnxModule(nn.Module):
    """Runs the steps in order, and lets go of values that are no longer needed, as a model's code does."""

    def __init__(self, graph: Graph, *, exported_batch: int | None) -> None:
        super().__init__()
        self._inputs = tuple(given.name for given in graph.inputs)
        self._outputs = graph.outputs
        self._output_dims = [graph.output_dims[name] for name in graph.outputs]
        self._exported_batch = exported_batch
        self._exported_shapes: dict[str, tuple[int, ...]] = {}
        self._steps: tuple[Step, ...] = ()
        self._constants: dict[str, Any] = {}
        self._places: dict[str, TensorSlot] = {}

    def forward(self, *inputs: Any) -> Any:
        values: dict[str, Any] = dict(zip(self._inputs, inputs, strict=True))
        values.update(self._constants)
        values.update({name: self._tensor_at(place) for name, place in self._places.items()})
        for step in self._steps:
            given = [values[name] if name else None for name in step.inputs]
            outputs = self._run(step, given)
            if not isinstance(outputs, (tuple, list)):
                outputs = (outputs,)
            values.update(zip(step.outputs, outputs, strict=False))
            for name in step.drops:
                values.pop(name, None)
            del given, outputs
        results = tuple(values[name] for name in self._outputs)
        self._check_batch(inputs, results)
        return results[0] if len(results) == 1 else results

    def _tensor_at(self, place: TensorSlot) -> Any:
        tensor = getattr(self.get_submodule(place.owner), place.attribute)
        return tensor.t() if place.swapped else tensor

    def _run(self, step: Step, given: list[Any]) -> Any:
        try:
            fixed = step.node.op == "Reshape" and step.inputs[-1] in self._constants
            if fixed and self._exported_batch is not None:
                return self._reshape(step.node, *given)
            return step.run(step.node, *given) if step.takes_node else step.run(*given)
        except CaptureError as error:
            raise type(error)(f"{error}{self._advice()}") from error
        except TraincastError:
            raise
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError, NotImplementedError) as error:
            shapes = ", ".join(str(tuple(value.shape)) for value in given if isinstance(value, torch.Tensor))
            reason = str(error).strip().split("\n")[0].rstrip(".")
            raise CaptureError(
                f"The ONNX node '{step.node.name}' ({step.node.op}) cannot run on tensors of "
                f"shape {shapes}: {reason}.{self._advice()}"
            ) from error

    def _advice(self) -> str:
        if self._exported_batch is None:
            return ""
        return (
            f" The file was exported for a batch of {self._exported_batch} only; export it with "
            "dynamic_shapes (or dynamic_axes) for the first dimension of the inputs."
        )

    def _reshape(self, node: Node, x: Any, shape: Any = None) -> Any:
        """A reshape whose sizes were written down for one batch size: the batch is found and put in again."""
        known = self._exported_shapes.setdefault(node.name, tuple(x.shape))
        target = reshape_target(node, known, shape)
        if known == tuple(x.shape):
            return x.reshape(target)
        return x.reshape(unbaked(target, known, tuple(x.shape), self._exported_batch or 1))

    def _check_batch(self, inputs: tuple[Any, ...], results: tuple[Any, ...]) -> None:
        if self._exported_batch is None or not inputs[0].dim():
            return
        batch = inputs[0].shape[0]
        for name, dims, result in zip(self._outputs, self._output_dims, results, strict=True):
            if dims and dims[0] == self._exported_batch and result.shape[0] != batch:
                raise CaptureError(f"The ONNX output '{name}' does not follow the batch of the inputs.{self._advice()}")


def unbaked(target: list[int], known: tuple[int, ...], now: tuple[int, ...], batch: int) -> list[int]:
    """The target of a reshape for another batch than the one that it was written for.

    `known` is the shape that the file was exported with, `now` the one at hand: they differ in the axis that
    holds the batch. The axis of the target that holds it (one of the size of the batch, if there is one) is
    scaled along. In (steps, batch, width) the batch starts after `steps` elements, and so it does in a target
    of (steps, batch x heads, width / heads). An exported batch of 1 leaves open which neighbour it was merged
    with: the next, unless that is the last axis, which has the features.
    """
    changed = [axis for axis, (before, after) in enumerate(zip(known, now, strict=True)) if before != after]
    if -1 in target and (rest := -math.prod(target)):
        target = [math.prod(known) // rest if size == -1 else size for size in target]
    if len(changed) != 1 or math.prod(target) != math.prod(known):
        raise ValueError("its sizes fit one batch size only")
    start, before, after = math.prod(known[: changed[0]]), known[changed[0]], now[changed[0]]
    unit = before // math.gcd(before, after)
    firsts = [math.prod(target[:axis]) for axis in range(len(target))]
    within = [axis for axis, first in enumerate(firsts) if start <= first <= start * before]
    own = sorted((axis for axis in within if target[axis] == batch), key=lambda axis: firsts[axis] != start)
    merged = [axis for axis, first in enumerate(firsts) if first == start and target[axis] % unit == 0]
    inner = [
        axis
        for axis, first in enumerate(firsts)
        if first < start and start % first == 0 and target[axis] % (start // first * unit) == 0
    ]
    middle = [axis for axis in merged if axis < len(target) - 1]
    if not (found := [*own, *middle, *inner, *merged]):
        raise ValueError("its sizes fit one batch size only")
    return [size * after // before if axis == found[0] else size for axis, size in enumerate(target)]
