"""Samples of known cost, to measure loaders with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from traincast.errors import InputError
from traincast.measurement.failures import users_code


class SyntheticDataset(torch.utils.data.Dataset):  # type: ignore[misc, unused-ignore]  # torch is untyped for us
    """The same sample again and again, each after `cost_s` seconds of reading it.

    `make_inputs` maps a batch size to inputs; it is called once, so that only tensors travel to the workers. A busy
    cost is CPU time, as of decoding an image: workers without a core of their own take longer. The other is waiting, as
    for a disk far away.
    """

    def __init__(
        self, make_inputs: Callable[[int], Any], n_samples: int, cost_s: float = 0.0, *, is_busy: bool = True
    ) -> None:
        if n_samples < 1 or cost_s < 0:
            raise InputError(f"A data set needs at least 1 sample of at least 0 s, not {n_samples} of {cost_s} s.")
        with users_code("An example batch of 1 sample"):
            self._sample = _first_of(make_inputs(1))
        self.n_samples, self.cost_s, self.is_busy = n_samples, cost_s, is_busy

    def __len__(self) -> int:
        return self.n_samples

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self.n_samples:
            raise IndexError(index)
        if self.is_busy:
            end_s = time.thread_time() + self.cost_s
            while time.thread_time() < end_s:
                pass
        else:
            time.sleep(self.cost_s)
        return self._sample


def _first_of(inputs: Any) -> Any:
    """A batch of one without its batch dimension, as a loader will put it together again."""
    if isinstance(inputs, torch.Tensor):
        return inputs[0].clone()
    if isinstance(inputs, dict):
        return {name: _first_of(value) for name, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        return tuple(_first_of(value) for value in inputs)
    return inputs
