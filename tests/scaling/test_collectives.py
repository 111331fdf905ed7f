"""Collectives on a flat network: known answers, laws, and real messages passed one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.scaling import collectives
from traincast.scaling.collectives import ALL_REDUCE, Cost, Wire, best_all_reduce
from traincast.units import GIB

IDEAL = Wire(0.0, GIB)  # one GiB a second, no latency
OTHER_COSTS = [  # name; seconds, latencies and GiB sent for one GiB among four over one GiB a second
    ("ring_reduce_scatter", 0.75, 3, 0.75),
    ("ring_all_gather", 0.75, 3, 0.75),
    ("tree_broadcast", 2.0, 2, 2.0),
    ("ring_broadcast", 1.0, 3, 1.0),
    ("tree_reduce", 2.0, 2, 1.0),
    ("ring_reduce", 1.0, 3, 1.0),
    ("scatter", 0.75, 3, 0.75),
    ("gather", 0.75, 3, 0.25),  # the root's port is the busiest, and it receives
    ("all_to_all", 0.75, 3, 0.75),
]
OTHERS = {name: getattr(collectives, name) for name, *_ in OTHER_COSTS}
ALL = pytest.mark.parametrize("collective", [*ALL_REDUCE.values(), *OTHERS.values()])
BYTES = st.integers(0, 2**40)
COUNTS = st.integers(1, 300)


@pytest.mark.parametrize(
    ("algorithm", "n", "seconds", "n_messages", "bytes_sent"),
    [
        ("ring", 2, 1.0, 2, 1.0),
        ("ring", 4, 1.5, 6, 1.5),
        ("ring", 8, 1.75, 14, 1.75),
        ("tree", 2, 2.0, 2, 1.0),
        ("tree", 8, 6.0, 6, 3.0),  # the root sends to each of its 3 children
        ("tree", 5, 6.0, 6, 3.0),  # a tree of 5 is as high as one of 8
        ("double-tree", 8, 2.0, 6, 2.0),
        ("double-tree", 5, 2.0, 6, 2.0),
        ("butterfly", 4, 1.5, 4, 1.5),
        ("butterfly", 8, 1.75, 6, 1.75),
        ("butterfly", 6, 3.5, 6, 2.5),  # 4 of them take 1.5, folding two in and out 1 each
        ("recursive-doubling", 8, 3.0, 3, 3.0),
        ("recursive-doubling", 6, 4.0, 4, 3.0),
        ("master", 2, 2.0, 2, 1.0),
        ("master", 4, 6.0, 6, 3.0),
    ],
)
def test_one_gibibyte_all_reduced_over_one_gibibyte_per_second(algorithm, n, seconds, n_messages, bytes_sent):
    cost = collectives.all_reduce(GIB, n, IDEAL, algorithm=algorithm)
    assert (cost.seconds, cost.n_messages, cost.bytes_sent / GIB) == (seconds, n_messages, bytes_sent)
    slow = collectives.all_reduce(GIB, n, Wire(0.25, GIB), algorithm=algorithm)
    assert slow.seconds == seconds + 0.25 * n_messages


@pytest.mark.parametrize(("collective", "seconds", "n_messages", "bytes_sent"), OTHER_COSTS)
def test_other_collectives_of_one_gibibyte_among_four(collective, seconds, n_messages, bytes_sent):
    cost = OTHERS[collective](GIB, 4, IDEAL)
    assert (cost.seconds, cost.n_messages, cost.bytes_sent / GIB) == (seconds, n_messages, bytes_sent)
    assert OTHERS[collective](GIB, 4, Wire(0.25, GIB)).seconds == seconds + 0.25 * n_messages


def test_a_message_is_a_latency_and_its_bytes():
    cost = collectives.send(3 * GIB, Wire(0.5, GIB))
    assert (cost.seconds, cost.bytes_sent, cost.n_messages) == (3.5, 3 * GIB, 1)


@pytest.mark.parametrize(
    ("algorithm", "n", "added_gib"),
    [
        ("ring", 4, 0.75),
        ("tree", 8, 3.0),
        ("double-tree", 8, 1.0),
        ("butterfly", 4, 0.75),
        ("butterfly", 6, 1.75),
        ("recursive-doubling", 8, 3.0),
        ("recursive-doubling", 6, 3.0),
        ("master", 4, 3.0),
    ],
)
def test_adding_up_takes_time_where_a_rate_of_reduction_is_given(algorithm, n, added_gib):
    adding = Wire(0.0, GIB, reduce_bytes_per_s=GIB / 2)
    extra_s = ALL_REDUCE[algorithm](GIB, n, adding).seconds - ALL_REDUCE[algorithm](GIB, n, IDEAL).seconds
    assert extra_s == pytest.approx(2 * added_gib)


@ALL
def test_one_process_alone_costs_nothing(collective):
    cost = collective(GIB, 1, Wire(0.5, GIB, GIB))
    assert (cost.seconds, cost.bytes_sent, cost.n_messages) == (0, 0, 0)


@ALL
@given(n_bytes=BYTES, more=BYTES, n=COUNTS)
def test_more_bytes_more_latency_or_less_bandwidth_is_never_faster(collective, n_bytes, more, n):
    base_s = collective(n_bytes, n, Wire(1e-5, 1e9)).seconds
    assert collective(n_bytes + more, n, Wire(1e-5, 1e9)).seconds >= base_s
    assert collective(n_bytes, n, Wire(2e-5, 1e9)).seconds >= base_s
    assert collective(n_bytes, n, Wire(1e-5, 9e8)).seconds >= base_s
    assert collective(n_bytes, n, Wire(1e-5, 1e9, 1e10)).seconds >= base_s


@given(BYTES, COUNTS)
def test_a_ring_sends_twice_the_vector_less_one_share_and_nothing_sends_less(n_bytes, n):
    sent = ALL_REDUCE["ring"](n_bytes, n, IDEAL).bytes_sent
    assert sent == pytest.approx(2 * n_bytes * (n - 1) / n)
    for name in ("tree", "double-tree", "butterfly", "recursive-doubling", "master"):
        other = ALL_REDUCE[name](n_bytes, n, IDEAL)
        assert other.bytes_sent >= sent * (1 - 1e-12)
        assert other.seconds >= ALL_REDUCE["ring"](n_bytes, n, IDEAL).seconds * (1 - 1e-12)


@given(BYTES, st.integers(0, 12))
def test_for_powers_of_two_a_butterfly_is_a_ring_with_fewer_messages(n_bytes, exponent):
    ring, butterfly = (ALL_REDUCE[name](n_bytes, 2**exponent, IDEAL) for name in ("ring", "butterfly"))
    assert butterfly.bytes_sent == pytest.approx(ring.bytes_sent)
    assert (butterfly.n_messages, ring.n_messages) == (2 * exponent, 2 * (2**exponent - 1))


@given(st.lists(BYTES, min_size=1, max_size=8), COUNTS, st.floats(0, 1), st.floats(1.0, 1e12))
def test_the_best_is_the_fastest_of_those_it_chooses_among(sizes, n, latency_s, bytes_per_s):
    wire = Wire(latency_s, bytes_per_s)
    names, best = best_all_reduce(np.array(sizes), n, wire, among=ALL_REDUCE)
    every_s = {name: collective(np.array(sizes), n, wire).seconds for name, collective in ALL_REDUCE.items()}
    assert (best.seconds == np.min(list(every_s.values()), axis=0)).all()
    assert [every_s[name][i] for i, name in enumerate(names)] == best.seconds.tolist()


def test_small_messages_go_by_tree_and_large_ones_by_ring():
    # 8 processes, 1 ms, 1 GB/s: 6 ms + 2N against 14 ms + 1.75N; they meet at N = 32 MB.
    sizes = np.array([1e3, 31e6, 33e6, 1e9])
    names, cost = best_all_reduce(sizes, 8, Wire(1e-3, 1e9))
    assert names.tolist() == ["double-tree", "double-tree", "ring", "ring"]
    assert cost.seconds == pytest.approx([6.002e-3, 68e-3, 71.75e-3, 1.764])
    assert cost.n_messages.tolist() == [6, 6, 14, 14]
    assert cost.bytes_sent == pytest.approx([2e3, 62e6, 57.75e6, 1.75e9])


def test_with_whole_vectors_allowed_the_smallest_messages_go_by_recursive_doubling():
    name, _ = best_all_reduce(1e3, 8, Wire(1e-3, 1e9), among=ALL_REDUCE)
    assert name == "recursive-doubling"


@ALL
def test_sizes_counts_and_wires_broadcast(collective):
    sizes, counts = np.array([0.0, 1e3, 1e9])[:, None], np.array([1, 2, 3, 16])
    wire = Wire(np.array([1e-6, 1e-5])[:, None, None], 1e9)
    whole = collective(sizes, counts, wire)
    assert whole.seconds.shape == whole.bytes_sent.shape == whole.n_messages.shape == (2, 3, 4)
    single = collective(1e9, 3, Wire(1e-5, 1e9))
    assert (whole.seconds[1, 2, 2], whole.bytes_sent[1, 2, 2]) == (single.seconds, single.bytes_sent)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Wire(-1.0, 1e9), "A latency should be a finite number of seconds of at least 0, not -1.0."),
        (lambda: Wire(np.nan, 1e9), "A latency should be a finite number"),
        (lambda: Wire(0.0, 0.0), "A bandwidth should be a finite number of bytes per second above 0, not 0.0."),
        (lambda: Wire(0.0, np.array([1e9, np.inf])), "A bandwidth should be a finite number"),
        (lambda: Wire(0.0, 1e9, 0.0), "A reduction rate should be above 0 bytes per second, not 0.0."),
        (
            lambda: collectives.send(-1, IDEAL),
            "A message size should be a finite number of bytes of at least 0, not -1.",
        ),
        (lambda: collectives.ring_all_reduce(np.inf, 2, IDEAL), "A message size should be a finite number of bytes"),
        (
            lambda: collectives.scatter(1, 0, IDEAL),
            "The number of processes should be a whole number of at least 1, not 0.",
        ),
        (lambda: collectives.gather(1, 2.5, IDEAL), "The number of processes should be a whole number"),
        (
            lambda: collectives.all_reduce(1, 2, IDEAL, algorithm="rings"),
            "No algorithm named 'rings'. Close names: ring. Known: ring, tree, double-tree, butterfly, "
            "recursive-doubling, master.",
        ),
        (lambda: best_all_reduce(1, 2, IDEAL, among=["ring", "x"]), "No algorithm named 'x'. Known: ring, tree"),
        (lambda: best_all_reduce(1, 2, IDEAL, among=[]), "No algorithm to choose from. Known algorithms: ring"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(call, words):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(words)


def test_costs_add_up_one_after_the_other():
    total = Cost(np.float64(1), np.float64(10), np.float64(2)) + Cost(np.float64(3), np.float64(5), np.float64(1))
    assert (total.seconds, total.bytes_sent, total.n_messages) == (4, 15, 3)


class Machines:
    """Real vectors, and ports that carry one message in and one out at a step."""

    def __init__(self, n, n_elements):
        self.vectors = np.random.default_rng(n).integers(0, 1000, (n, n_elements)).astype(float)
        self.total = self.vectors.sum(axis=0)
        self.sent = np.zeros(n)
        self.largest = []  # the largest message of every step: the others wait for it

    def step(self, messages):
        """Each (source, destination, piece, is_added) carries the source's piece as it was before the step."""
        sources, destinations = [m[0] for m in messages], [m[1] for m in messages]
        assert len(set(sources)) == len(set(destinations)) == len(messages)
        before = self.vectors.copy()
        for source, destination, piece, is_added in messages:
            payload = before[source, piece]
            self.vectors[destination, piece] = payload + (before[destination, piece] if is_added else 0)
            self.sent[source] += payload.nbytes
        self.largest.append(max(before[source, piece].nbytes for source, _, piece, _ in messages))


