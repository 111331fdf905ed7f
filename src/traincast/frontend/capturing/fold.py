"""Captures a model for every sequence length, with each kind of block once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from traincast.errors import CaptureError
from traincast.frontend.capturing.capture import BATCH_SIZES, capture_step
from traincast.frontend.step import TrainingStep
from traincast.trace.folding.folded import LENGTHS, FoldedTrace
from traincast.trace.folding.lengths import NoPolynomialError, constant_terms, fit_lengths
from traincast.trace.folding.repeat_trace import repeat_trace
from traincast.trace.folding.same import differences
from traincast.trace.folding.units import IrregularError, Stack
from traincast.trace.trace import Trace

_TWO = BATCH_SIZES[:2]
# How many units each stack has in a step -> the step at a sequence length.
Build = Callable[[Sequence[int], int], TrainingStep]


def capture_folded(
    build: Build, stacks: Sequence[Stack], n_units: Sequence[int], *, lengths: Sequence[int] = LENGTHS, **changes: Any
) -> FoldedTrace:
    """The model with `n_units` units of each stack, from steps with three of each; checked against one with four."""
    three = [3] * len(stacks)
    traces = {lengths[0]: capture_step(build(three, lengths[0]))}
    traces |= {length: capture_step(build(three, length), batch_sizes=_TWO) for length in lengths[1:]}
    first = traces[lengths[0]]
    try:
        if len(traces) > 1:
            graph, terms = fit_lengths({length: trace.graph for length, trace in traces.items()})
        else:
            graph, terms = first.graph, constant_terms(first.graph)
        short = replace(first, graph=graph, **changes)
        folded = FoldedTrace(short, terms, tuple(stacks), tuple(n - 2 for n in n_units))
        if stacks:
            _check(first, stacks, capture_step(build([4] * len(stacks), lengths[0]), batch_sizes=_TWO))
    except (IrregularError, NoPolynomialError) as error:
        raise CaptureError(f"The blocks of {first.name} cannot be folded: {error}.") from error
    return folded


def _check(short: Trace, stacks: Sequence[Stack], wanted: Trace) -> None:
    long = short
    for stack in stacks:
        long, _ = repeat_trace(long, stack, 2)
    wrong = differences(long.graph, wanted.graph)
    wrong += [] if [m.path for m in long.modules] == [m.path for m in wanted.modules] else ["modules"]
    wrong += [] if [p.name for p in long.parameters] == [p.name for p in wanted.parameters] else ["parameters"]
    pairs = [{tuple(row) for row in trace.gradient_of.tolist()} for trace in (long, wanted)]
    wrong += [] if pairs[0] == pairs[1] else ["gradients"]
    if wrong:
        raise IrregularError(f"blocks differ in {', '.join(wrong)}")
