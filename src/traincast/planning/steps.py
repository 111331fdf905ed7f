"""Steps of every place, precision, strategy and batch size, in as few passes over arrays as there are devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traincast.hardware.device import Device
from traincast.planning.fitting import Fitting
from traincast.planning.space import MachineGroup, Run, Space, precisions_for
from traincast.planning.timing import timing
from traincast.scaling.strategy import Strategy
from traincast.trace.graph import Floats, Ints


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class StepTable:
    """One row a choice that fits. `place`, `precision` and `strategy` are numbers in the lists beside them."""

    places: tuple[MachineGroup, ...]
    precisions: tuple[str, ...]
    strategies: tuple[Strategy, ...]
    place: Ints
    precision: Ints
    strategy: Ints
    batch_size: Ints
    n_passes: Ints
    busy_s: Floats  # of a step, without waiting for input
    log_sd: Floats  # of its logarithm
    n_too_large: int  # choices that fit in no number of passes

    def __len__(self) -> int:
        return len(self.place)


def step_table(run: Run, space: Space, places: Sequence[MachineGroup]) -> StepTable:
    """All of them. Op times are worked out once a device and precision, for all shares of all batches."""
    chunks: list[tuple[Ints, ...]] = []
    times: list[tuple[Floats, Floats]] = []
    names: list[str] = []
    batches = np.array(sorted(set(space.batch_sizes)), dtype=np.int64)
    fitting, n_too_large = Fitting(run), 0
    for device, numbers in _by_device(places):
        for precision in precisions_for(device, space.precisions):
            if precision not in names:
                names.append(precision)
            group = _Group(run, device, precision, [(n, places[n]) for n in numbers], space, batches)
            n_too_large += group.choose_passes(fitting)
            for one, (busy_s, log_sd) in group.steps():
                fixed = (one.place, names.index(precision), one.strategy)
                filled = [np.full(len(one.batch_sizes), value) for value in fixed]
                chunks.append((*filled, one.batch_sizes, one.n_passes))
                times.append((busy_s, log_sd))
    columns = [np.concatenate(parts) for parts in zip(*chunks, strict=True)] if chunks else [_NONE] * 5
    seconds = [np.concatenate(parts) for parts in zip(*times, strict=True)] if times else [np.zeros(0)] * 2
    return StepTable(
        places=tuple(places),
        precisions=tuple(names),
        strategies=space.all_strategies,
        **dict(zip(("place", "precision", "strategy", "batch_size", "n_passes"), columns, strict=True)),
        **dict(zip(("busy_s", "log_sd"), seconds, strict=True)),
        n_too_large=n_too_large,
    )


_NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class _Chosen:
    """The batches that fit at one place by one strategy, and in how many passes."""

    place: int
    strategy: int
    batch_sizes: Ints
    n_passes: Ints


class _Group:
    """The choices of one device in one precision."""

    def __init__(
        self,
        run: Run,
        device: Device,
        precision: str,
        places: list[tuple[int, MachineGroup]],
        space: Space,
        batches: Ints,
    ) -> None:
        self.run, self.device, self.precision = run, device, precision
        self.places, self.space, self.batches = places, space, batches
        self.chosen: list[_Chosen] = []

    def choose_passes(self, fitting: Fitting) -> int:
        """The fewest passes that fit, for each choice; how many fit in none is returned."""
        space, n_too_large = self.space, 0
        for number, place in self.places:
            most = np.zeros_like(self.batches)  # passes of the strategies that were asked for; 0: does not fit
            for index in _possible_strategies(place, space.strategies):
                passes = fitting.fewest_passes(place, self.precision, space.strategies[index], self.batches)
                self._add(number, index, passes)
                most = np.maximum(most, passes)
            if space.fallback is not None and place.n_devices > 1 and (most != 1).any():
                passes = fitting.fewest_passes(place, self.precision, space.fallback, self.batches)
                self._add(number, len(space.strategies), np.where(most != 1, passes, 0))
                most = np.maximum(most, passes)
            n_too_large += int((most == 0).sum())
        return n_too_large

    def _add(self, place: int, strategy: int, passes: Ints) -> None:
        if (passes > 0).any():
            self.chosen.append(_Chosen(place, strategy, self.batches[passes > 0], passes[passes > 0]))

    def steps(self) -> Iterator[tuple[_Chosen, tuple[Floats, Floats]]]:
        if not self.chosen:
            return
        places, strategies = dict(self.places), self.space.all_strategies
        shares = [-(-one.batch_sizes // (places[one.place].n_devices * one.n_passes)) for one in self.chosen]
        passes = np.unique(np.concatenate([one.n_passes for one in self.chosen]))
        question = self.run.question(self.device, self.precision, 1)
        timed = timing(question, np.unique(np.concatenate(shares)), passes)
        for one in self.chosen:
            yield one, timed.steps(places[one.place], strategies[one.strategy], one.batch_sizes, one.n_passes)


def _possible_strategies(place: MachineGroup, strategies: Sequence[Strategy]) -> Sequence[int]:
    """On one device they are all the same, and one process does not span machines."""
    if place.n_devices == 1:
        return [0]
    return [n for n, strategy in enumerate(strategies) if place.n_nodes == 1 or not strategy.is_one_process]


def _by_device(places: Sequence[MachineGroup]) -> list[tuple[Device, list[int]]]:
    found: dict[str, tuple[Device, list[int]]] = {}
    for number, place in enumerate(places):
        found.setdefault(place.device.name, (place.device, []))[1].append(number)
    return list(found.values())