def pass_ring(machines, n):
    chunk = machines.vectors.shape[1] // n
    for is_added in (True, False):
        for step in range(n - 1):
            # Chunk c is complete where it has been n-1 hops away from its start, at process c-1.
            pieces = [(rank - step + (0 if is_added else 1)) % n for rank in range(n)]
            machines.step([(r, (r + 1) % n, slice(c * chunk, (c + 1) * chunk), is_added) for r, c in enumerate(pieces)])


def pass_tree(machines, n):
    everything, distances = slice(None), [2**k for k in range(int(np.ceil(np.log2(n))))]
    for distance in distances:
        machines.step([(r + distance, r, everything, True) for r in range(0, n, 2 * distance) if r + distance < n])
    for distance in reversed(distances):
        machines.step([(r, r + distance, everything, False) for r in range(0, n, 2 * distance) if r + distance < n])


def folded(pass_power):
    """Those above the largest power of two give to a partner first and get the sum back at the end."""

    def pass_any(machines, n):
        power = 2 ** int(np.log2(n))
        if n > power:
            machines.step([(r, r - power, slice(None), True) for r in range(power, n)])
        pass_power(machines, power)
        if n > power:
            machines.step([(r - power, r, slice(None), False) for r in range(power, n)])

    return pass_any


def pass_butterfly(machines, power):
    size = machines.vectors.shape[1]
    owned = [slice(0, size)] * power
    swaps = []
    distance = power // 2
    while distance:
        halves = []
        for rank, piece in enumerate(owned):
            middle = (piece.start + piece.stop) // 2
            low, high = slice(piece.start, middle), slice(middle, piece.stop)
            halves.append((high, low) if rank & distance else (low, high))  # what it keeps, what it gives
        machines.step([(r, r ^ distance, give, True) for r, (_, give) in enumerate(halves)])
        swaps.append((distance, [keep for keep, _ in halves]))
        owned = [keep for keep, _ in halves]
        distance //= 2
    for distance, kept in reversed(swaps):
        machines.step([(r, r ^ distance, keep, False) for r, keep in enumerate(kept)])


