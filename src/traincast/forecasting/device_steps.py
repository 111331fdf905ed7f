"""Steps at one place and several batch sizes, before they become forecasts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
    def bound_by(self) -> list[str]:
        is_link = self.parallel.exposed_s > self.parallel.compute_s
        found = np.where(is_link, "communication", self.timeline.bound_by)
        return np.where(self.input_wait_s > 0, "input", found).tolist()

    def forecasts(self) -> list[Forecast]:
        """One a batch size."""
        timeline, parallel, bound_by = self.timeline, self.parallel, self.bound_by
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
                bound_by=bound_by[place],
                host_s=float(timeline.host_s[place]),
                device_s=float(timeline.device_s[place]),
                compute_s=float(timeline.compute_s[place]),
                log_sd=float(self.log_sd[place]),
                is_covered=self.is_covered,
                method_warnings=self.method_warnings,
            )
            for place, batch_size in enumerate(self.batch_sizes.tolist())
        ]
