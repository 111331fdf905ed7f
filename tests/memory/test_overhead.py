"""What the allocator adds to tensors, in bytes that can be counted by hand."""

import numpy as np
import pytest

from traincast.hardware.catalog import find_device
from traincast.memory.overhead import overhead_of
from traincast.memory.timeline import Alive
from traincast.trace.graph import Graph, Ragged

NONE, START = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)


def allocator_bytes(*sizes, during_the_step=False, on="T4"):
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
    return overhead_of(graph, 1, device=find_device(on), alive=alive).allocator_bytes


@pytest.mark.parametrize(("size", "lost"), [(1, 511), (511, 1), (512, 0), (513, 511), (1000, 24), (1024, 0)])
def test_a_block_is_rounded_up_to_512_bytes(size, lost):
    assert allocator_bytes(size) == lost


def test_every_block_is_rounded_on_its_own():
    assert allocator_bytes(1, 513, 1000) == 511 + 511 + 24


def test_of_what_comes_and_goes_four_percent_cannot_be_used_again():
    assert allocator_bytes(51_200, during_the_step=True) == 2_048
    assert allocator_bytes(51_200) == 0


def test_a_cpu_rounds_nothing():
    assert allocator_bytes(1, during_the_step=True, on="generic-cpu") == 0
