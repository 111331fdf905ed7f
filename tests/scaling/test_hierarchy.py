"""Collectives over devices in nodes: known answers, and where they must agree with the flat ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.scaling import collectives, hierarchy
from traincast.scaling.collectives import Wire, best_all_reduce
from traincast.scaling.hierarchy import Network
from traincast.units import GIB

INSIDE, BETWEEN = Wire(0.01, 4 * GIB), Wire(0.1, GIB)
EVEN = Network(INSIDE, BETWEEN, (4, 4))
UNEVEN = Network(INSIDE, BETWEEN, (1, 3))
OPERATIONS = [hierarchy.all_reduce, hierarchy.reduce_scatter, hierarchy.all_gather, hierarchy.broadcast]
PLACEMENTS = st.lists(st.integers(1, 8), min_size=1, max_size=6).map(tuple)
BYTES = st.integers(0, 2**36)


def split(cost):
    return pytest.approx((cost.inside.seconds, cost.between.seconds))


def sent_gib(cost):
    return pytest.approx((cost.inside.bytes_sent / GIB, cost.between.bytes_sent / GIB))


@pytest.mark.parametrize(
    ("network", "algorithm", "seconds", "gib"),
    [
        # 14 hops, 2 of them between; 1.75 GiB leave each node through its one port.
        (EVEN, "ring", (12 * 0.01, 2 * 0.1 + 1.75), (1.75, 1.75)),
        # 2 levels inside, 1 between, up and down; 2 GiB through the port.
        (EVEN, "double-tree", (4 * 0.01, 2 * 0.1 + 2.0), (2.0, 2.0)),
        # Inside 1.5 GiB at 4 GiB/s; between, 4 shards of a quarter share the port: 1 GiB in all.
        (EVEN, "hierarchical", (6 * 0.01 + 0.375, 2 * 0.1 + 1.0), (1.5, 0.25)),
        (UNEVEN, "ring", (4 * 0.01, 2 * 0.1 + 1.5), (1.5, 1.5)),
        # To the leader of the three and back: twice 2 hops and 1 GiB at 4 GiB/s.
        (UNEVEN, "hierarchical", (4 * 0.01 + 0.5, 2 * 0.1 + 1.0), (2.0, 1.0)),
    ],
)
def test_all_reduce_of_one_gibibyte(network, algorithm, seconds, gib):
    cost = hierarchy.all_reduce(GIB, network, algorithm)
    assert seconds == split(cost)
    assert gib == sent_gib(cost)
    assert cost.seconds == pytest.approx(sum(seconds))
    assert cost.algorithm == algorithm


@pytest.mark.parametrize("operation", [hierarchy.reduce_scatter, hierarchy.all_gather])
def test_half_an_all_reduce_costs_half(operation):
    assert split(operation(GIB, EVEN, "ring")) == (6 * 0.01, 0.1 + 0.875)
    assert split(operation(GIB, EVEN, "hierarchical")) == (3 * 0.01 + 0.1875, 0.1 + 0.5)
    assert sent_gib(operation(GIB, EVEN, "hierarchical")) == (0.75, 0.125)


@pytest.mark.parametrize("operation", [hierarchy.reduce_scatter, hierarchy.all_gather])
def test_the_leader_of_the_larger_node_moves_the_larger_share(operation):
    # Through the leader: 1 GiB over 2 hops at 4 GiB/s, and two quarters of a GiB of its own node's 3/4; between, 3/4.
    assert split(operation(GIB, UNEVEN, "hierarchical")) == (2 * 0.01 + 0.25 + 2 * 0.01 + 0.125, 0.1 + 0.75)


def test_a_broadcast_passes_every_link_once():
    assert split(hierarchy.broadcast(GIB, EVEN, "ring")) == (6 * 0.01, 0.1 + 1.0)
    assert split(hierarchy.broadcast(GIB, EVEN, "hierarchical")) == (3 * 0.01 + 0.25, 0.1 + 1.0)


def test_a_ring_is_as_slow_as_its_slowest_link_wherever_that_is():
    slow_inside = Network(Wire(0.0, GIB), Wire(0.0, 4 * GIB), (4, 4))
    assert split(hierarchy.all_reduce(GIB, slow_inside, "ring")) == (1.75, 0.0)
    assert sent_gib(hierarchy.all_reduce(GIB, slow_inside, "ring")) == (1.75, 1.75)


def test_devices_behind_one_host_bridge_share_it():
    shared = Network(Wire(0.01, 4 * GIB), BETWEEN, (4,), inside_is_shared=True)
    assert hierarchy.all_reduce(GIB, shared, "ring").seconds == pytest.approx(6 * 0.01 + 1.5)
    alone = Network(Wire(0.01, 4 * GIB), BETWEEN, (1, 1), inside_is_shared=True)
    assert split(hierarchy.all_reduce(GIB, alone, "ring")) == (0.0, 2 * 0.1 + 1.0)


def test_every_device_of_a_node_adds_up_its_own_shard():
    adding = Network(Wire(0.0, GIB, GIB), Wire(0.0, GIB, GIB), (4, 4))
    # Inside 3/4 GiB by each; between, half of its quarter.
    extra_s = hierarchy.all_reduce(GIB, adding, "hierarchical").seconds - (1.5 + 1.0)
    assert extra_s == pytest.approx(0.75 + 0.125)
    assert hierarchy.all_reduce(GIB, adding, "ring").seconds == pytest.approx(1.75 + 0.875)


def test_a_cluster_with_a_slow_network_goes_hierarchical_and_small_messages_by_tree():
    sizes = np.array([1.0, GIB])
    far = Network(Wire(1e-5, 4 * GIB), Wire(1e-3, GIB), (8, 8, 8, 8))
    assert hierarchy.all_reduce(sizes, far).algorithm.tolist() == ["double-tree", "hierarchical"]


@given(BYTES, st.integers(1, 16))
def test_on_one_node_the_network_is_flat(n_bytes, n):
    node = Network(INSIDE, None, (n,))
    for operation, same in (
        (hierarchy.all_reduce, collectives.ring_all_reduce),
        (hierarchy.reduce_scatter, collectives.ring_reduce_scatter),
        (hierarchy.all_gather, collectives.ring_all_gather),
        (hierarchy.broadcast, collectives.ring_broadcast),
    ):
        expected = same(n_bytes, n, INSIDE)
        for algorithm in ("ring", "hierarchical"):
            cost = operation(n_bytes, node, algorithm)
            assert cost.inside.seconds == pytest.approx(expected.seconds)
            assert cost.inside.bytes_sent == pytest.approx(expected.bytes_sent)
            assert cost.inside.n_messages == expected.n_messages
            assert (cost.between.seconds, cost.between.bytes_sent, cost.between.n_messages) == (0, 0, 0)
    tree = hierarchy.all_reduce(n_bytes, node, "double-tree")
    assert tree.seconds == pytest.approx(collectives.double_tree_all_reduce(n_bytes, n, INSIDE).seconds)


@given(BYTES, st.integers(2, 16))
def test_with_one_device_a_node_only_the_network_counts(n_bytes, n):
    spread = Network(INSIDE, BETWEEN, (1,) * n)
    _, expected = best_all_reduce(n_bytes, n, BETWEEN)
    for algorithm in ("best", "hierarchical"):
        cost = hierarchy.all_reduce(n_bytes, spread, algorithm)
        assert cost.between.seconds == pytest.approx(expected.seconds)
        assert (cost.inside.seconds, cost.inside.bytes_sent, cost.inside.n_messages) == (0, 0, 0)


@pytest.mark.parametrize("operation", OPERATIONS)
@given(st.lists(BYTES, min_size=1, max_size=5), PLACEMENTS)
def test_the_best_is_no_slower_than_any(operation, sizes, placement):
    network = Network(INSIDE, BETWEEN, placement)
    best = operation(np.array(sizes), network)
    each = [operation(np.array(sizes), network, name).seconds for name in ("ring", "hierarchical")]
    assert (best.seconds <= np.min(each, axis=0)).all()
    for i, name in enumerate(best.algorithm):
        assert operation(sizes[i], network, name).seconds == best.seconds[i]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("is_shared", [False, True])
@given(n_bytes=BYTES, placement=PLACEMENTS)
def test_a_faster_link_or_fewer_bytes_is_never_slower(operation, is_shared, n_bytes, placement):
    base_s = operation(n_bytes, Network(INSIDE, BETWEEN, placement, is_shared)).seconds
    assert operation(n_bytes, Network(Wire(0.01, 8 * GIB), BETWEEN, placement, is_shared)).seconds <= base_s
    assert operation(n_bytes, Network(INSIDE, Wire(0.05, GIB), placement, is_shared)).seconds <= base_s
    assert operation(n_bytes // 2, Network(INSIDE, BETWEEN, placement, is_shared)).seconds <= base_s
    assert operation(n_bytes, Network(INSIDE, BETWEEN, placement)).seconds <= base_s


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: Network(INSIDE, BETWEEN, ()),
            "A placement should list the devices of each node, each at least 1, not ().",
        ),
        (lambda: Network(INSIDE, BETWEEN, (4, 0)), "A placement should list the devices of each node"),
        (lambda: Network(INSIDE, None, (4, 4)), "2 nodes need a link between them: name one."),
        (
            lambda: hierarchy.all_gather(1, EVEN, "tree"),
            "No algorithm named 'tree'. Known: ring, hierarchical.",
        ),
        (
            lambda: hierarchy.all_reduce(-1, EVEN),
            "A message size should be a finite number of bytes of at least 0, not -1.",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(call, words):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(words)


@pytest.mark.parametrize("name", ["tree", "butterfly", "recursive-doubling", "master"])
def test_one_node_can_use_every_flat_algorithm(name):
    one_node = Network(INSIDE, None, (8,))
    cost = hierarchy.all_reduce(np.array([0, GIB]), one_node, name)
    flat = collectives.all_reduce(np.array([0, GIB]), 8, INSIDE, algorithm=name)
    assert cost.seconds == pytest.approx(flat.seconds)
    assert cost.inside.bytes_sent == pytest.approx(flat.bytes_sent)
    assert cost.between.seconds == pytest.approx(0)
    with pytest.raises(InputError, match=f"'{name}' works inside a single node only, not across 2"):
        hierarchy.all_reduce(GIB, EVEN, name)


def test_the_best_is_chosen_among_what_libraries_use():
    # Recursive doubling would need the fewest latencies for a small vector.
    small = hierarchy.all_reduce(8, Network(INSIDE, None, (8,)))
    assert small.algorithm == "double-tree"
    assert hierarchy.all_reduce(8, Network(INSIDE, None, (8,)), "recursive-doubling").seconds < small.seconds
