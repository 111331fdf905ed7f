"""Read an ONNX file: its graph becomes a torch module, so that autograd gives the backward pass.

Weights are not read: their shapes are enough. Constants that decide shapes are. Nothing in the file is
executed. Batch normalisation is trained with the statistics of the batch whatever form it was exported in. A
batch norm that the exporter folded into the convolution before it is gone; export in training mode to keep
it. Equal weights that the exporter merged, as it does with those of a net that was never trained, count once.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import FileFormatError, InputError
from traincast.frontend.onnx_model.graph import load_graph
from traincast.frontend.step import TrainingStep

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.frontend.onnx_model.graph import Graph, GraphInput


_MOST_VALUES = 10**10  # of an input: 40 GB


def read_onnx(path: str | Path, *, dims: dict[str, int] | None = None, with_weights: bool = False) -> TrainingStep:
    """The training step of an ONNX model. The first dimension of every input is the batch.

    `dims` gives the sizes of other dimensions that the file leaves open, by their name in the file, or as
    "input:axis" where they have none. `with_weights` loads the weights, to compare outputs with the
    original's. The loss is the mean of the first output, unless the graph computes one.
    """
    path = Path(path)
    graph = load_graph(path)
    from traincast.frontend.onnx_model.builder import build_module
    from traincast.frontend.onnx_model.weights import TrainedWeights

    shapes = _input_shapes(graph, dims or {})
    batch = _exported_batch(graph)
    _check_inputs(graph, shapes, batch or 1)
    module = build_module(graph, TrainedWeights(graph, with_values=with_weights), exported_batch=batch)
    example = _example_maker(graph, shapes)
    if batch is not None:
        _note_exported_shapes(module, example(batch))
    return TrainingStep(name=path.stem, module=module, example=example)


def _exported_batch(graph: Graph) -> int | None:
    """The batch size that the file was written for, if it was written for one only."""
    first = next((given.dims[0] for given in graph.inputs if given.dims), None)
    return first if isinstance(first, int) else None


def _input_shapes(graph: Graph, dims: dict[str, int]) -> list[tuple[int | None, ...]]:
    """The shape of each input, with None for the batch."""
    if not graph.inputs:
        raise InputError(f"{graph.path} has no inputs, so there is nothing to train on.")
    first = next((given.dims[0] for given in graph.inputs if given.dims), None)
    known = {name for given in graph.inputs for axis in range(len(given.dims)) for name in _names(given, axis)}
    if unknown := sorted(set(dims) - known):
        raise InputError(f"{graph.path} has no dimension '{unknown[0]}'; it has {', '.join(sorted(known))}.")

    def size(given: GraphInput, axis: int) -> int | None:
        dim = given.dims[axis]
        for name in _names(given, axis):
            if name in dims:
                return dims[name]
        if dim == first and (axis == 0 or isinstance(dim, str)):
            return None
        if isinstance(dim, int):
            return dim
        if axis == 0:
            return None
        raise InputError(
            f"{graph.path}: dimension {axis} of the input '{given.name}' is open; set it with "
            f"dims={{'{_names(given, axis)[-1]}': 128}}, or whatever size you train with."
        )

    return [tuple(size(given, axis) for axis in range(len(given.dims))) for given in graph.inputs]


def _check_inputs(graph: Graph, shapes: list[tuple[int | None, ...]], batch_size: int) -> None:
    """An example is made of them, so they should fit a memory."""
    for given, shape in zip(graph.inputs, shapes, strict=True):
        if math.prod(batch_size if size is None else size for size in shape) > _MOST_VALUES:
            raise FileFormatError(
                f"{graph.path}: the input '{given.name}' of shape {given.dims} has more than {_MOST_VALUES:,} values."
            )


def _names(given: GraphInput, axis: int) -> list[str]:
    """How `dims` may call this dimension."""
    dim = given.dims[axis]
    return [f"{given.name}:{axis}"] + ([dim] if isinstance(dim, str) else [])


def _example_maker(graph: Graph, shapes: list[tuple[int | None, ...]]) -> Callable[[int], Any]:
    from traincast.frontend.onnx_model.values import torch_dtype

    dtypes = [torch_dtype(given.onnx_type) for given in graph.inputs]

    def example(batch_size: int) -> Any:
        import torch

        sizes = [[batch_size if size is None else size for size in shape] for shape in shapes]
        inputs = tuple(torch.zeros(size, dtype=dtype) for size, dtype in zip(sizes, dtypes, strict=True))
        return inputs[0] if len(inputs) == 1 else inputs

    return example


def _note_exported_shapes(module: Any, inputs: Any) -> None:
    """Run once, without values, at the batch that the file was written for: its reshapes fit that one."""
    import torch

    def to_meta(tensor: Any) -> Any:
        return torch.empty_like(tensor, device="meta")

    inputs = tuple(map(to_meta, inputs if isinstance(inputs, tuple) else (inputs,)))
    state = {name: to_meta(tensor) for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    with torch.no_grad():
        torch.func.functional_call(module, state, inputs)
