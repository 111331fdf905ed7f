"""An epoch over a real loader: how long the loop waited for data, and for everything else."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from traincast.errors import InputError
from traincast.measurement.failures import users_code
from traincast.measurement.measure import Progress, check_count_of
from traincast.measurement.remarks import on_losses, on_noise
from traincast.measurement.runnable import Runnable
from traincast.measurement.statistics import Summary, summarise
from traincast.measurement.stopwatch import Stopwatch, stopwatch_for
from traincast.measurement.training import PHASES, Training, check_device, check_precision
from traincast.records.environment import Environment, read_environment

EPOCH_PHASES = ("data", "copy", *PHASES)
# The first batches also start the workers and warm up the model; an epoch has them once.
N_WARMUPS = 2
_NO_MORE = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochMeasurement:
    """Seconds of a batch by phase, and of the epoch. `batch_size` is that of its largest batch.

    `data` is what the loop waited for the loader, `copy` the move to the device. The first batches are in `epoch_s`
    and, if others came after them, in nothing else. `start_s` is until the first batch was there. Median and interval
    of `data` say little where workers deliver in bursts: shares are of the whole time.
    """

    model: str
    batch_size: int
    optimizer: str
    precision: str
    device: str
    n_workers: int | None
    n_batches: int
    n_samples: int
    phases: Mapping[str, Summary]
    batch: Summary
    start_s: float
    epoch_s: float
    environment: Environment
    is_partial: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def samples_per_s(self) -> float:
        """Without the first batches, as in a long epoch."""
        return self.n_samples / self.n_batches / self.batch.mean

    @property
    def data_fraction(self) -> float:
        """Part of the time in which the loop waited for data."""
        return self.share("data")

    def share(self, phase: str) -> float:
        """Part of the time that a phase took."""
        return self.phases[phase].total / self.batch.total if self.batch.total else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "batch_size": self.batch_size,
            "optimizer": self.optimizer,
            "precision": self.precision,
            "device": self.device,
            "n_workers": self.n_workers,
            "n_batches": self.n_batches,
            "n_samples": self.n_samples,
            "epoch_s": self.epoch_s,
            "start_s": self.start_s,
            "samples_per_s": self.samples_per_s,
            "data_fraction": self.data_fraction,
            "batch": self.batch.to_dict(),
            "phases": {name: summary.to_dict() for name, summary in self.phases.items()},
            "is_partial": self.is_partial,
            "warnings": list(self.warnings),
            "environment": self.environment.to_dict(),
        }

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.units import show_duration, show_percent

        rows = [(name, show_duration(each.mean), show_percent(self.share(name))) for name, each in self.phases.items()]
        title = f"An epoch of {self.model}: {show_duration(self.epoch_s)}, {self.n_batches:,} batches"
        return to_notebook(title, rows, header=("phase", "of a batch", "share"), notes=self.warnings)


def check_loader(loader: object) -> None:
    """Whether it can give batches. A data set that is asked by number gives single samples, which look like them."""
    from torch.utils.data import Dataset, IterableDataset

    name = type(loader).__name__
    if isinstance(loader, Dataset) and not isinstance(loader, IterableDataset):
        raise InputError(
            f"The loader is a data set ({name}), which yields single samples: pass DataLoader(dataset, batch_size=...)."
        )
    if isinstance(loader, str | bytes) or not isinstance(loader, Iterable):
        raise InputError(f"The loader should yield batches, as a torch DataLoader does, but {name} does not.")


def measure_epoch(  # noqa: PLR0913  (a model, a loader, and the options of a step)
    runnable: Runnable,
    loader: Iterable[Any],
    *,
    optimizer: str = "sgd",
    precision: str = "fp32",
    device: str = "cpu",
    n_batches: int | None = None,
    on_progress: Progress | None = None,
    stopwatch: Stopwatch | None = None,
) -> EpochMeasurement:
    """One epoch, or its first `n_batches`, over a torch DataLoader or anything else that gives batches of inputs.

    Each batch is what `runnable.forward` takes. Ctrl-C ends it with what was measured until then, and a loader or a
    model that dies raises a MeasurementError that keeps the same.
    """
    check_device(device)
    check_precision(precision, device)
    check_count_of("batches", n_batches)
    check_loader(loader)
    environment = read_environment(device)
    epoch = _Epoch(stopwatch or stopwatch_for(device))

    def result(*, is_partial: bool) -> EpochMeasurement | None:
        if not epoch.durations_s:
            return None
        return _result(
            epoch,
            model=runnable.name,
            optimizer=optimizer,
            precision=precision,
            device=device,
            n_workers=getattr(loader, "num_workers", None),
            environment=environment,
            is_partial=is_partial,
        )

    try:
        with users_code(epoch.whereabouts, partial=lambda: result(is_partial=True)):
            training = Training(runnable, optimizer=optimizer, precision=precision, device=device)
            epoch.run(training, loader, n_batches, on_progress)
    except KeyboardInterrupt:
        stopped = result(is_partial=True)
        if stopped is None:
            raise
        return stopped
    finished = result(is_partial=False)
    if finished is None:
        raise InputError(f"The loader of {runnable.name} yielded no batch: an epoch needs at least one.")
    return finished


class _Epoch:
    """The batches so far: seconds by phase, losses, and samples."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch
        self._waits_for_data = False
        self.durations_s: list[list[float]] = []
        self.losses: list[float] = []
        self.n_samples: list[int] = []
        self.start_s = 0.0
        self.epoch_s = 0.0

    def run(self, training: Training, loader: Iterable[Any], n_batches: int | None, tell: Progress | None) -> None:
        n_to_do = _length(loader, n_batches)
        began_s = time.perf_counter()
        self._waits_for_data = True
        batches = iter(loader)
        while n_batches is None or len(self.durations_s) < n_batches:
            batch, data_s = self._next(batches)
            if batch is _NO_MORE:
                break
            if not self.durations_s:
                self.start_s = time.perf_counter() - began_s
            self._stopwatch.mark()
            loss = training.step(training.to_device(batch), self._stopwatch)
            self.durations_s.append([data_s, *self._stopwatch.read()])
            self.losses.append(float(loss))
            self.n_samples.append(n_samples_of(batch))
            self.epoch_s = time.perf_counter() - began_s
            if tell is not None:
                tell(len(self.durations_s), n_to_do)

    def _next(self, batches: Iterator[Any]) -> tuple[Any, float]:
        self._waits_for_data = True
        start_s = time.perf_counter()
        batch = next(batches, _NO_MORE)
        data_s = time.perf_counter() - start_s
        self._waits_for_data = False
        return batch, data_s

    def whereabouts(self, error: BaseException) -> str:
        """Who failed. torch tells of a dead worker at any moment, also in the middle of a step."""
        number = len(self.durations_s) + 1
        is_cut_off = self._waits_for_data and isinstance(error, ConnectionError | EOFError)
        if "DataLoader worker (pid" in str(error) or is_cut_off:
            return f"The data loader, one of whose workers died before batch {number},"
        return f"The data loader, asked for batch {number}," if self._waits_for_data else f"The step on batch {number}"


