"""Tensor and pipeline parallelism: what is divided, what is sent, and how long a pipeline idles."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.hardware.catalog import find_device
from traincast.hardware.host import find_host
from traincast.kernels.predictor import Traincast
from traincast.kernels.timeline import step_timeline
from traincast.scaling.blocks import activation_bytes, attention_outputs, is_divided_op, is_head_op, is_residual
from traincast.scaling.collectives import Wire
from traincast.scaling.groups import context_network, first_of, one_of_each, replica_network
from traincast.scaling.hierarchy import Network
from traincast.scaling.local_step import LocalStep
from traincast.scaling.model_parallel import divided_times, held_fractions, model_parallel, stage_timeline
from traincast.scaling.split import WHOLE, ModelSplit, Schedule, find_schedule
from traincast.scaling.strategies import CALL_S
from traincast.scaling.strategy import DDP, find_strategy, parallel_step, synchronous
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.lowering.fuse import fuse
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

A100 = find_device("A100-SXM4-40GB")
N_BYTES = 2 * 1024 * 768 * 4  # activations of two samples of GPT-2 in fp32


def graph_of(model, precision="fp32", target="cuda"):
    return lower(tc.load_model(model), target=target, settings=Settings(precision, "adamw"))


GPT2 = graph_of("gpt2")
SIZES = np.array([2])
TIMES = Traincast().op_times(GPT2, A100, SIZES, precision="fp32")


def stage(split, *, n_micro_steps=1):
    """The step of the fullest stage of GPT-2."""
    host, fraction = find_host("torch-eager"), split.stage_fraction(12)
    times = divided_times(TIMES, GPT2, GPT2, split)
    timeline = stage_timeline(step_timeline(GPT2, times, host, n_micro_steps=n_micro_steps), fraction)
    return LocalStep(
        graph=GPT2,
        timeline=timeline,
        host=host,
        batch_sizes=SIZES,
        n_micro_steps=n_micro_steps,
        held_fraction=fraction / split.tensor,
    )


def network(*placement, gb_per_s=100.0, latency_s=0.0):
    return Network(Wire(latency_s, gb_per_s * 1e9), Wire(latency_s, 1e9) if len(placement) > 1 else None, placement)


def run(split, net, *, n_micro_steps=1, spread=0.0):
    return model_parallel(split, stage(split, n_micro_steps=n_micro_steps), GPT2, net, spread=spread)


@pytest.mark.parametrize("target", ["cuda", "cpu"])
@pytest.mark.parametrize(
    ("model", "n_blocks", "n_elements"),
    [
        ("gpt2", 12, 1024 * 768),
        ("bert-base", 12, 384 * 768),
        ("llama-1b", 16, 2048 * 2048),
        ("vit_b_16", 12, 197 * 768),
    ],
)
def test_blocks_are_known_by_their_attention_fused_or_not(model, n_blocks, n_elements, target):
    found = activation_bytes(graph_of(model, target=target), np.array([1, 8]))
    assert found.tolist() == [[4.0 * n_elements] * n_blocks, [32.0 * n_elements] * n_blocks]


def test_autocast_halves_the_activations_that_are_sent():
    assert activation_bytes(graph_of("gpt2", "amp-bf16"), SIZES)[0].tolist() == [N_BYTES / 2] * 12


@pytest.mark.parametrize("model", ["resnet50", "lstm_lm", "mnist_cnn"])
def test_a_softmax_of_a_classifier_is_no_attention(model):
    assert not len(attention_outputs(graph_of(model)))


@pytest.mark.parametrize(("p", "m", "bubble"), [(1, 1, 0.0), (4, 4, 3 / 7), (2, 1, 0.5), (8, 56, 1 / 9)])
def test_the_bubble(p, m, bubble):
    assert ModelSplit(1, p).bubble_fraction(m) == pytest.approx(bubble)


@pytest.mark.parametrize(("p", "fraction"), [(1, 1.0), (4, 0.25), (5, 0.25), (7, 2 / 12), (12, 1 / 12)])
def test_the_fullest_stage_of_twelve_blocks(p, fraction):
    assert ModelSplit(1, p).stage_fraction(12) == pytest.approx(fraction)


def test_products_are_divided_and_the_residual_stream_is_not():
    kinds = np.array(op_kinds(GPT2))
    ratio = divided_times(TIMES, GPT2, GPT2, ModelSplit(4, sequence=False)).seconds[0] / np.where(
        TIMES.seconds[0] > 0, TIMES.seconds[0], 1
    )
    timed = TIMES.seconds[0] > 0
    for kind in (OpKind.GEMM, OpKind.ATTENTION, OpKind.OPTIMIZER):
        assert (ratio[timed & (kinds == kind)] == 0.25).all()
    assert (ratio[timed & (kinds == OpKind.NORMALISATION)] == 1).all()
    assert (ratio[timed & (kinds == OpKind.DROPOUT)] == 1).all()  # GPT-2 drops out of the residual stream only
    names = np.array([GPT2.name_of(op) for op in range(GPT2.n_ops)])
    assert (ratio[names == "aten.tanh"] == 0.25).all()  # of the GELU, four times as wide
    adds = timed & (names == "aten.add") & (GPT2.op_phase == Phase.FORWARD)
    assert (ratio[adds] == 1).sum() == 12 * 2 + 1  # two a block, and the positions


def test_a_compiled_step_is_divided_too():
    fused = fuse(GPT2)
    divided = is_divided_op(fused, is_residual(fused, attention_outputs(GPT2)))
    kinds = np.array(op_kinds(fused))
    assert divided[(kinds == OpKind.GEMM) | (kinds == OpKind.ATTENTION)].all()
    assert 0 < (~divided).sum() < fused.n_ops


def test_a_block_reduces_twice_forward_and_twice_backward():
    """Two devices send all of it each time: 48 times 6.3 MB at 1 MB a millisecond."""
    found = run(ModelSplit(tensor=2), network(2, gb_per_s=1.0))
    assert found.bytes_sent.tolist() == [48 * N_BYTES]
    assert found.exposed_s == pytest.approx(48 * (N_BYTES / 1e9 + CALL_S), rel=0.02)
    assert found.communication_s == pytest.approx(found.exposed_s)


def test_a_pipeline_of_four_fills_and_drains():
    """Four passes take seven slots; a slot sends activations on and their gradients back."""
    split, whole = ModelSplit(pipeline=4), stage(WHOLE, n_micro_steps=4).timeline
    found = run(split, network(4), n_micro_steps=4)
    for name in ("forward_s", "loss_s", "backward_s"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name) / 4 * 7 / 4)
    assert found.optimizer_s == pytest.approx(whole.optimizer_s / 4)
    send_s = N_BYTES / 100e9 + CALL_S
    assert found.exposed_s == pytest.approx(7 * 2 * send_s)
    assert found.communication_s == pytest.approx(4 * 2 * send_s)


def test_a_replica_that_spans_nodes_sends_between_them():
    split = ModelSplit(2, 2, sequence=False)  # both devices of a stage send all of it
    inside, between = (run(split, net).exposed_s for net in (network(4), network(2, 2)))
    assert between - inside == pytest.approx(2 * 2 * (2 * N_BYTES / 1e9 - N_BYTES / 100e9))  # 2 slots, 2 sends


@pytest.mark.parametrize(
    ("split", "placement", "n_sharing"),
    [
        (ModelSplit(2, 1), (4, 4), 2),
        (ModelSplit(4, 2), (1, 1), 8),
        (ModelSplit(8, 2), (1,), 8),
        (ModelSplit(1, 1), (8, 8), 1),
    ],
)
def test_replicas_of_two_nodes_of_eight(split, placement, n_sharing):
    found = replica_network(network(8, 8), split)
    assert found.placement == placement
    assert found.between.bytes_per_s == 1e9 / n_sharing


def test_replicas_reduce_their_part_of_the_gradients():
    """Two replicas on two devices each: half of the gradients each, beside the all-reduces of the blocks."""
    found = run(ModelSplit(tensor=2), network(4))
    whole = stage(WHOLE).gradients.total_bytes
    assert found.bytes_sent == pytest.approx(48 * N_BYTES + whole / 2)


@pytest.mark.parametrize("placement", [(4,), (2, 2)])
def test_an_undivided_model_is_data_parallelism_to_the_last_bit(placement):
    net, step = network(*placement), stage(WHOLE, n_micro_steps=2)
    found, known = model_parallel(WHOLE, step, GPT2, net), parallel_step(DDP, step, net)
    for name in known.__dataclass_fields__:
        assert np.array_equal(getattr(found, name), getattr(known, name))
    assert np.array_equal(divided_times(TIMES, GPT2, GPT2, WHOLE).seconds, TIMES.seconds)
    assert stage_timeline(step.timeline, 1.0) is step.timeline


@given(
    split=st.sampled_from([ModelSplit(2, 1), ModelSplit(1, 4), ModelSplit(4, 2), ModelSplit(2, 2)]),
    gb_per_s=st.floats(0.1, 1000),
    faster=st.floats(1, 100),
    n_micro_steps=st.integers(1, 8),
)
def test_a_faster_link_never_slows_a_step(split, gb_per_s, faster, n_micro_steps):
    slow, fast = (
        run(split, network(8, gb_per_s=rate), n_micro_steps=n_micro_steps).step_s
        for rate in (gb_per_s, gb_per_s * faster)
    )
    assert (fast <= slow * (1 + 1e-9)).all()


def test_more_latency_never_helps():
    few, many = (run(ModelSplit(4, 2), network(8, latency_s=latency_s)).step_s for latency_s in (1e-6, 1e-3))
    assert (many > few).all()


def test_each_device_holds_its_part():
    found = held_fractions(ModelSplit(2, 4, sequence=False), GPT2, 8)
    kind = GPT2.storage_kind
    assert set(found[kind == StorageKind.WEIGHT]) == {1 / 8}
    assert set(found[kind == StorageKind.OPTIMIZER_STATE]) == {1 / 8}
    assert set(found[kind == StorageKind.ACTIVATION]) == {1.0, 0.5}  # four micro-batches of a quarter of the blocks
    assert set(found[kind == StorageKind.INPUT]) == {1.0}


def test_fewer_micro_batches_than_stages_hold_less():
    few, many = (held_fractions(ModelSplit(1, 4), GPT2, m)[GPT2.storage_kind == StorageKind.ACTIVATION] for m in (2, 9))
    assert (few == 0.5).all()
    assert (many == 1.0).all()


def test_gradients_are_those_that_the_device_has():
    step = stage(WHOLE)
    assert replace(step, held_fraction=0.25).gradients.total_bytes == pytest.approx(step.gradients.total_bytes / 4)


def test_with_positions_divided_every_device_holds_half_of_each_activation():
    found = held_fractions(ModelSplit(2), GPT2, 1)
    assert set(found[GPT2.storage_kind == StorageKind.ACTIVATION]) == {0.5}
    assert set(held_fractions(ModelSplit(context=4), GPT2, 1)[GPT2.storage_kind == StorageKind.ACTIVATION]) == {0.25}


@pytest.mark.parametrize(
    ("name", "idle_slots", "in_flight"),
    [("1f1b", 3, 4), ("gpipe", 3, 16), ("interleaved:3", 1, 5), ("zero-bubble", 1, 4)],
)
def test_schedules_of_four_stages_and_sixteen_passes(name, idle_slots, in_flight):
    schedule = find_schedule(name)
    assert schedule.idle_slots(4) == pytest.approx(idle_slots)
    assert schedule.n_in_flight(4, 16) == pytest.approx(in_flight)
    assert ModelSplit(pipeline=4, schedule=schedule).bubble_fraction(16) == pytest.approx(
        idle_slots / (16 + idle_slots)
    )


def test_pieces_are_sent_more_often():
    split = ModelSplit(pipeline=4)
    once, thrice = (
        run(replace(split, schedule=schedule), network(4), n_micro_steps=4)
        for schedule in (Schedule(), find_schedule("interleaved:3"))
    )
    gradients = once.bytes_sent - 4 * 2 * N_BYTES
    assert thrice.bytes_sent - gradients == pytest.approx(3 * 4 * 2 * N_BYTES)
    assert thrice.bubble_s == pytest.approx(once.bubble_s / 3)


def test_pieces_compute_while_others_are_sent():
    split = ModelSplit(pipeline=4, schedule=find_schedule("interleaved:3"))
    hidden = run(split, network(4), n_micro_steps=4)
    assert hidden.exposed_s == pytest.approx(0.0)
    assert (hidden.communication_s > 0).all()
    slow = run(split, network(4, gb_per_s=0.01), n_micro_steps=4)
    sends_s = slow.communication_s / 4
    slot_s = (slow.forward_s + slow.loss_s + slow.backward_s) / split.n_slots(4)
    assert slow.exposed_s == pytest.approx(split.n_slots(4) * (sends_s - slot_s))


def test_beside_products_the_last_part_of_a_scatter_sticks_out():
    """Half of what two devices exchange is scattered, and each has half of that again left when its product ends."""
    split, net = ModelSplit(tensor=2, overlaps=True), network(2)
    found = run(split, net)
    assert found.communication_s == pytest.approx(run(replace(split, overlaps=False), net).communication_s)
    assert found.exposed_s == pytest.approx(found.communication_s / 4)


@pytest.mark.parametrize("graph", [GPT2, fuse(GPT2)], ids=["eager", "compiled"])
def test_the_head_is_three_products_and_the_loss(graph):
    is_head = is_head_op(graph, GPT2)
    kinds = np.array(op_kinds(graph))
    assert (is_head & (kinds == OpKind.GEMM)).sum() == 3
    assert is_head[graph.op_phase == Phase.LOSS].all()
    assert not is_head[graph.op_phase == Phase.OPTIMIZER].any()


def test_the_last_of_uneven_stages_has_fewer_blocks():
    """On 16 stages at most eight blocks, and seven beside a head of a block's size; on 6 stages 21 and the head."""
    assert ModelSplit(pipeline=16).slowest_stage(126, 1 / 127) == pytest.approx(8 / 127)
    assert ModelSplit(pipeline=6).slowest_stage(126, 1 / 127) == pytest.approx(22 / 127)


