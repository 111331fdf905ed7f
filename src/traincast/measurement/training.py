"""One real training step, with an instant marked after every phase."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch

from traincast.errors import InputError
from traincast.measurement.device_names import check_device_name
from traincast.measurement.heap import keep_memory
from traincast.measurement.runnable import Runnable
from traincast.measurement.stopwatch import Stopwatch
from traincast.trace.settings import OPTIMIZERS, PRECISIONS, check_choice

PHASES = ("forward", "loss", "backward", "optimizer")
_AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}
_MAKERS: dict[str, Callable[..., Any]] = {
    "sgd": torch.optim.SGD,
    "momentum": partial(torch.optim.SGD, momentum=0.9),
    "nesterov": partial(torch.optim.SGD, momentum=0.9, nesterov=True),
    "adagrad": torch.optim.Adagrad,
    "adadelta": torch.optim.Adadelta,
    "rmsprop": torch.optim.RMSprop,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}
# Speed does not depend on it; so small that a model fed with one batch again and again does not blow up.
TIMING_LEARNING_RATE = 1e-6


def make_optimizer(
    name: str,
    weights: Iterable[Any],
    *,
    learning_rate: float = TIMING_LEARNING_RATE,
    weight_decay: float | None = None,
) -> Any | None:
    """The optimizer of that name; None for 'none', and for a model with nothing to train.

    Without `weight_decay` it has that of torch's defaults: none, but of AdamW.
    """
    check_choice("optimizer", name, OPTIMIZERS)
    trained = [weight for weight in weights if weight.requires_grad]
    options = {} if weight_decay is None else {"weight_decay": weight_decay}
    return None if name == "none" or not trained else _MAKERS[name](trained, lr=learning_rate, **options)


class Training:
    """A model on its device, ready to make steps: `precision` and `optimizer` by the names of a forecast.

    On a CPU the process keeps what steps free, from now on, unless `keeps_memory` is False (see `heap.py`).
    """

    def __init__(
        self,
        runnable: Runnable,
        *,
        optimizer: str = "sgd",
        precision: str = "fp32",
        device: str = "cpu",
        compiled: bool = False,
        keeps_memory: bool = True,
    ) -> None:
        check_precision(precision, device)
        if keeps_memory and not is_cuda(device):
            keep_memory()
        self.runnable, self.device = runnable, torch.device(device)
        self._autocast_dtype = _AUTOCAST.get(precision)
        dtype = torch.bfloat16 if precision == "bf16" else None
        self.module = runnable.module.to(device=self.device, dtype=dtype).train()
        self._called = torch.compile(self.module) if compiled else self.module
        self._dtype = dtype
        self._uses_tf32 = precision == "tf32"
        self.optimizer = make_optimizer(optimizer, self.module.parameters())
        needs_scaling = precision == "amp-fp16" and self.device.type == "cuda"
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=needs_scaling)

    def inputs(self, batch_size: int) -> Any:
        """An example batch, on the device."""
        return self.to_device(self.runnable.make_inputs(batch_size))

    def to_device(self, inputs: Any) -> Any:
        """Tensors of a batch, wherever they are in it."""
        if isinstance(inputs, torch.Tensor):
            moved = inputs.to(self.device, non_blocking=True)
            return moved.to(self._dtype) if self._dtype is not None and moved.is_floating_point() else moved
        if isinstance(inputs, dict):
            return {name: self.to_device(value) for name, value in inputs.items()}
        if isinstance(inputs, tuple) and hasattr(inputs, "_fields"):
            return type(inputs)(*(self.to_device(value) for value in inputs))
        if isinstance(inputs, (tuple, list)):
            return type(inputs)(self.to_device(value) for value in inputs)
        return inputs

    def step(self, inputs: Any, stopwatch: Stopwatch) -> Any:
        """Forward, loss, backward, update: five marks, four phases between them. Gives the loss."""
        with self._math():
            stopwatch.mark()
            with self._autocast():
                output = self.runnable.forward(self._called, inputs)
                stopwatch.mark()
                loss = self.runnable.loss(output, inputs)
            del output  # its memory is free as soon as backward has used it, as in most training loops
            stopwatch.mark()
            self._scaler.scale(loss).backward()
            stopwatch.mark()
            if self.optimizer is not None:
                self._scaler.step(self.optimizer)
                self._scaler.update()
            self.module.zero_grad(set_to_none=True)
            stopwatch.mark()
        return loss.detach()

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self._autocast_dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self._autocast_dtype)

    def _math(self) -> contextlib.AbstractContextManager[None]:
        return tf32_math(torch.backends, self._uses_tf32) if self.device.type == "cuda" else contextlib.nullcontext()


@contextlib.contextmanager
def tf32_math(backends: Any, allowed: bool) -> Iterator[None]:
    """Products and convolutions of one kind: by itself, torch runs the first in fp32 and the second in tf32."""
    before = backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before


def is_cuda(device: str) -> bool:
    """Whether the name is that of a GPU."""
    return device.partition(":")[0] == "cuda"


def check_device(device: str, cuda: Any = None) -> str:
    """The device, if it is here. `cuda` stands in for torch.cuda."""
    if not is_cuda(check_device_name(device)):
        return device
    cuda = torch.cuda if cuda is None else cuda
    if not cuda.is_available():
        raise InputError(f"There is no CUDA device to measure on ('{device}'): this torch sees only the CPU.")
    number, n_devices = int(device.partition(":")[2] or 0), cuda.device_count()
    if number >= n_devices:
        raise InputError(f"There is no '{device}': of {n_devices} CUDA devices the last is 'cuda:{n_devices - 1}'.")
    return device


def check_precision(precision: str, device: str) -> str:
    """The precision, if the device has it."""
    check_choice("precision", precision, PRECISIONS)
    if precision == "tf32" and not is_cuda(device):
        raise InputError(f"tf32 is a mode of NVIDIA GPUs and cannot be measured on '{device}': choose fp32 or bf16.")
    return precision
