"""What a job trains: measured step times joined with how much each epoch needs at which batch size.

Progress is counted as Pollux does (Qiao et al., OSDI 2021): in steps of the smallest batch. A step of m samples is
worth AdaScale's gain, (var + sqr) / (var m0/m + sqr), of them; var and sqr are the noise and the signal of the
gradient in that epoch. So an epoch of P progress takes P / gain(m) steps of m samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.scheduling.measured_steps import MeasuredSteps, Shape

Floats = NDArray[np.float64]
N_TRIED_BATCHES = 50  # as Pollux: spaced evenly by ratio
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Learning:
    """How a training advances, epoch by epoch, at the batch sizes that were run. Rows of arrays are batch sizes."""

    batches: Floats  # ascending
    progress: Floats  # of each epoch, in steps of the smallest batch
    grad_sqr: Floats  # batches x epochs
    grad_var: Floats

    def steps(self, batch: Floats) -> Floats:
        """Steps of each epoch, for each of these batch sizes: batch x epoch."""
        x = self.batches
        inside = np.clip(batch, x[0], x[-1])
        right = np.clip(np.searchsorted(x, inside), 1, max(len(x) - 1, 1)) if len(x) > 1 else np.zeros(len(batch), int)
        left = np.maximum(right - 1, 0)
        width = np.where(right > left, x[right] - x[left], 1.0)
        part = ((inside - x[left]) / width)[:, None]
        sqr = self.grad_sqr[left] * (1 - part) + self.grad_sqr[right] * part
        var = self.grad_var[left] * (1 - part) + self.grad_var[right] * part
        gain = (var + sqr) / (var * (x[0] / batch)[:, None] + sqr)
        return np.asarray(self.progress / gain)


@dataclass(frozen=True, slots=True)
class Batches:
    """Total batch sizes and how a placement runs them: local batch and passes of accumulation before the last."""

    total: Floats
    local: Floats
    n_extra: Floats


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Application:
    """Step times by type of device, and learning."""

    name: str
    steps: Mapping[str, MeasuredSteps]  # by type of device
    learning: Learning
    max_local_batch: int  # what fits a device at once
    min_local_batch: int
    max_devices: int

    @property
    def max_batch(self) -> int:
        return int(self.learning.batches[-1])

    def epoch_s(self, shape: Shape, kind: str, batch: int | None) -> Floats:
        """Seconds of each epoch on a placement. With batch None each epoch takes its fastest batch size."""
        measured = self.steps.get(kind)
        if measured is None:
            raise InputError(f"'{self.name}' has no measurements on {kind}, only on {', '.join(self.steps)}.")
        tried = self._batches(sum(shape), batch)
        step_s, sync_s = measured.step_and_sync_s(shape, tried.local)
        update_s = step_s + (step_s - sync_s) * tried.n_extra
        return np.asarray((self.learning.steps(tried.total) * update_s[:, None]).min(axis=0))

    def _batches(self, n_devices: int, batch: int | None) -> Batches:
        smallest = float(self.learning.batches[0])
        if batch is not None:
            wanted = np.array([float(batch)])
        else:
            low = max(smallest, self.min_local_batch * n_devices)
            wanted = np.geomspace(low, max(self.max_batch, low), N_TRIED_BATCHES)
        local = np.ceil(wanted / n_devices - _ROUNDING)
        n_extra = np.ceil(local / self.max_local_batch - _ROUNDING) - 1
        if n_devices == 1:  # the noise of a gradient shows only between passes, so one device makes two
            n_extra = np.where(wanted > smallest, np.maximum(n_extra, 1), n_extra)
        own = np.ceil(local / (n_extra + 1) - _ROUNDING)
        own = np.minimum(own, np.floor(self.max_batch / (n_devices * (n_extra + 1))))
        own = np.maximum(own, 1.0)
        return Batches(total=n_devices * own * (n_extra + 1), local=own, n_extra=n_extra)
