"""Runs one neutral step, forward, loss and backward, under the recorder."""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from traincast.errors import CaptureError, DataDependentError, InputError, TraincastError
from traincast.frontend.functions import FunctionWatcher
from traincast.frontend.meta_cache import MetaCache
from traincast.frontend.meta_module import call
from traincast.frontend.recorder import Recorder, tensors_in
from traincast.trace.graph import Phase, StorageKind

Loss = Callable[[Any, Any], Any]

_VALUE_OPS = {"aten._local_scalar_dense", "aten.is_nonzero", "aten.equal"}
_VALUE_SHAPED = {
    "aten.nonzero",
    "aten.masked_select",
    "aten._unique2",
    "aten.unique_dim",
    "aten.unique_consecutive",
    "aten.repeat_interleave",
    "aten.bincount",
    "aten.histc",
}


class MetaRecorder(Recorder):
    """Keeps everything on meta tensors and answers yes-or-no questions about values with a recorded assumption."""

    def __init__(self, module_names: list[str]) -> None:
        super().__init__(module_names)
        self._cache = MetaCache()
        self._twins: list[Any] = []

    def run(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in _VALUE_OPS:
            return self._answer(name, args)
        if any(tensor.device.type != "meta" for tensor in tensors_in((args, kwargs))):
            args, kwargs = self._to_meta(args), self._to_meta(kwargs)
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": torch.device("meta")}
        if name in _VALUE_SHAPED and not (name == "aten.repeat_interleave" and "output_size" in kwargs):
            raise self.unanswerable(name)
        return self._cache.run(func, args, kwargs)

    def _answer(self, name: str, args: tuple[Any, ...]) -> bool:
        if name != "aten.equal" and args[0].dtype != torch.bool:
            raise self.unanswerable(".item()")
        place = self.where or "the model"
        assumption = f"a yes-or-no test on tensor values in '{place}' was taken as no"
        if assumption not in self.recording.assumptions:
            self.recording.assumptions.append(assumption)
        return False

    def _to_meta(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.device.type == "meta":
                return value
            twin = torch.empty_like(value, device="meta")
            self.identify(twin, self.tensor_id(value))
            self._twins.append(value)  # a freed tensor's address must not be taken for this one
            return twin
        if isinstance(value, (tuple, list)):
            return type(value)(self._to_meta(item) for item in value)
        if isinstance(value, dict):
            return {key: self._to_meta(item) for key, item in value.items()}
        return value


def record_step(module: Any, inputs: Any, recorder: Recorder, *, loss: Loss | None, train: bool) -> list[torch.dtype]:
    """Runs the step; the recorder holds what happened, the dtype requests are returned in order."""
    _name_existing(module, inputs, recorder)
    watcher = FunctionWatcher(recorder)
    with (
        _gc_paused(),
        torch.enable_grad() if train else torch.no_grad(),
        recorder,
        watcher,
        _tracked(module, recorder),
    ):
        with _explained("forward", module, recorder):
            output = call(module, inputs)
        if train:
            recorder.phase = Phase.LOSS
            with _explained("loss", module, recorder):
                value = scalar_loss(output, inputs, loss)
            _watch_gradients(value.grad_fn, recorder)
            recorder.phase = Phase.BACKWARD
            with _explained("backward", module, recorder):
                value.backward()
        _mark_gradients(module, recorder)
        recorder.finish()
    return watcher.requests


def probe_requests(module: Any, inputs: Any, *, loss: Loss | None, train: bool) -> list[torch.dtype]:
    """Only the dtype requests of a forward pass: run on a model of another dtype, it shows which ones follow it."""
    watcher = FunctionWatcher(None)
    with warnings.catch_warnings(), torch.no_grad(), MetaRecorder([""]), watcher:
        warnings.simplefilter("ignore")  # the model was warned of in the capture itself
        output = call(module, inputs)
        if train:
            scalar_loss(output, inputs, loss)
    return watcher.requests


def scalar_loss(output: Any, inputs: Any, loss: Loss | None) -> Any:
    """The user's loss; else the model's own; else the mean of its logits or of the first floating tensor."""
    if loss is not None:
        value = loss(output, inputs)
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise InputError(f"loss must return a scalar tensor, but returned {_describe(value)}.")
        return value
    own = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if own is not None:
        return own if own.dim() == 0 else own.mean()
    logits = output.get("logits") if isinstance(output, dict) else getattr(output, "logits", None)
    floating = (
        [logits] if logits is not None else [t for t in tensors_in(_plain_output(output)) if t.is_floating_point()]
    )
    if not floating:
        raise InputError(f"the model returned {_describe(output)} without a floating tensor: give loss=.")
    return floating[0].float().mean()


def _plain_output(output: Any) -> Any:
    return output.to_tuple() if hasattr(output, "to_tuple") else output


def _describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def _name_existing(module: Any, inputs: Any, recorder: Recorder) -> None:
    for parameter in module.parameters():
        recorder.add_existing(parameter, StorageKind.WEIGHT)
    for buffer in module.buffers():
        recorder.add_existing(buffer, StorageKind.BUFFER)
    for tensor in tensors_in(inputs if isinstance(inputs, (tuple, list, dict)) else (inputs,)):
        recorder.add_existing(tensor, StorageKind.INPUT)


@contextlib.contextmanager
def _explained(what: str, module: Any, recorder: Recorder) -> Iterator[None]:
    """Turns what goes wrong inside the user's model into one sentence that says where."""
    try:
        yield
    except TraincastError:
        raise
    except TypeError as error:
        if "meta" in str(error):
            raise recorder.unanswerable(_first_line(error)) from error
        raise InputError(
            f"The {what} of {type(module).__name__} cannot be run with the example's inputs ({_first_line(error)}): "
            "example must give the arguments of forward, as a tensor, a tuple, or a dict of keyword arguments."
        ) from error
    except (RuntimeError, ValueError, LookupError, AttributeError, AssertionError, NotImplementedError) as error:
        place = f"module '{recorder.failed_in}'" if recorder.failed_in else type(module).__name__
        reason = _first_line(error)
        kind = DataDependentError if "meta tensor" in reason or "data-dependent" in reason.lower() else CaptureError
        raise kind(
            f"The {what} of {type(module).__name__} failed in {place}: {reason}. Check that the example's shapes and "
            "dtypes are what the model expects; values of tensors are not there in a capture."
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().split("\n")[0] or type(error).__name__).rstrip(".")


@contextlib.contextmanager
def _gc_paused() -> Iterator[None]:
    """Cycles are collected at moments that depend on everything else in the process; a recording must not."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def _tracked(module: Any, recorder: Recorder) -> Iterator[None]:
    """Keeps the recorder's stack of modules, and the tensors that first went into and came out of each."""
    numbers = {id(child): number for number, (_, child) in enumerate(module.named_modules())}
    calls = recorder.recording.module_calls

    def entered(child: Any, args: Any, kwargs: Any) -> None:
        if id(child) in numbers:
            recorder.failed_in = ""
            recorder.modules.append(numbers[id(child)])
            first = next(tensors_in((args, kwargs)), None)
            calls.setdefault(numbers[id(child)], (-1 if first is None else recorder.tensor_id(first), -1))

    def left(child: Any, _: Any, output: Any) -> None:
        if id(child) in numbers and recorder.modules:
            number = recorder.modules.pop()
            if output is None and not recorder.failed_in:  # what a hook sees when forward raised, innermost first
                recorder.failed_in = recorder.module_names[number]
            first = next(tensors_in(_plain_output(output)), None)
            if calls[number][1] < 0 and first is not None:
                calls[number] = (calls[number][0], recorder.tensor_id(first))

    hooks = []
    for child in module.modules():
        hooks.append(child.register_forward_pre_hook(entered, with_kwargs=True, prepend=True))
        hooks.append(child.register_forward_hook(left, always_call=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _watch_gradients(root: Any, recorder: Recorder) -> None:
    """Notes, as backward runs, which forward tensor each gradient belongs to."""
    if root is None:
        raise InputError(
            "the loss does not depend on any trainable parameter: unfreeze at least one, or use mode='inference'."
        )
    seen, stack = {root}, [root]
    while stack:
        node = stack.pop()
        targets = [_gradient_target(follower, output, recorder) for follower, output in node.next_functions]
        node.register_hook(_gradient_hook(targets, recorder, node._sequence_nr()))
        own = [_gradient_target(node, output, recorder) for output in range(len(node._input_metadata))]
        if any(target is not None for target in own) and not hasattr(node, "variable"):
            node.register_prehook(_summed_gradient_hook(own, recorder))
        for follower, _ in node.next_functions:
            if follower is not None and follower not in seen:
                seen.add(follower)
                stack.append(follower)


def _gradient_target(node: Any, output: int, recorder: Recorder) -> int | None:
    if node is None:
        return None
    if hasattr(node, "variable"):
        return recorder.tensor_id(node.variable)
    op = recorder.forward_op_of_node.get(node._sequence_nr())
    if op is None or output >= len(recorder.recording.op_outputs[op]):
        return None
    return recorder.recording.op_outputs[op][output]


def _gradient_hook(targets: list[int | None], recorder: Recorder, node: int) -> Callable[[Any, Any], None]:
    def hook(gradients: Any, _: Any) -> None:
        recorder.finished_node = node
        recording = recorder.recording
        for gradient, target in zip(gradients, targets, strict=False):
            if gradient is None or target is None or tuple(gradient.shape) != recording.shapes[target]:
                continue
            recording.gradient_of.append((recorder.tensor_id(gradient), target))

    return hook


def _summed_gradient_hook(targets: list[int | None], recorder: Recorder) -> Callable[[Any], None]:
    """Where several gradients of one tensor were added up, only the node that takes the sum sees it."""
    hook = _gradient_hook(targets, recorder, -1)
    return lambda gradients: hook(gradients, None)


def _mark_gradients(module: Any, recorder: Recorder) -> None:
    recording = recorder.recording
    for parameter in module.parameters():
        if parameter.grad is not None:
            tensor = recorder.tensor_id(parameter.grad)
            recording.storage_kind[recording.tensor_storage[tensor]] = int(StorageKind.GRADIENT)
            recording.gradient_of.append((tensor, recorder.tensor_id(parameter)))
