"""A data set in front of a model: batches as the model takes them, and what it costs to load them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader, RandomSampler, default_collate

from traincast.errors import InputError
from traincast.measurement.failures import users_code
from traincast.measurement.statistics import summarise

_BUDGET_S = 1.0
_MOST_BATCHES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCost:
    """What one sample costs in one process: seconds (median over batches), and which part of them is work of a CPU.

    The rest is waiting, for a disk or a network, and needs no core.
    """

    sample_s: float
    cpu_fraction: float

    @property
    def is_busy(self) -> bool:
        return self.cpu_fraction > 0.5


class BatchLoader:
    """Random batches of a data set, over and over, as inputs of the model.

    `like` is what the model's own example gives. Of a sample that holds more, such as a label, the rest is loaded and
    then left out: the loss is the model's own.
    """

    def __init__(self, dataset: Any, like: Any, *, batch_size: int, n_batches: int, num_workers: int = 0) -> None:
        self.num_workers, self._like, self._n_batches = num_workers, like, n_batches
        # Workers load ahead: with nothing left to load they would rest while the last batches are timed.
        n_ahead = 2 * num_workers
        with _unasked_advice(), users_code("The length of the data set"):
            sampler = RandomSampler(dataset, num_samples=(n_batches + n_ahead) * batch_size)
            self._loader = DataLoader(dataset, batch_size=batch_size, sampler=sampler, num_workers=num_workers)

    def __len__(self) -> int:
        return self._n_batches

    def __iter__(self) -> Iterator[Any]:
        with _unasked_advice():
            batches = iter(self._loader)
        return (as_inputs(batch, self._like) for batch in batches)


@contextmanager
def _unasked_advice() -> Iterator[None]:
    """torch warns of more workers than cores; whether they help is what is measured."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield


def check_dataset(dataset: Any, where: str) -> Any:
    """The data set, if samples can be asked for by number."""
    has_both = hasattr(type(dataset), "__getitem__") and hasattr(type(dataset), "__len__")
    if not has_both or isinstance(dataset, (str, bytes, dict)):
        raise InputError(
            f"{where} is a {type(dataset).__name__}; a data set has len(data) and data[i], as torch's loader takes it."
        )
    if not len(dataset):
        raise InputError(f"{where} has no samples.")
    return dataset


def measure_load(dataset: Any, *, batch_size: int) -> LoadCost:
    """Loads some batches here, without workers and without a model."""
    samples_s: list[float] = []
    number, cpu_s, start_s = 0, 0.0, time.perf_counter()
    while not samples_s or (len(samples_s) < _MOST_BATCHES and time.perf_counter() - start_s < _BUDGET_S):
        wall, cpu = time.perf_counter(), time.thread_time()
        with users_code(f"Loading samples from {number} on"):
            default_collate([dataset[(number + at) % len(dataset)] for at in range(batch_size)])
        number += batch_size
        samples_s.append((time.perf_counter() - wall) / batch_size)
        cpu_s += time.thread_time() - cpu
    return LoadCost(
        sample_s=summarise(samples_s).median,
        cpu_fraction=min(cpu_s / (batch_size * sum(samples_s)), 1.0),
    )


def as_inputs(batch: Any, like: Any) -> Any:
    """The part of a loaded batch that the model takes: as many values, or the names, as its example has."""
    if isinstance(like, dict):
        if not isinstance(batch, dict) or not like.keys() <= batch.keys():
            has = f"has {', '.join(map(str, batch))}" if isinstance(batch, dict) else f"is a {type(batch).__name__}"
            raise InputError(f"The model takes {', '.join(map(str, like))}, but a sample {has}.")
        return {name: batch[name] for name in like}
    values = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
    n_taken = len(like) if isinstance(like, (tuple, list)) else 1
    if isinstance(batch, dict) or len(values) < n_taken:
        has = "names" if isinstance(batch, dict) else f"{len(values)}"
        raise InputError(f"The model takes {n_taken} values without names, but a sample has {has}.")
    return values[:n_taken] if isinstance(like, (tuple, list)) else values[0]
