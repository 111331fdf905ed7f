"""Writes down every op that PyTorch dispatches while a step runs, with the tensors and storages it touches.

The recorder knows nothing of batches or targets: it makes one `Recording` of one run, on meta tensors (a capture)
or on real ones (the tests' cross-check).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from traincast.errors import CaptureError, DataDependentError
from traincast.trace.dtypes import CODE
from traincast.trace.graph import Phase, StorageKind

# A saved tensor is detached when it is stored and again when it is read; no device or host ever sees that.
_TRANSPARENT = {"aten.detach"}
_DTYPE_CODE = {getattr(torch, name): code for name, code in CODE.items() if hasattr(torch, name)}


@dataclass
class Recording:
    """One run of a step, as lists that grow while it runs. The capture turns it into the arrays of a Graph."""

    ops: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    op_phase: list[int] = field(default_factory=list)
    op_module: list[int] = field(default_factory=list)
    op_forward: list[int] = field(default_factory=list)
    op_recomputed: list[int] = field(default_factory=list)
    op_call: list[int] = field(default_factory=list)  # the call of a public function that the op is part of; -1: none
    call_functions: list[str] = field(default_factory=list)
    op_inputs: list[list[int]] = field(default_factory=list)
    op_outputs: list[list[int]] = field(default_factory=list)
    tensor_dtype: list[int] = field(default_factory=list)
    tensor_storage: list[int] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    strides: list[tuple[int, ...]] = field(default_factory=list)  # empty for contiguous tensors
    storage_owner: list[int] = field(default_factory=list)
    storage_bytes: list[int] = field(default_factory=list)
    storage_alloc: list[int] = field(default_factory=list)
    storage_free: list[int] = field(default_factory=list)
    storage_kind: list[int] = field(default_factory=list)
    gradient_of: list[tuple[int, int]] = field(default_factory=list)  # gradient tensor, forward tensor
    module_calls: dict[int, tuple[int, int]] = field(default_factory=dict)  # module -> first input and output tensor
    assumptions: list[str] = field(default_factory=list)

    @property
    def n_ops(self) -> int:
        return len(self.ops)


class Recorder(TorchDispatchMode):
    """Records ops; `phase` and `modules` say where in the step the run is."""

    def __init__(self, module_names: list[str]) -> None:
        super().__init__()
        self.recording = Recording()
        self.phase = Phase.FORWARD
        self.modules: list[int] = []  # stack of the modules being called, innermost last
        self.module_names = module_names
        self.forward_op_of_node: dict[int, int] = {}
        self.gradient_targets: dict[int, set[int]] = {}  # gradient tensor -> the forward tensors that it belongs to
        self.pending_request: dict[str, Any] | None = None
        self.call = -1
        self.is_recomputing = False  # whether the call being watched runs part of a forward again
        self.failed_in = ""  # the innermost module whose forward raised
        self.finished_node = -1  # the autograd node whose own work is done: what follows adds up gradients
        self._storages: dict[int, int] = {}
        self._storage_refs: list[weakref.ref[Any]] = []
        self._latest: dict[tuple[Any, ...], int] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and PyTorch's guard against it costs time on every op."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = f"{func.namespace}.{func._opname}"
        if name in _TRANSPARENT:
            output = func(*args, **kwargs)
            self.identify(output, self.tensor_id(args[0]))
            return output
        inputs = [self.tensor_id(tensor) for tensor in tensors_in((args, kwargs))]
        output = self.run(func, name, args, kwargs)
        self._write(func, name, inputs, output, (args, kwargs))
        return output

    def run(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the op; a capture overrides this to stay on meta tensors and to answer questions about values."""
        return func(*args, **kwargs)

    @contextlib.contextmanager
    def calling(self, function: str) -> Iterator[None]:
        """Ops dispatched inside belong to one call of this function: autocast looks at calls, not at their parts."""
        outer, self.call = self.call, len(self.recording.call_functions)
        self.recording.call_functions.append(function)
        try:
            yield
        finally:
            self.call = outer

    @property
    def where(self) -> str:
        return self.module_names[self.modules[-1]] if self.modules else ""

    def unanswerable(self, name: str) -> DataDependentError:
        place = f"module '{self.where}'" if self.where else "the model's forward or loss"
        return DataDependentError(
            f"{name} in {place} needs the values of a tensor, and a capture has shapes only: make that branch or size "
            "independent of the data, or capture a variant of the model without it."
        )

    def add_existing(self, tensor: Any, kind: StorageKind) -> int:
        """A tensor that is there before the step starts."""
        storage = self._storage_id(tensor, kind, alloc=-1)
        return self._new_tensor(tensor, storage)

    def finish(self) -> Recording:
        """Closes the books: what is alive now outlives the step."""
        recording = self.recording
        recording.gradient_of = sorted((g, f) for g, targets in self.gradient_targets.items() for f in targets)
        recording.storage_free = [recording.n_ops if free < 0 else free for free in recording.storage_free]
        self._storage_refs.clear()
        return recording

    def tensor_id(self, tensor: Any) -> int:
        """The latest assignment of this tensor. Autograd sometimes wraps one anew: then its place in memory tells."""
        recorder, known = getattr(tensor, "_traincast_id", (None, -1))
        if recorder == id(self):
            return int(known)
        place = self._latest.get(self._place(tensor))
        return self.add_existing(tensor, StorageKind.BUFFER) if place is None else place

    def identify(self, tensor: Any, number: int) -> None:
        """Remembers on the tensor itself which assignment it is, for this recorder only."""
        tensor._traincast_id = (id(self), number)

    def _write(self, func: Any, name: str, inputs: list[int], output: Any, call: tuple[Any, Any]) -> None:
        recording = self.recording
        op = recording.n_ops
        node = torch._C._current_autograd_node()
        in_backward = self.phase == Phase.BACKWARD
        recomputed = in_backward and (bool(self.modules) or self.is_recomputing or runs_forward_again())
        cause = -1 if node is None else self.forward_op_of_node.get(node._sequence_nr(), -1)
        forward_op = cause if in_backward and not recomputed else -1
        if recomputed or not in_backward:
            self.forward_op_of_node.setdefault(torch.autograd._get_sequence_nr() - 1, op)
        recording.ops.append((name, self.pending_request or _attributes(func, call)))
        recording.op_phase.append(int(self.phase))
        recording.op_module.append(self._module_of(cause))
        is_sum = node is not None and node._sequence_nr() == self.finished_node
        recording.op_forward.append(-1 if is_sum else forward_op)
        recording.op_recomputed.append(int(recomputed))
        recording.op_call.append(self.call)
        recording.op_inputs.append(inputs)
        outputs = []
        for tensor in tensors_in(output):
            storage = self._storage_id(tensor, StorageKind.TEMPORARY, alloc=op)
            outputs.append(self._new_tensor(tensor, storage))
        recording.op_outputs.append(outputs)
        if is_sum:
            self._add_sum(inputs, outputs)

    def add_gradient(self, gradient: int, forward: int) -> None:
        """Notes that one tensor is the gradient of another."""
        self.gradient_targets.setdefault(gradient, set()).add(forward)

    def _add_sum(self, inputs: list[int], outputs: list[int]) -> None:
        """A sum of gradients of one tensor is a gradient of it."""
        common = set.intersection(*(self.gradient_targets.get(tensor, set()) for tensor in inputs))
        for forward in common:
            self.add_gradient(outputs[0], forward)

    def _module_of(self, cause: int) -> int:
        """The module being called; else that of the forward op whose gradient is asked for."""
        if self.modules:
            return self.modules[-1]
        return self.recording.op_module[cause] if cause >= 0 else 0

    def _new_tensor(self, tensor: Any, storage: int) -> int:
        recording = self.recording
        number = len(recording.tensor_dtype)
        if tensor.dtype not in _DTYPE_CODE:
            raise CaptureError(f"The model computes with numbers of type {tensor.dtype}, for which nothing is known.")
        recording.tensor_dtype.append(_DTYPE_CODE[tensor.dtype])
        recording.tensor_storage.append(storage)
        shape = tuple(tensor.shape)
        recording.shapes.append(shape)
        recording.strides.append(() if tensor.is_contiguous() else tuple(tensor.stride()))
        if recording.storage_owner[storage] < 0:
            recording.storage_owner[storage] = number
        self.identify(tensor, number)
        if self.pending_request is None:
            self._latest[self._place(tensor)] = number
        return number

    def _place(self, tensor: Any) -> tuple[Any, ...]:
        storage = self._storages.get(tensor.untyped_storage()._cdata, -1)
        return (storage, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)

    def _storage_id(self, tensor: Any, kind: StorageKind, alloc: int) -> int:
        storage = tensor.untyped_storage()
        key = storage._cdata
        known = self._storages.get(key)
        if known is not None:
            return known
        recording = self.recording
        number = len(recording.storage_owner)
        self._storages[key] = number
        recording.storage_owner.append(-1)
        recording.storage_bytes.append(storage.nbytes())
        recording.storage_alloc.append(alloc)
        recording.storage_free.append(-1)
        recording.storage_kind.append(int(kind))
        self._storage_refs.append(weakref.ref(storage, self._on_free(key, number)))
        return number

    def _on_free(self, key: int, number: int) -> Callable[[Any], None]:
        def freed(_: Any) -> None:
            self.recording.storage_free[number] = self.recording.n_ops
            self._storages.pop(key, None)

        return freed


def runs_forward_again() -> bool:
    """Whether a checkpointed forward runs within a backward pass: only that switches gradients on in there."""
    return torch.is_grad_enabled() and torch._C._current_autograd_node() is not None


def tensors_in(value: Any) -> Iterator[Any]:
    """All tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


def _attributes(func: Any, call: tuple[Any, Any]) -> dict[str, Any]:
    """The arguments that are not tensors, by name. Sizes of views are left out: their outputs have shapes."""
    args, kwargs = call
    if func.is_view:
        return {}
    named = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | kwargs
    return {name: plain for name, value in named.items() if (plain := _plain(value)) is not None}


def _plain(value: Any) -> Any:
    """What JSON can hold; None for tensors and for what says nothing about shapes or cost."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, (bool, int, float)) for item in value):
        return list(value)
    return None
