"""What one device takes at many batch sizes, worked out once and shared by all counts and strategies that ask."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from traincast.forecasting.device_steps import DeviceSteps
from traincast.forecasting.question import Question
from traincast.forecasting.spread import step_log_sd
from traincast.kernels.method import OpTimes
from traincast.kernels.timeline import StepTimeline, step_timeline
from traincast.scaling.blocks import attention_outputs, is_head_op
from traincast.scaling.local_step import LocalStep
from traincast.scaling.model_parallel import divided_times, model_parallel, stage_timeline
from traincast.scaling.split import WHOLE
from traincast.scaling.strategies import alone
from traincast.scaling.strategy import network_of, parallel_step, synchronous
from traincast.trace.graph import Floats, Graph, Ints, Phase
from traincast.trace.kinds import OpKind, op_kinds


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class DeviceTimes:
    """Steps of one device, one entry a batch size in `timeline`."""

    graph: Graph
    micro_batch_sizes: Ints  # of one pass, ascending
    times: OpTimes
    timeline: StepTimeline


def device_times(question: Question, micro_batch_sizes: Ints) -> DeviceTimes:
    """Op times of the question's device at all these batch sizes of one pass; each once."""
    method, host, graph = question.timed_method, question.timed_host, question.timed_graph
    sizes = micro_batch_sizes if len(micro_batch_sizes) == 1 else np.unique(micro_batch_sizes)
    times = method.op_times(graph, question.device, sizes, precision=question.settings.precision)
    if question.split.tensor * question.split.context > 1:
        times = divided_times(times, graph, question.graph, question.split)
    timeline = step_timeline(
        graph,
        times,
        host,
        n_micro_steps=question.accumulation_steps,
        is_synchronous=question.device.kind == "cpu",
    )
    return DeviceTimes(graph=graph, micro_batch_sizes=sizes, times=times, timeline=timeline)


def micro_batches(question: Question, batch_sizes: Ints) -> Ints:
    """Samples of one pass of the fullest replica, for each batch of all devices."""
    return -(-batch_sizes // (question.n_replicas * question.accumulation_steps))


def steps_at(known: DeviceTimes, question: Question, batch_sizes: Ints) -> DeviceSteps:
    """Steps of a question that differs from the one timed in nothing but its place, strategy and batch size."""
    split, held_fraction = question.split, question.held_fraction
    micro = micro_batches(question, batch_sizes)
    slowest, usual = _stages(known, question)
    timeline = stage_timeline(_at(known, micro), question.stage_fraction, passes_fraction=slowest)
    step = LocalStep(
        graph=known.graph,
        timeline=timeline,
        host=question.timed_host,
        batch_sizes=micro,
        n_micro_steps=question.accumulation_steps,
        can_overlap=question.device.kind != "cpu",
        held_fraction=held_fraction,
        attention_s=_attention_s(known, micro) if split.context > 1 else 0.0,
        usual_stage=usual / slowest,
        gathers_ahead=question.has_transformer_engine,
    )
    if question.cluster is None:
        parallel = alone(step)
    elif split != WHOLE:
        parallel = model_parallel(
            split,
            step,
            question.graph,
            network_of(question.cluster),
            data_parallel=partial(synchronous, question.strategy),
        )
    else:
        parallel = parallel_step(
            question.strategy,
            step,
            network_of(question.cluster),
            waiting_fraction=question.device.waiting_fraction,
        )
    return DeviceSteps(
        question=question,
        batch_sizes=batch_sizes,
        timeline=timeline,
        parallel=parallel,
        input_wait_s=_input_wait_s(question, batch_sizes, parallel.step_s),
        log_sd=step_log_sd(timeline, parallel, question.device),
        is_covered=known.times.is_covered,
        method_warnings=known.times.warnings,
    )


def _input_wait_s(question: Question, batch_sizes: Ints, step_s: Floats) -> Floats:
    rate = question.input_samples_per_s
    return np.zeros(len(step_s)) if rate is None else np.maximum(batch_sizes / rate - step_s, 0.0)


def op_shares(known: DeviceTimes, question: Question) -> Floats:
    """How often one device does each op of a step: as often as there are passes, or less where it has a share."""
    parallel = steps_at(known, question, np.array([question.batch_size])).parallel
    is_update = known.graph.op_phase == Phase.OPTIMIZER
    of_update = question.stage_fraction * parallel.update_fraction
    shares: Floats = np.where(is_update, of_update, question.accumulation_steps * _stages(known, question)[0])
    return shares


def _stages(known: DeviceTimes, question: Question) -> tuple[float, float]:
    """What the slowest stage of a pipeline does of a pass, and what the others do: the last has head and loss."""
    if question.pipeline_parallel == 1:
        return 1.0, 1.0
    seconds = known.times.seconds[-1]
    is_pass = known.graph.op_phase != Phase.OPTIMIZER
    passes_s = float(seconds[is_pass].sum())
    head_s = float(seconds[is_pass & is_head_op(known.graph, question.graph)].sum())
    head = head_s / passes_s if passes_s > 0.0 else 0.0
    n_blocks = len(attention_outputs(question.graph))
    return question.split.slowest_stage(n_blocks, head), question.stage_fraction * (1.0 - head)


def _attention_s(known: DeviceTimes, micro_batch_sizes: Ints) -> Floats:
    """Of all attention of one pass."""
    is_attention = np.array([kind == OpKind.ATTENTION for kind in op_kinds(known.graph)], dtype=bool)
    rows = np.searchsorted(known.micro_batch_sizes, micro_batch_sizes)
    return known.times.seconds[rows][:, is_attention].sum(axis=1)


def _at(known: DeviceTimes, micro_batch_sizes: Ints) -> StepTimeline:
    if np.array_equal(known.micro_batch_sizes, micro_batch_sizes):
        return known.timeline
    timeline, rows = known.timeline, np.searchsorted(known.micro_batch_sizes, micro_batch_sizes)
    return replace(timeline, **{field.name: getattr(timeline, field.name)[rows] for field in fields(timeline)})
