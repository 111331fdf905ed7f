"""Capture: the user's own module runs one neutral step on meta tensors, at several batch sizes, and becomes a Trace."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import traincast
from traincast.errors import InputError, TraincastError
from traincast.frontend.capture_progress import report
from traincast.frontend.capturing.meta_module import batched_example, map_tensors, meta_copy, on_meta
from traincast.frontend.capturing.meta_recorder import MetaRecorder
from traincast.frontend.capturing.recorder import Recording
from traincast.frontend.capturing.run_step import Loss, probe_requests, record_step
from traincast.frontend.capturing.symbolic import join
from traincast.frontend.step import TrainingStep
from traincast.trace.check import check_step, check_trace
from traincast.trace.flop import uncosted_ops
from traincast.trace.settings import MODES, Settings, check_choice
from traincast.trace.trace import Module, Parameter, Trace

# Never 1: PyTorch specialises on it. The first two give the line, the third checks it.
BATCH_SIZES = (2, 3, 5)


def capture_step(step: TrainingStep, *, batch_sizes: tuple[int, ...] = BATCH_SIZES) -> Trace:
    """The trace of what a frontend read. Two batch sizes are enough where the third was checked on the same model."""
    trace = capture(step.module, step.example, loss=step.loss, name=step.name, batch_sizes=batch_sizes)
    return replace(trace, assumptions=(*step.assumptions, *trace.assumptions))


def capture(  # noqa: PLR0913  (the options of traincast.capture, and a name)
    module: Any,
    example: Any,
    *,
    loss: Loss | None = None,
    optimizer: str = "sgd",
    precision: str = "fp32",
    mode: str = "train",
    name: str | None = None,
    batch_sizes: tuple[int, ...] = BATCH_SIZES,
) -> Trace:
    """Records what one step of `module` asks of a device. See `traincast.capture`."""
    defaults = Settings(_precision_of(module) if precision == "fp32" else precision, optimizer)
    check_choice("mode", mode, MODES)
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"capture needs a torch.nn.Module, but was given a {type(module).__name__}.")
    train = mode == "train"
    make_inputs = batched_example(example)
    recordings: dict[int, Recording] = {}
    requests: list[torch.dtype] = []
    n_steps = len(batch_sizes) + 1  # one more, which shows what follows the dtype
    for n_done, batch in enumerate(batch_sizes):
        report(n_done, n_steps)
        copied = meta_copy(module, train=train)  # anew each time: a model may keep what it computed once
        recorder = MetaRecorder([path for path, _ in copied.named_modules()])
        with torch.device("meta"):
            requests = record_step(copied, _inputs(make_inputs, batch), recorder, loss=loss, train=train)
        recordings[batch] = recorder.recording
    paths = [path for path, _ in copied.named_modules()]
    recording = recordings[BATCH_SIZES[0]]
    checkpointed = any(recording.op_recomputed)
    report(len(batch_sizes), n_steps)
    follow = _requests_that_follow(copied, make_inputs, requests, loss=loss, train=train, checkpointed=checkpointed)
    graph = join(recordings, paths, follow)
    report(n_steps, n_steps)
    trace = Trace(
        name=name or type(module).__name__,
        mode=mode,
        graph=graph,
        modules=_modules(copied, recording),
        parameters=_parameters(copied, recording),
        gradient_of=np.array(recording.gradient_of, dtype=np.int64).reshape(-1, 2),
        op_call=np.array(recording.op_call, dtype=np.int64),
        call_functions=tuple(recording.call_functions),
        defaults=defaults,
        assumptions=tuple(recording.assumptions),
        uncosted_ops=uncosted_ops(graph),
        provenance={
            "captured_with": f"traincast {traincast.__version__}, torch {torch.__version__}",
            "python": platform.python_version(),
        },
    )
    if not graph.n_ops:
        raise InputError(f"{trace.name} runs no operation on its inputs, so there is nothing to forecast.")
    check_trace(trace, where=f"the trace of {trace.name}")
    check_step(graph, where=f"the trace of {trace.name}")
    return trace


def _precision_of(module: Any) -> str:
    """A model that is kept in bf16 is trained in bf16 unless something else is asked for."""
    dtypes = [parameter.dtype for parameter in module.parameters()] if isinstance(module, torch.nn.Module) else []
    return "bf16" if dtypes and dtypes.count(torch.bfloat16) * 2 > len(dtypes) else "fp32"


def _inputs(make_inputs: Callable[[int], Any], batch: int) -> Any:
    try:
        return on_meta(make_inputs(batch))
    except (RuntimeError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise InputError(
            f"example({batch}) failed: {error}. It must return the model's inputs for that batch size."
        ) from error


def _requests_that_follow(
    module: Any,
    make_inputs: Callable[[int], Any],
    requests: list[torch.dtype],
    *,
    loss: Loss | None,
    train: bool,
    checkpointed: bool,
) -> list[bool]:
    """Which dtype requests follow the model's dtype (`.to(x.dtype)`) and which are literal (`.float()`).

    In fp32 both look alike, so the step runs once more in bf16: forward and loss, and backward if blocks run again
    there. A model that cannot run in bf16 keeps its requests literal.
    """
    if not requests:
        return []
    probe = module.to(torch.bfloat16)
    try:
        with torch.device("meta"):
            inputs = _lower_floats(_inputs(make_inputs, BATCH_SIZES[0]))
            seen = probe_requests(probe, inputs, loss=loss, train=train, checkpointed=checkpointed)
    except (RuntimeError, TypeError, ValueError, TraincastError):
        return [False] * len(requests)
    if len(seen) != len(requests):
        return [False] * len(requests)
    return [before != after for before, after in zip(requests, seen, strict=True)]


def _lower_floats(inputs: Any) -> Any:
    return map_tensors(inputs, lambda tensor: tensor.bfloat16() if tensor.is_floating_point() else tensor)


def _modules(module: Any, recording: Recording) -> tuple[Module, ...]:
    rows, tensors = [], _parameter_tensors(module)
    for number, (path, child) in enumerate(module.named_modules()):
        first_input, first_output = recording.module_calls.get(number, (-1, -1))
        own = tuple(tensors[id(parameter)] for parameter in child.parameters(recurse=False))
        rows.append(Module(path, type(child).__name__, first_input, first_output, own))
    return tuple(rows)


def _parameters(module: Any, recording: Recording) -> tuple[Parameter, ...]:
    gradients = {forward: gradient for gradient, forward in recording.gradient_of}
    return tuple(
        Parameter(name, tensor, gradients.get(tensor, -1), parameter.requires_grad)
        for tensor, (name, parameter) in enumerate(module.named_parameters())
    )


def _parameter_tensors(module: Any) -> dict[int, int]:
    """The recorder numbers the parameters first, in the module's order."""
    return {id(parameter): tensor for tensor, parameter in enumerate(module.parameters())}
