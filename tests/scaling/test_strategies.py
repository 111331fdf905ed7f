"""Steps on many devices: what each strategy sends, hides and waits for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.hardware.cluster_text import find_cluster
from traincast.hardware.host import find_host
from traincast.kernels.predictor import Traincast
from traincast.kernels.timeline import step_timeline
from traincast.scaling.collectives import Wire
from traincast.scaling.gradients import Buckets, buckets_of
from traincast.scaling.hierarchy import Network
from traincast.scaling.local_step import LocalStep
from traincast.scaling.overlap import overlap
from traincast.scaling.stragglers import SPREAD, expected_largest, waiting_s, waiting_share
from traincast.scaling.strategies import CALL_S, alone, ddp, mirrored
from traincast.scaling.strategy import find_strategy, network_of, parallel_step
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

T4 = find_device("T4")
NAMES = ("ddp", "dp", "mirrored", "ps:2", "zero1", "zero2", "fsdp")


def local_step(model="resnet50", batches=(8, 32), *, n_micro_steps=1, optimizer="sgd"):
    graph, host = lower(tc.load_model(model), settings=Settings("fp32", optimizer)), find_host("torch-eager")
    sizes = np.array(batches)
    times = Traincast().op_times(graph, T4, sizes, precision="fp32")
    timeline = step_timeline(graph, times, host, n_micro_steps=n_micro_steps)
    return LocalStep(graph=graph, timeline=timeline, host=host, batch_sizes=sizes, n_micro_steps=n_micro_steps)


STEP = local_step()
N_BYTES = 4 * 25_557_032


def one_node(n, gb_per_s=10.0, latency_s=5e-6):
    return Network(Wire(latency_s, gb_per_s * 1e9), None, (n,))


def run(name, network, step=STEP):
    return parallel_step(find_strategy(name), step, network)


def test_what_the_loader_brings_and_the_loss_reads_is_known():
    assert STEP.input_bytes.tolist() == [4 * n * 3 * 224 * 224 for n in (8, 32)]
    assert STEP.output_bytes.tolist() == [4 * n * 1000 for n in (8, 32)]
    assert STEP.weight_bytes == N_BYTES


def test_buckets_wait_for_their_gradients_and_for_each_other():
    """Ready at 1, 2 and 5 s, 2 s each on the link, backward ends at 6 s: they end at 3, 5 and 7 s."""
    n_ops = STEP.graph.n_ops
    last = int(np.flatnonzero(STEP.graph.op_phase == 2)[-1])
    finished = np.zeros((2, n_ops))
    finished[:, [10, 20, 30, last]] = [1.0, 2.0, 5.0, 6.0]
    step = replace(STEP, timeline=replace(STEP.timeline, finished_s=finished))
    found = overlap(step, Buckets(np.ones(3), np.array([10, 20, 30])), np.array([2.0, 2.0, 2.0]))
    assert found.exposed_s.tolist() == [1.0, 1.0]
    assert found.communication_s.tolist() == [6.0, 6.0]


def test_ddp_sends_what_a_ring_does_and_hides_what_backward_allows():
    found = ddp(STEP, one_node(4), algorithm="ring")
    assert found.bytes_sent == pytest.approx([1.5 * N_BYTES] * 2)
    assert (found.exposed_s < found.communication_s).all()
    assert (found.exposed_s > 0).all()  # the first layer's gradients are ready when backward ends
    assert found.compute_s == pytest.approx(alone(STEP).compute_s)


def test_with_a_fast_link_only_the_last_call_and_the_slowest_device_are_left():
    found = run("ddp", one_node(8, gb_per_s=1e9, latency_s=0.0))
    assert found.exposed_s == pytest.approx(CALL_S + waiting_s(8, found.compute_s), rel=0.01)


def test_waiting_that_was_measured_takes_the_place_of_the_expected():
    network = one_node(8, gb_per_s=1e9, latency_s=0.0)
    found = parallel_step(find_strategy("ddp"), STEP, network, waiting_fraction=0.2)
    assert found.exposed_s == pytest.approx(CALL_S + 0.2 * found.compute_s, rel=0.01)


@pytest.mark.parametrize(("model", "n_messages_of_buffers"), [("cifar_resnet18", 2), ("vgg11", 0)])
def test_processes_on_a_cpu_hide_nothing_and_wait_for_the_statistics_of_batch_norm(model, n_messages_of_buffers):
    """Between two, a bucket takes the 2 latencies of a ring, and a message of buffers one."""
    step = replace(local_step(model, (8,)), can_overlap=False)
    found = ddp(step, one_node(2, gb_per_s=1e9, latency_s=1e-3), algorithm="ring")
    n_buckets = len(buckets_of(step.gradients).bytes)
    assert found.exposed_s == pytest.approx(n_buckets * (2e-3 + CALL_S) + n_messages_of_buffers * 1e-3, rel=0.01)


def test_with_a_slow_link_all_that_backward_does_not_hide_sticks_out():
    found = ddp(STEP, one_node(2, gb_per_s=0.01), algorithm="ring")
    assert found.communication_s == pytest.approx(N_BYTES / 1e7, rel=0.01)
    assert (found.communication_s - found.exposed_s < STEP.timeline.backward_s).all()


def test_mirrored_hides_nothing():
    found = mirrored(STEP, one_node(2), algorithm="ring")
    assert found.exposed_s == pytest.approx([N_BYTES / 10e9 + 2 * 5e-6 + CALL_S] * 2)
    assert found.communication_s == pytest.approx(found.exposed_s)


@pytest.mark.parametrize(("n", "n_micro_steps", "added_s"), [(1, 1, 0.0), (2, 1, 1.0), (4, 1, 3.0), (2, 3, 3.0)])
def test_mirrored_calls_once_a_replica_and_pass_where_ddp_has_a_process_each(n, n_micro_steps, added_s):
    step = replace(STEP, n_micro_steps=n_micro_steps, host=replace(STEP.host, call_s=1.0))
    assert mirrored(step, one_node(n)).compute_s - alone(step).compute_s == pytest.approx([added_s] * 2)
    assert ddp(step, one_node(n)).compute_s == pytest.approx(alone(step).compute_s)


def test_data_parallel_passes_everything_through_one_device_and_one_interpreter():
    """At batch 1 a forward pass of four replicas is dispatched by one thread at a time."""
    small = local_step(batches=(1,))
    alone_s = alone(small).forward_s
    fast = one_node(8, gb_per_s=1e6, latency_s=0.0)
    assert run("dp", fast, small).forward_s > 1.2 * alone_s
    assert run("ddp", fast, small).forward_s == pytest.approx(alone_s)
    assert (run("dp", one_node(4)).step_s > run("ddp", one_node(4)).step_s).all()


def test_sharding_everything_sends_half_as_much_again():
    assert run("fsdp", one_node(4)).bytes_sent == pytest.approx(1.5 * run("ddp", one_node(4)).bytes_sent)
    assert run("zero1", one_node(4)).bytes_sent == pytest.approx(run("ddp", one_node(4)).bytes_sent)


def test_sharded_optimizers_update_a_share_each():
    adam = local_step(batches=(8,), optimizer="adam")
    assert run("zero1", one_node(4), adam).optimizer_s == pytest.approx(adam.timeline.optimizer_s / 4)


def test_synchronous_servers_push_update_and_pull():
    """Four workers, two servers: half of the bytes from each worker, twice the bytes through each server."""
    found = run("ps:2", one_node(4, latency_s=0.0))
    way_s = 2 * N_BYTES / 10e9
    assert found.communication_s == pytest.approx([2 * way_s + N_BYTES / 2 * 3 / 20e9] * 2, rel=1e-6)
    assert found.optimizer_s.tolist() == [0.0, 0.0]


def test_asynchronous_workers_wait_for_nobody():
    slow = one_node(4, gb_per_s=0.5)
    assert (run("ps-async:4", slow).step_s < run("ps:4", slow).step_s).all()


def test_accumulated_gradients_are_reduced_once_but_sharded_weights_gathered_each_time():
    four = local_step(n_micro_steps=4)
    assert run("ddp", one_node(4), four).bytes_sent == pytest.approx(run("ddp", one_node(4)).bytes_sent)
    assert (run("fsdp", one_node(4), four).bytes_sent > 2 * run("fsdp", one_node(4)).bytes_sent).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_make_the_step(name):
    found = run(name, one_node(4))
    parts = found.forward_s + found.loss_s + found.backward_s + found.optimizer_s + found.exposed_s
    assert found.step_s == pytest.approx(parts)
    assert (found.exposed_s >= 0).all()


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("ps")])
def test_one_device_alone_exchanges_nothing(name):
    found = run(name, one_node(1))
    assert found.step_s == pytest.approx(STEP.timeline.step_s)
    assert found.bytes_sent.tolist() == [0.0, 0.0]


@given(
    st.sampled_from(NAMES),
    st.sampled_from([(2,), (3,), (8,), (4, 4), (1, 3)]),
    st.floats(0.1, 100.0),
    st.floats(1.01, 10.0),
)
def test_a_faster_link_is_never_slower(name, placement, gb_per_s, factor):
    if name in ("dp", "mirrored") and len(placement) > 1:
        return
    slow, fast = (
        Network(Wire(5e-6, rate * 1e9), Wire(3e-5, rate * 1e9), placement) for rate in (gb_per_s, gb_per_s * factor)
    )
    assert (run(name, fast).step_s <= run(name, slow).step_s * (1 + 1e-9)).all()


@pytest.mark.parametrize("n", [2, 8, 64])
def test_the_slowest_of_many_is_expected_where_numbers_drawn_at_random_put_it(n):
    drawn = np.random.default_rng(0).standard_normal((20_000, n)).max(axis=1).mean()
    assert expected_largest(n) == pytest.approx(drawn, rel=0.02)
    assert waiting_share(n) == pytest.approx(SPREAD * expected_largest(n))
    assert waiting_share(1) == 0.0


def test_over_a_long_step_what_differs_from_moment_to_moment_averages_out():
    short, long = waiting_s(8, np.array([0.1, 30.0]))
    assert short == pytest.approx(0.1 * waiting_share(8))
    assert long == pytest.approx(30.0 * waiting_share(8) / 10)  # a hundred times the length that was measured


def test_a_cluster_becomes_the_links_that_its_devices_use():
    both = network_of(find_cluster("2x4xT4@50Gb/s"))
    assert both.placement == (4, 4)
    assert both.between is not None
    assert network_of(find_cluster("2x4xT4@50Gb/s").take(3)).between is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("horovod", "No strategy named 'horovod'. Known: ddp, dp, mirrored, ps:P"),
        ("ps:0", "No strategy named 'ps:0'."),
        ("ps", "No strategy named 'ps'."),
        ("ddpp", "Close names: ddp"),
    ],
)
def test_an_unknown_strategy_is_named(name, words):
    with pytest.raises(InputError) as caught:
        find_strategy(name)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_process_cannot_span_nodes():
    with pytest.raises(
        InputError, match=r"^The strategy 'dp' runs in one process and cannot span 2 nodes: take 'ddp'\.$"
    ):
        run("dp", Network(Wire(5e-6, 1e10), Wire(3e-5, 1e9), (4, 4)))
