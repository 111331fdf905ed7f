"""A step by phase, kind and bound: sums over its ops, however they are added up."""

import numpy as np
import pytest

import traincast as tc
from traincast.forecasting.by_kind import predicted_by_kind
from traincast.forecasting.device_times import device_times, op_shares
from traincast.planning.op_groups import op_groups
from traincast.trace.flop import op_flop
from traincast.trace.graph import Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.traffic import op_bytes

RUNS = [
    ("resnet18", "T4", {}),
    ("resnet18", "T4", {"method": "roofline"}),
    ("resnet18", "T4", {"method": "paleo", "optimizer": "adam"}),
    ("resnet18", "generic-cpu", {}),
    ("resnet18", "2x4xT4@10Gb/s", {"accumulation_steps": 2, "precision": "amp-fp16", "optimizer": "momentum"}),
    ("gpt2", "A100-SXM4-80GB", {"precision": "amp-bf16", "compiled": True}),
    ("gpt2", "4xA100-SXM4-80GB", {"pipeline_parallel": 4, "accumulation_steps": 4, "optimizer": "adamw"}),
    ("gpt2", "2xA100-SXM4-80GB", {"tensor_parallel": 2}),
]


def op_by_op(question):
    """Phase, kind, seconds, compute seconds, flop and bytes of every op that a device runs, in all passes."""
    micro = np.array([question.micro_batch_size])
    known = device_times(question, micro)
    graph, times = known.graph, known.times
    flop, moved = op_flop(graph, micro)[0], op_bytes(graph, micro)[0]
    shares = op_shares(known, question)
    for op, kind in enumerate(op_kinds(graph)):
        if kind not in (OpKind.VIEW, OpKind.ALLOCATION):
            phase = Phase(int(graph.op_phase[op]))
            n_times = shares[op]
            columns = (times.seconds[0, op], times.compute_s[0, op], flop[op], moved[op])
            told = OpKind.OPTIMIZER if phase == Phase.OPTIMIZER else kind
            yield phase.name.lower(), told.value, n_times * np.array(columns)


@pytest.mark.parametrize(("model", "on", "options"), RUNS)
def test_the_compute_of_a_step_is_that_of_its_ops(model, on, options):
    found = tc.forecast(model, on, 64, **options)
    seconds, compute_s = sum(columns for _, _, columns in op_by_op(found.question))[:2]
    shares = found.bound_s
    device_s = min(found.device_s, found.step_s - found.exposed_communication_s - found.input_wait_s)
    assert shares["compute"] == pytest.approx(device_s * compute_s / seconds, rel=1e-12)
    assert shares["memory"] == pytest.approx(device_s * (1 - compute_s / seconds), rel=1e-12)


def test_seconds_by_bound_of_a_roofline_are_what_they_were():
    """From the datasheet of a T4 alone, so that no fit moves them."""
    shares = tc.forecast("resnet50", "T4", 16, method="roofline").bound_s
    assert shares["compute"] == pytest.approx(0.0478216677451852, rel=1e-12)
    assert shares["memory"] == pytest.approx(0.0294134456250000, rel=1e-12)


@pytest.mark.parametrize(("model", "on", "options"), RUNS)
def test_kinds_and_groups_hold_every_op_once(model, on, options):
    question = tc.forecast(model, on, 64, **options).question
    expected: dict[tuple[str, str], np.ndarray] = {}
    for phase, kind, columns in op_by_op(question):
        expected[phase, kind] = expected.get((phase, kind), 0.0) + columns
    found = {
        (phase, kind): work for phase, kinds in predicted_by_kind(question).items() for kind, work in kinds.items()
    }
    assert set(found) == set(expected)
    for key, columns in expected.items():
        work = found[key]
        assert (work.seconds, work.compute_s, work.n_flop, work.n_bytes) == pytest.approx(tuple(columns), rel=1e-12)
    groups = op_groups(question)
    total = sum(expected.values())
    assert sum(group.work.device_s for group in groups) == pytest.approx(total[0], rel=1e-9)
    assert sum(group.work.n_flop for group in groups) == pytest.approx(total[2], rel=1e-12)
