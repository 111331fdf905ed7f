"""Memory of one device of many."""

import numpy as np
import pytest

import traincast as tc
from traincast.scaling.held_memory import added_bytes, shares_of
from traincast.scaling.strategy import find_strategy
from traincast.trace.graph import StorageKind
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

GRAPH = lower(tc.load_model("gpt2"), settings=Settings("fp32", "adam"))
N_BYTES = 4 * 124_439_808


def change(name, n=4, **options):
    """Bytes of weights, gradients and states that a device has beyond those of a device alone."""
    shares = shares_of(find_strategy(name), n, **{"has_masters": False, "accumulates": False, **options})
    is_state = np.isin(GRAPH.storage_kind, [StorageKind.WEIGHT, StorageKind.GRADIENT, StorageKind.OPTIMIZER_STATE])
    sizes = GRAPH.storage_bytes(np.array([1]))[0]
    kept = (sizes * (shares.of(GRAPH) - 1))[is_state].sum()
    return kept + added_bytes(find_strategy(name), GRAPH, n)


def test_buckets_are_a_second_copy_of_the_gradients():
    assert change("ddp") == N_BYTES
    assert change("ddp", 1) == 0


def test_servers_hold_the_state_of_the_optimizer():
    assert change("ps:2") == pytest.approx(-2 * N_BYTES, rel=1e-3)


@pytest.mark.parametrize(("name", "n_copies"), [("zero1", 2), ("zero2", 3), ("fsdp", 4)])
def test_each_stage_shards_more(name, n_copies):
    """Adam keeps two numbers a parameter; the third stage adds the table and two of twelve blocks, gathered."""
    table, block = 4 * 50_257 * 768, (N_BYTES - 4 * 50_257 * 768) / 12
    gathered = table + 2 * block if name == "fsdp" else 0
    assert change(name) == pytest.approx(-n_copies * N_BYTES * 3 / 4 + gathered, rel=1e-3)


def test_more_devices_hold_less_each():
    assert change("fsdp", 16) < change("fsdp", 4) < change("zero2", 4) < change("zero1", 4) < 0


def test_a_model_that_does_not_fit_one_device_fits_when_sharded():
    alone = tc.forecast("gpt2-xl", "8xA100-SXM4-40GB", 8, optimizer="adam", strategy="ddp")
    sharded = tc.forecast("gpt2-xl", "8xA100-SXM4-40GB", 8, optimizer="adam", strategy="fsdp")
    assert sharded.peak_memory_bytes < 0.6 * alone.peak_memory_bytes
