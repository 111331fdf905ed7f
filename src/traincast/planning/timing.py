"""Steps of one device in one precision at many places: all shares of all batches, in all numbers of passes, at once."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import cast

import numpy as np

from traincast.forecasting.question import Question
from traincast.forecasting.spread import step_log_sd
from traincast.kernels.timeline import StepTimeline, step_timeline
from traincast.planning.space import MachineGroup
from traincast.scaling.local_step import LocalStep
from traincast.scaling.strategy import Strategy, network_of, parallel_step
from traincast.trace.graph import Floats, Ints


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Timing:
    """Timelines of one device, one row a number of passes and size of one: the sizes of the first passes come first."""

    question: Question
    sizes: Ints  # samples of one pass, ascending
    passes: Ints  # ascending
    timeline: StepTimeline

    def steps(
        self, place: MachineGroup, strategy: Strategy, batch_sizes: Ints, n_passes: Ints
    ) -> tuple[Floats, Floats]:
        """Seconds of a step, without waiting for input, and the standard deviation of their logarithm."""
        shares = -(-batch_sizes // (place.n_devices * n_passes))
        rows = np.searchsorted(self.passes, n_passes) * len(self.sizes) + np.searchsorted(self.sizes, shares)
        timeline = _rows(self.timeline, rows)
        question, device = self.question, self.question.device
        step = LocalStep(
            graph=question.timed_graph,
            timeline=timeline,
            host=question.timed_host,
            batch_sizes=shares,
            # Strategies only multiply and divide by it: an entry a batch size is as good as one for all of them.
            n_micro_steps=cast("int", n_passes),
            can_overlap=device.kind != "cpu",
        )
        found = parallel_step(strategy, step, network_of(place.cluster), waiting_fraction=device.waiting_fraction)
        return found.step_s, step_log_sd(timeline, found, device)


def timing(question: Question, sizes: Ints, passes: Ints) -> Timing:
    """Op times once for every size; timelines for every number of passes."""
    graph, device = question.timed_graph, question.device
    times = question.timed_method.op_times(graph, device, sizes, precision=question.settings.precision)
    is_cpu = device.kind == "cpu"
    found = [
        step_timeline(graph, times, question.timed_host, n_micro_steps=n, is_synchronous=is_cpu)
        for n in passes.tolist()
    ]
    joined = {field.name: np.concatenate([getattr(one, field.name) for one in found]) for field in fields(StepTimeline)}
    return Timing(question=question, sizes=sizes, passes=passes, timeline=replace(found[0], **joined))


def _rows(timeline: StepTimeline, rows: Ints) -> StepTimeline:
    return replace(timeline, **{field.name: getattr(timeline, field.name)[rows] for field in fields(StepTimeline)})