def test_weights_gathered_ahead_wait_for_the_first_unit_alone():
    step, net, zero1 = stage(WHOLE), network(8), find_strategy("zero1")
    after = parallel_step(zero1, step, net)
    ahead = parallel_step(zero1, replace(step, gathers_ahead=True), net)
    assert (ahead.exposed_s < after.exposed_s).all()
    assert ahead.communication_s == pytest.approx(after.communication_s)


def test_only_passes_wait_for_the_stage_with_the_head():
    whole = stage(WHOLE).timeline
    last = stage_timeline(whole, 0.25, passes_fraction=0.5)
    assert last.forward_s == pytest.approx(whole.forward_s / 2)
    assert last.optimizer_s == pytest.approx(whole.optimizer_s / 4)


def test_a_pipeline_fills_and_drains_at_the_pace_of_the_other_stages():
    """Four passes of the last stage, and three of stages that take half as long."""
    split = ModelSplit(pipeline=4)
    step = replace(stage(split, n_micro_steps=4), usual_stage=0.5)
    found = model_parallel(split, step, GPT2, network(4))
    assert found.forward_s == pytest.approx(step.timeline.forward_s * (4 + 3 / 2) / 4)


def test_a_ring_sends_its_keys_and_values_to_three_others_and_backward_twice_as_much_beside_them():
    keys = 2 * N_BYTES * 12  # of twelve blocks, each as large as what attention writes
    found = run(ModelSplit(context=4), network(4))
    gradients = 1.5 * stage(WHOLE).gradients.total_bytes  # an all-reduce among those who share the sequence
    assert found.bytes_sent == pytest.approx(3 * 3 * keys / 4 + gradients)
    assert (found.exposed_s < found.communication_s).all()


