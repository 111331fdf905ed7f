"""Our default method with the libraries of TensorFlow in 2018 to 2020, for graphs of one layer timed alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from traincast.hardware.device import Device
from traincast.kernels.library_factors import Chip, Factors, library_seconds, shipped_library
from traincast.kernels.library_traits import traits_of
from traincast.kernels.method import OpTimes
from traincast.kernels.predictor import Traincast
from traincast.trace.graph import Graph, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryMethod:
    """`factors` default to those of the package, which were fitted to all six GPUs."""

    factors: Factors = field(default_factory=lambda: shipped_library().library.factors)
    base: Traincast = field(default_factory=Traincast)
    name: str = "traincast"

    def op_times(self, graph: Graph, device: Device, batch_sizes: Ints, *, precision: str) -> OpTimes:
        times = self.base.op_times(graph, device, batch_sizes, precision=precision)
        launch_s = float(np.exp(self.base.coefficients["launch_s"]))
        traits, chip = traits_of(graph), Chip.of(device)
        return replace(times, seconds=library_seconds(times.seconds, traits, chip, self.factors, launch_s=launch_s))
