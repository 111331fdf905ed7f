"""Runs one step, forward, loss and backward, under a recorder."""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from traincast.errors import CaptureError, DataDependentError, InputError, TraincastError
from traincast.frontend.capturing.functions import FunctionWatcher
from traincast.frontend.capturing.gradients import mark_gradients, watch_gradients
from traincast.frontend.capturing.meta_module import call
from traincast.frontend.capturing.meta_recorder import MetaRecorder
from traincast.frontend.capturing.recorder import Recorder, tensors_in
from traincast.trace.graph import Phase, StorageKind

Loss = Callable[[Any, Any], Any]


def record_step(module: Any, inputs: Any, recorder: Recorder, *, loss: Loss | None, train: bool) -> list[torch.dtype]:
    """Runs a neutral step; the recorder holds what happened, the dtype requests are returned in order."""
    watcher = FunctionWatcher(recorder)
    with watcher:
        run_step(module, inputs, recorder, loss=loss, train=train)
    return watcher.requests


def run_step(  # noqa: PLR0913  (what a step is made of)
    module: Any,
    inputs: Any,
    recorder: Recorder,
    *,
    loss: Loss | None,
    train: bool,
    autocast: contextlib.AbstractContextManager[Any] | None = None,
    optimizer: Any = None,
) -> None:
    """Forward, loss and backward, on whatever tensors the module has; with an optimizer, its step too."""
    _name_existing(module, inputs, optimizer, recorder)
    with _gc_paused(), torch.enable_grad() if train else torch.no_grad(), recorder, _tracked(module, recorder):
        with autocast or contextlib.nullcontext():
            with _explained("forward", module, recorder):
                output = call(module, inputs)
            recorder.phase = Phase.LOSS
            with _explained("loss", module, recorder):
                value = scalar_loss(output, inputs, loss) if train else None
        if value is not None:
            watch_gradients(value.grad_fn, recorder)
            recorder.phase = Phase.BACKWARD
            with _explained("backward", module, recorder):
                value.backward()
        mark_gradients(module, recorder)
        if optimizer is not None:
            recorder.phase = Phase.OPTIMIZER
            optimizer.step()
        recorder.finish()


def probe_requests(
    module: Any, inputs: Any, *, loss: Loss | None, train: bool, checkpointed: bool
) -> list[torch.dtype]:
    """Only the dtype requests of a step: run on a model of another dtype, it shows which ones follow it."""
    watcher = FunctionWatcher(None)
    with warnings.catch_warnings(), torch.set_grad_enabled(checkpointed), MetaRecorder([""]), watcher:
        warnings.simplefilter("ignore")  # the model was warned of in the capture itself
        output = call(module, inputs)
        value = scalar_loss(output, inputs, loss) if train else None
        if checkpointed and value is not None:  # the blocks that run again in backward make their requests again
            value.backward()
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


def _name_existing(module: Any, inputs: Any, optimizer: Any, recorder: Recorder) -> None:
    for parameter in module.parameters():
        recorder.add_existing(parameter, StorageKind.WEIGHT)
    for buffer in module.buffers():
        recorder.add_existing(buffer, StorageKind.BUFFER)
    for tensor in tensors_in(inputs if isinstance(inputs, (tuple, list, dict)) else (inputs,)):
        recorder.add_existing(tensor, StorageKind.INPUT)
    for state in optimizer.state.values() if optimizer is not None else ():
        for tensor in tensors_in(state):
            recorder.add_existing(tensor, StorageKind.OPTIMIZER_STATE)


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
    except (RuntimeError, ValueError, ArithmeticError, LookupError, AttributeError, AssertionError) as error:
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
