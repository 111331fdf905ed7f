"""Gradients are reduced while backward goes on: a third timeline, of the link, beside host and device.

Bucket i is ready at R_i and takes c_i on the link, one after the other: it ends at max(R_i, E_(i-1)) + c_i. What ends
after backward has ended sticks out. On a CPU the cores that would reduce are those that work on backward: all of it
does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.kernels.timeline import finish_times
from traincast.scaling.gradients import Buckets
from traincast.scaling.local_step import LocalStep
from traincast.trace.graph import Floats


@dataclass(frozen=True, eq=False, slots=True)
class Overlap:
    """One entry a batch size."""

    exposed_s: Floats
    communication_s: Floats


def overlap(step: LocalStep, buckets: Buckets, bucket_s: Floats) -> Overlap:
    """What sticks out of backward when each bucket takes `bucket_s` on the link."""
    n = len(step.batch_sizes)
    if not len(buckets.bytes):
        return Overlap(np.zeros(n), np.zeros(n))
    ready_s = step.timeline.finished_s[:, buckets.ready_op]
    each_s = np.broadcast_to(bucket_s, ready_s.shape)
    if not step.can_overlap:
        return Overlap(each_s.sum(axis=1), each_s.sum(axis=1))
    ended_s = finish_times(ready_s, each_s)[:, -1]
    return Overlap(np.maximum(ended_s - step.backward_end_s, 0.0), each_s.sum(axis=1))