def pass_recursive_doubling(machines, power):
    distance = 1
    while distance < power:
        machines.step([(r, r ^ distance, slice(None), True) for r in range(power)])
        distance *= 2


def pass_master(machines, n):
    for rank in range(1, n):
        machines.step([(rank, 0, slice(None), True)])
    for rank in range(1, n):
        machines.step([(0, rank, slice(None), False)])


PASSING = {
    "ring": pass_ring,
    "tree": pass_tree,
    "butterfly": folded(pass_butterfly),
    "recursive-doubling": folded(pass_recursive_doubling),
    "master": pass_master,
}


@pytest.mark.parametrize("algorithm", PASSING)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 12, 16, 17])
def test_messages_passed_one_by_one_add_up_and_cost_what_the_formula_says(algorithm, n):
    machines = Machines(n, n_elements=16 * n)  # every algorithm cuts it into equal pieces
    PASSING[algorithm](machines, n)
    assert (machines.vectors == machines.total).all()
    cost = ALL_REDUCE[algorithm](machines.total.nbytes, n, Wire(3.0, 10.0))
    assert machines.sent.max() == pytest.approx(cost.bytes_sent)
    assert len(machines.largest) == cost.n_messages
    assert sum(3.0 + size / 10.0 for size in machines.largest) == pytest.approx(cost.seconds)