def n_samples_of(batch: Any) -> int:
    """The first dimension of the first tensor that has one."""
    shape = next((tensor.shape for tensor in _tensors_in(batch) if tensor.shape), (1,))
    return int(shape[0])


def _tensors_in(batch: Any) -> Iterator[Any]:
    if hasattr(batch, "shape"):
        yield batch
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, (tuple, list)) else ()
    for part in parts:
        yield from _tensors_in(part)


def _length(loader: Any, n_batches: int | None) -> int:
    """Batches to come; 0 where nobody knows, as of a stream."""
    try:
        whole = len(loader)
    except TypeError:
        return n_batches or 0
    return whole if n_batches is None else min(whole, n_batches)


def _result(epoch: _Epoch, *, environment: Environment, is_partial: bool, **settings: Any) -> EpochMeasurement:
    n_made = len(epoch.durations_s)
    kept = epoch.durations_s[N_WARMUPS if n_made > 2 * N_WARMUPS else 0 :]
    batch = summarise([sum(durations_s) for durations_s in kept])
    warnings = [f"Stopped after {n_made} batches."] if is_partial else []
    return EpochMeasurement(
        **settings,
        batch_size=max(epoch.n_samples),
        n_batches=n_made,
        n_samples=sum(epoch.n_samples),
        phases={phase: summarise([one[at] for one in kept]) for at, phase in enumerate(EPOCH_PHASES)},
        batch=batch,
        start_s=epoch.start_s,
        epoch_s=epoch.epoch_s,
        environment=environment,
        is_partial=is_partial,
        warnings=(*warnings, *on_losses(epoch.losses, "batch"), *on_noise(batch, environment)),
    )
