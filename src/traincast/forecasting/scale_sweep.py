"""Thousands of answers at once: places x numbers of devices x strategies x batch sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.forecasting.device_times import DeviceTimes, device_times, steps_at
from traincast.forecasting.question import Question
from traincast.forecasting.scale_places import Places
from traincast.scaling.local_step import ParallelStep
from traincast.scaling.strategy import Strategy
from traincast.trace.check import check_batch_size
from traincast.trace.graph import Floats, Ints

_FIELDS = ("step_s", "exposed_communication_s", "communication_s", "bytes_sent", "log_sd")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ScaleSweep:
    """Arrays have the axes place, number of devices, strategy, batch size.

    A batch that leaves a device without a sample, or that its passes cannot share, has no answer: NaN there, and False
    in `is_possible`.
    """

    places: tuple[str, ...]
    counts: tuple[int, ...]
    strategies: tuple[str, ...]
    batch_sizes: Ints  # global
    step_s: Floats
    exposed_communication_s: Floats
    communication_s: Floats
    bytes_sent: Floats
    log_sd: Floats

    @property
    def is_possible(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.step_s)

    @property
    def samples_per_s(self) -> Floats:
        return self.batch_sizes / self.step_s


def scale_many(
    questions: Sequence[Question], places: Sequence[Places], strategies: Sequence[Strategy], batch_sizes: Sequence[int]
) -> ScaleSweep:
    """One question a place. Op times are worked out once a device, for the union of what its passes hold."""
    if not (len(questions) and len(strategies) and len(batch_sizes)):
        raise InputError("A sweep needs at least one place, one strategy and one batch size.")
    for batch_size in batch_sizes:
        check_batch_size(batch_size)
    sizes, counts = np.array(batch_sizes, dtype=np.int64), places[0].counts
    shape = (len(places), len(counts), len(strategies), len(sizes))
    found = {name: np.full(shape, np.nan) for name in _FIELDS}
    for row, (question, place) in enumerate(zip(questions, places, strict=True)):
        known = _times(question, place, sizes)
        for column, n in enumerate(counts):
            possible = _possible(question, n, sizes)
            if not possible.any():
                continue
            asked = replace(question, cluster=place.by_count[n], batch_size=int(sizes[possible][0]))
            for number, strategy in enumerate(strategies):
                steps = steps_at(known, replace(asked, strategy=strategy), sizes[possible])
                parts = _parts(steps.parallel) | {"step_s": steps.step_s, "log_sd": steps.log_sd}
                for name, values in parts.items():
                    found[name][row, column, number, possible] = values
    return ScaleSweep(
        places=tuple(place.name for place in places),
        counts=counts,
        strategies=tuple(strategy.name for strategy in strategies),
        batch_sizes=sizes,
        **found,
    )


def _times(question: Question, place: Places, sizes: Ints) -> DeviceTimes:
    passes = question.accumulation_steps
    shares = -(-sizes // (np.array(place.counts)[:, None] * passes))
    return device_times(question, shares.ravel())


def _possible(question: Question, n_devices: int, sizes: Ints) -> NDArray[np.bool_]:
    passes = question.accumulation_steps
    return (sizes >= n_devices * passes) & (sizes % passes == 0)


def _parts(step: ParallelStep) -> dict[str, Floats]:
    return {
        "exposed_communication_s": step.exposed_s,
        "communication_s": step.communication_s,
        "bytes_sent": step.bytes_sent,
    }
