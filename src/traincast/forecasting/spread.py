"""How far one machine is from the next of its type, and what that makes of a forecast's interval."""

from __future__ import annotations

import numpy as np

from traincast.hardware.device import Device
from traincast.kernels.timeline import StepTimeline
from traincast.scaling.local_step import ParallelStep
from traincast.trace.graph import Floats

# Two leases of one cloud's P100 trained one CNN (patchcamelyon, Keras) at seven batch sizes, ten epochs each. By the
# median of epochs 2 to 10 the second was slower by 31 % at batch 16 and by 11 % at batch 256; of two machines, the
# standard deviation of the logarithm is that of their ratio over the square root of 2. Batch 16 spends most of its
# step on what does not grow with the batch, so its figure stands for the time that the device waits, and batch 256
# for the time that it works. One pair of machines: docs/forecast.md has the table.
WORKING_LOG_SD = 0.076
WAITING_LOG_SD = 0.189

# Exposed communication: what links, libraries and clouds deliver of their nominal rates. With it p10 to p90 held 79 %
# of Pollux' rows on several GPUs with the links as documented (docs/distributed.md).
LINK_LOG_SD = 0.45

# A CPU that was not calibrated: its figures are a guess. Real steps of 17 models on two machines took 2.2 and 2.6 times
# what was forecast so, by the median (docs/calibration.md: "before").
GUESSED_CPU_LOG_SD = 0.8


def step_log_sd(timeline: StepTimeline, parallel: ParallelStep, device: Device) -> Floats:
    """Standard deviation of the logarithm of the step: errors of its ops, of its links, and the machine one gets.

    A machine that was itself measured (it has prices) is the one that one gets.
    """
    waiting = timeline.waiting_fraction
    machine: Floats | float = waiting * WAITING_LOG_SD + (1 - waiting) * WORKING_LOG_SD
    if device.prices:
        machine = 0.0
    elif device.kind != "gpu":  # of other accelerators nothing was measured: they are not known any better
        machine = GUESSED_CPU_LOG_SD
    computing = np.hypot(timeline.op_log_sd, machine)
    step_s = parallel.step_s
    share = np.divide(parallel.exposed_s, step_s, out=np.zeros_like(step_s), where=step_s > 0)
    return np.hypot((1 - share) * computing, share * LINK_LOG_SD)
