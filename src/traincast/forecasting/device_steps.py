"""Steps at one place and several batch sizes, before they become forecasts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traincast.forecasting.by_bound import largest_bounds, seconds_by_bound
from traincast.forecasting.forecast import Forecast
from traincast.forecasting.question import Question
from traincast.kernels.timeline import StepTimeline
from traincast.scaling.local_step import ParallelStep
from traincast.trace.graph import Floats, Ints


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class DeviceSteps:
    """Steps at one place, with one entry a batch size in every array."""

    question: Question  # at the first batch size
    batch_sizes: Ints
    timeline: StepTimeline  # of one device
    parallel: ParallelStep  # of all devices
    input_wait_s: Floats
    log_sd: Floats
    is_covered: NDArray[np.bool_]
    method_warnings: tuple[str, ...]

    @property
    def step_s(self) -> Floats:
        return self.parallel.step_s + self.input_wait_s

    @property
    def device_s(self) -> Floats:
        """What one device works, with its share of the update."""
        return self.timeline.device_s - (1 - self.parallel.update_fraction) * self.timeline.update_device_s

    @property
    def compute_s(self) -> Floats:
        return self.timeline.compute_s - (1 - self.parallel.update_fraction) * self.timeline.update_compute_s

    @property
    def bound_by(self) -> list[str]:
        parallel = self.parallel
        bound_s = seconds_by_bound(
            parallel.compute_s,
            self.device_s,
            self.compute_s,
            bubble_s=parallel.bubble_s,
            exposed_s=parallel.exposed_s,
            input_wait_s=self.input_wait_s,
        )
        return largest_bounds(bound_s)

    def forecasts(self) -> list[Forecast]:
        """One a batch size."""
        timeline, parallel, device_s, compute_s = self.timeline, self.parallel, self.device_s, self.compute_s
        return [
            Forecast(
                question=replace(self.question, batch_size=batch_size) if place else self.question,
                forward_s=float(parallel.forward_s[place]),
                loss_s=float(parallel.loss_s[place]),
                backward_s=float(parallel.backward_s[place]),
                optimizer_s=float(parallel.optimizer_s[place]),
                exposed_communication_s=float(parallel.exposed_s[place]),
                communication_s=float(parallel.communication_s[place]),
                bytes_sent=float(parallel.bytes_sent[place]),
                input_wait_s=float(self.input_wait_s[place]),
                bubble_s=float(parallel.bubble_s[place]),
                host_s=float(timeline.host_s[place]),
                device_s=float(device_s[place]),
                compute_s=float(compute_s[place]),
                log_sd=float(self.log_sd[place]),
                is_covered=self.is_covered,
                method_warnings=self.method_warnings,
            )
            for place, batch_size in enumerate(self.batch_sizes.tolist())
        ]
