"""Where tensors live and in which precision they are multiplied."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from traincast.measurement.heap import keep_memory
from traincast.measurement.training import tf32_math

_AUTOCAST = {"amp-fp16": torch.float16, "amp-bf16": torch.bfloat16}


class Numerics:
    """A device and a precision by the names of a forecast. On a CPU the process keeps what steps free (`heap.py`)."""

    def __init__(self, device: str, precision: str) -> None:
        self.device = torch.device(device)
        self._autocast_dtype = _AUTOCAST.get(precision)
        self._dtype = torch.bfloat16 if precision == "bf16" else None
        self._uses_tf32 = precision == "tf32"
        self._needs_scaling = precision == "amp-fp16" and self.is_on_cuda
        if not self.is_on_cuda:
            keep_memory()

    @property
    def is_on_cuda(self) -> bool:
        return bool(self.device.type == "cuda")

    def place(self, module: nn.Module) -> nn.Module:
        """Moves the module itself."""
        return module.to(device=self.device, dtype=self._dtype)

    def scaler(self) -> Any:
        """Keeps small fp16 gradients from becoming zero; does nothing in other precisions."""
        return torch.amp.GradScaler(self.device.type, enabled=self._needs_scaling)

    def move(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """A batch on the device; images in the dtype of the weights."""
        moved = images.to(self.device, non_blocking=True)
        if self._dtype is not None:
            moved = moved.to(self._dtype)
        return moved, labels.to(self.device, non_blocking=True)

    @contextlib.contextmanager
    def math(self) -> Iterator[None]:
        """For whole steps, backward and update too."""
        with tf32_math(torch.backends, self._uses_tf32) if self.is_on_cuda else contextlib.nullcontext():
            yield

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """For the forward and the loss."""
        if self._autocast_dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self._autocast_dtype)

    def wait(self) -> None:
        """Until the device has done all that it was asked."""
        if self.is_on_cuda:
            torch.cuda.synchronize(self.device)
