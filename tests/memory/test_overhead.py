"""What the allocator adds to tensors, in bytes that can be counted by hand."""

import numpy as np
import pytest

from traincast.hardware.catalog import find_device
from traincast.memory.overhead import CONTEXT_BYTES_PER_SM, context_bytes, overhead_of
from traincast.memory.timeline import Alive
from traincast.trace.graph import Graph, Ragged
from traincast.units import MIB

NONE, START = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)


def overhead(*sizes, during_the_step=False, on="T4"):
    """Of a step of one op beside which storages of these sizes are alive."""
    n_storages = len(sizes)
    graph = Graph(
        names=("aten.mm",),
        attributes=("{}",),
        op_name=START,
        op_attribute=START,
        op_phase=START,
        op_module=START,
        op_forward=START - 1,
        op_recomputed=START,
        op_inputs=Ragged.of([[]]),
        op_outputs=Ragged.of([[]]),
        tensor_dtype=NONE,
        tensor_storage=NONE,
        dim_start=START,
        dim_base=NONE,
        dim_slope=NONE,
        stride_start=START,
        stride_base=NONE,
        stride_slope=NONE,
        storage_owner=np.zeros(n_storages, dtype=np.int64),
        storage_alloc=np.full(n_storages, 0 if during_the_step else -1),
        storage_free=np.full(n_storages, 1),
        storage_kind=np.zeros(n_storages, dtype=np.int64),
    )
    alive = Alive(np.array(sizes), np.array([sum(sizes)]), graph.storage_alloc)
    return overhead_of(graph, 1, device=find_device(on), alive=alive)


@pytest.mark.parametrize(("size", "lost"), [(1, 511), (511, 1), (512, 0), (513, 511), (1000, 24), (1024, 0)])
def test_a_block_is_rounded_up_to_512_bytes(size, lost):
    assert overhead(size).rounding_bytes == lost


def test_every_block_is_rounded_on_its_own():
    assert overhead(1, 513, 1000).rounding_bytes == 511 + 511 + 24


@pytest.mark.parametrize(
    ("sizes", "reserved_mib"),
    [
        ((1,), 2),
        ((MIB,), 2),
        ((MIB, MIB, MIB), 4),
        ((MIB + 1,), 20),
        ((9 * MIB, 9 * MIB), 20),
        ((9 * MIB, 9 * MIB, 9 * MIB), 40),
        ((10 * MIB,), 10),
        ((11 * MIB,), 12),
        ((1, 2 * MIB, 11 * MIB), 2 + 20 + 12),
    ],
)
def test_blocks_come_from_segments_by_their_size(sizes, reserved_mib):
    """Up to 1 MiB from 2 MiB, below 10 MiB from 20 MiB, larger ones alone in multiples of 2 MiB."""
    known = overhead(*sizes)
    assert sum(sizes) + known.allocator_bytes == reserved_mib * MIB


def test_of_what_comes_and_goes_four_percent_more_cannot_be_used_again():
    still, moving = (overhead(51_200, during_the_step=some).allocator_bytes for some in (False, True))
    assert moving - still == 2_048


def test_a_cpu_rounds_nothing():
    assert overhead(1, during_the_step=True, on="generic-cpu").allocator_bytes == 0


def test_a_context_grows_with_the_multiprocessors():
    small, large = find_device("T4"), find_device("A100-SXM4-40GB")
    assert (small.n_sm, large.n_sm) == (40, 108)
    assert context_bytes(large) - context_bytes(small) == 68 * CONTEXT_BYTES_PER_SM
    assert context_bytes(None) == 450 * MIB
