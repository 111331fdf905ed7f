"""What every way of predicting op times agrees on: a lowered graph and a device in, seconds by op out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from traincast.hardware.device import Device
from traincast.trace.graph import Floats, Graph, Ints


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class OpTimes:
    """Seconds of the device for every op: one row a batch size, one column an op of the lowered graph.

    `compute_s` is the part of `seconds` that more FLOP/s would shrink, so that a step can say what binds it.
    `log_sd` is the standard deviation of the natural logarithm of an op's time within a step; ops of one
    `error_group` are off together, groups apart. Ops that a method has no figure for take 0 seconds and are not
    covered; the forecast counts them.
    """

    seconds: Floats
    compute_s: Floats
    log_sd: Floats  # one entry an op
    error_group: Ints  # one entry an op
    is_covered: NDArray[np.bool_]  # one entry an op
    dispatch_s: Floats | None = None  # what the host needs for each op; None: what its profile says
    warnings: tuple[str, ...] = ()


class Method(Protocol):
    """One way of predicting. Its settings are the fields of the class that implements it."""

    @property
    def name(self) -> str: ...

    def op_times(self, graph: Graph, device: Device, batch_sizes: Ints, *, precision: str) -> OpTimes:
        """Times of all ops of a lowered graph at several batch sizes."""
        ...