def test_ulysses_exchanges_queries_keys_values_and_outputs():
    streams = 4 * N_BYTES * 12
    found = run(ModelSplit(context=4, context_kind="ulysses"), network(4))
    gradients = 1.5 * stage(WHOLE).gradients.total_bytes
    assert found.bytes_sent == pytest.approx(2 * (3 / 4) * streams / 4 + gradients)


def test_sharded_replicas_divide_their_part_of_the_update():
    net, split = network(8), ModelSplit(tensor=2)
    whole = model_parallel(split, stage(split), GPT2, net)
    zero1 = partial(synchronous, find_strategy("zero1"))
    sharded = model_parallel(split, stage(split), GPT2, net, data_parallel=zero1)
    assert sharded.update_fraction == 1 / 4
    assert sharded.optimizer_s == pytest.approx(whole.optimizer_s / 4)


def test_hybrid_shards_are_gathered_inside_a_node_and_reduced_between_nodes():
    net, step = network(4, 4), stage(WHOLE)
    total = step.gradients.total_bytes
    hybrid, sharded = (parallel_step(find_strategy(name), step, net) for name in ("hsdp:4", "fsdp"))
    assert hybrid.bytes_sent == pytest.approx(3 * total * 3 / 4 + total / 4)  # the last: of a quarter, between two
    assert sharded.bytes_sent == pytest.approx(3 * total * 7 / 8)
    assert (hybrid.communication_s < sharded.communication_s).all()


def test_a_device_with_others_in_its_node_has_its_part_of_the_port():
    assert one_of_each(network(8, 8), 8).between.bytes_per_s == 1e9 / 8
    assert first_of(network(8, 8), 8).placement == (8,)
    assert context_network(network(8, 8), ModelSplit(tensor=2, context=8)).placement == (4, 4)
