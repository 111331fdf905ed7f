"""How far a step uses the peak of its devices, counted in the model's own flop, and why that may pass 100 %."""

from __future__ import annotations

import numpy as np

from traincast.forecasting.question import Question
from traincast.trace.kinds import OpKind, op_kinds

# Methods that multiply every product of a convolution's definition; all others know, or were fitted to, algorithms that
# need fewer (Winograd, FFT).
_BY_DEFINITION = ("roofline", "paleo")


def peak_s(question: Question, *, with_recomputed: bool = False) -> float:
    """Seconds of a step if all devices did the model's flop at the peak of its precision.

    What recomputation runs again is not the model's, but the hardware's: it counts if that is asked for.
    """
    trace = question.trained_trace
    of_ops = trace.flop(np.array([question.micro_batch_size]))[0]
    of_pass = float((of_ops if with_recomputed else of_ops[trace.graph.op_recomputed == 0]).sum())
    flop = of_pass * question.batch_size / question.micro_batch_size
    return flop / (question.n_devices * question.device.peak_flop_per_s(question.settings.precision))


def may_pass_peak(question: Question) -> bool:
    """Whether some products that are counted may not be run: the step can then be shorter than `peak_s`."""
    if question.method.name in _BY_DEFINITION:
        return False
    return OpKind.CONVOLUTION in op_kinds(question.graph)


def passed_peak(question: Question) -> str:
    """Why a utilisation is above 1, in words."""
    if may_pass_peak(question):
        why = "convolutions run by algorithms (Winograd) that multiply less than the model's flop count"
    else:
        why = (
            f"the times of the method {question.method.name} are shorter than the peak of {question.device.name} allows"
        )
    return f"FLOP utilisation is above 100 % because {why}."
