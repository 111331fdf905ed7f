"""Parameter servers: who waits for whom, in numbers that can be checked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.scaling.collectives import Wire, master_all_reduce
from traincast.scaling.parameter_server import Servers, asynchronous, synchronous
from traincast.units import GIB

WIRE = Wire(0.1, GIB)
COUNTS = st.integers(1, 64)


def servers(n_workers, n_servers, **options):
    return Servers(n_workers=n_workers, n_servers=n_servers, wire=WIRE, **options)


@pytest.mark.parametrize(
    ("n_workers", "n_servers", "way_s"),
    [
        (4, 1, 4.0),  # one server receives from all four through its one port
        (4, 2, 2.0),
        (4, 4, 1.0),
        (4, 8, 1.0),  # more servers than workers: now the worker's own port is the narrow one
        (1, 1, 1.0),
    ],
)
def test_one_gibibyte_pushed_and_pulled(n_workers, n_servers, way_s):
    cost = synchronous(GIB, servers(n_workers, n_servers))
    assert (cost.push_s, cost.update_s, cost.pull_s) == (0.1 + way_s, 0.0, 0.1 + way_s)
    assert cost.seconds == pytest.approx(0.2 + 2 * way_s)
    assert (cost.worker_bytes_sent / GIB, cost.server_bytes_sent / GIB) == (1, n_workers / n_servers)


def test_servers_divide_the_update():
    # 3 passes over half a GiB at 6 GiB/s; with 5 passes 5/3 of it.
    assert synchronous(GIB, servers(4, 2, update_bytes_per_s=6 * GIB)).update_s == 0.25
    assert synchronous(GIB, servers(4, 2, update_bytes_per_s=6 * GIB, n_passes=5)).update_s == pytest.approx(1.25 / 3)


@given(st.integers(1, 2**36), COUNTS)
def test_one_server_is_a_master_that_all_others_send_to(n_bytes, n_workers):
    ideal = Servers(n_workers=n_workers, n_servers=1, wire=Wire(0.0, GIB))
    master_s = master_all_reduce(n_bytes, n_workers + 1, Wire(0.0, GIB)).seconds
    assert synchronous(n_bytes, ideal).seconds == pytest.approx(master_s)


@given(st.integers(0, 2**36), COUNTS, COUNTS)
def test_more_workers_never_help_and_more_servers_never_hurt_an_exchange(n_bytes, n_workers, n_servers):
    for cost_s in (
        lambda w, p: synchronous(n_bytes, servers(w, p, update_bytes_per_s=GIB)).seconds,
        lambda w, p: asynchronous(n_bytes, servers(w, p, update_bytes_per_s=GIB), compute_s=1.0).step_s,
    ):
        base_s = cost_s(n_workers, n_servers)
        assert cost_s(n_workers + 1, n_servers) >= base_s
        assert cost_s(n_workers, n_servers + 1) <= base_s


@pytest.mark.parametrize(
    ("n_workers", "step_s", "bound_by"),
    [
        (1, 4.2, "worker"),  # 2 s of computing, 1.1 s to push, 1.1 s to pull
        (4, 4.2, "worker"),  # the server's port carries 4 GiB in 4.2 s
        (5, 5.0, "link"),  # 5 GiB in 5 s: the port is full
        (10, 10.0, "link"),
    ],
)
def test_asynchronous_workers_feel_each_other_only_when_the_port_is_full(n_workers, step_s, bound_by):
    cost = asynchronous(GIB, servers(n_workers, 1), compute_s=2.0)
    assert (cost.step_s, cost.alone_s, cost.bound_by) == (pytest.approx(step_s), pytest.approx(4.2), bound_by)
    assert cost.worker_steps_per_s == pytest.approx(1 / step_s)


def test_asynchronous_updates_can_be_what_saturates():
    # 3 GiB of memory traffic at 2 GiB/s: 1.5 s an update, of which one server makes one after the other.
    slow = asynchronous(GIB, servers(4, 1, update_bytes_per_s=2 * GIB), compute_s=2.0)
    assert (slow.step_s, slow.alone_s, slow.bound_by) == (pytest.approx(6.0), pytest.approx(5.7), "update")
    assert asynchronous(GIB, servers(4, 2, update_bytes_per_s=2 * GIB), compute_s=2.0).bound_by == "worker"


def test_sizes_workers_and_servers_broadcast():
    sizes, workers = np.array([0.0, GIB])[:, None], np.array([1, 2, 4])
    assert synchronous(sizes, servers(workers, 1)).seconds == pytest.approx(
        np.array([[0.2, 0.2, 0.2], [2.2, 4.2, 8.2]])
    )
    steps = asynchronous(sizes, servers(workers, 1), compute_s=0.5)
    assert steps.step_s == pytest.approx(np.array([[0.7, 0.7, 0.7], [2.7, 2.7, 4.0]]))
    assert steps.bound_by.tolist() == [["worker"] * 3, ["worker", "worker", "link"]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: servers(0, 1), "The number of workers should be a whole number of at least 1, not 0."),
        (lambda: servers(1, 1.5), "The number of servers should be a whole number of at least 1, not 1.5."),
        (lambda: servers(1, 1, update_bytes_per_s=0), "An update rate should be above 0 bytes per second, not 0."),
        (lambda: servers(1, 1, n_passes=-1), "The passes per update should be a finite number of at least 0, not -1."),
        (
            lambda: synchronous(-1, servers(1, 1)),
            "A message size should be a finite number of bytes of at least 0, not -1.",
        ),
        (
            lambda: asynchronous(1, servers(1, 1), compute_s=0.0),
            "A worker's compute time should be finite and above 0 s, not 0.0.",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(call, words):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(words)
