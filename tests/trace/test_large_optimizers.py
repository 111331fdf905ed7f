"""Optimizers of large models: bytes of state a parameter, and what the update computes."""

import numpy as np
import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.trace.flop import op_flop
from traincast.trace.graph import Phase, StorageKind
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import FORECAST_OPTIMIZERS, Settings

LLAMA = tc.load_model("llama-1b")
N_TABLE = 128_256 * 2048  # tied to the head


def lowered(optimizer, precision="fp32", **settings):
    return lower(LLAMA, settings=Settings(precision, optimizer, **settings))


def state_bytes(graph):
    return int(graph.storage_bytes(np.array([1]))[0][graph.storage_kind == StorageKind.OPTIMIZER_STATE].sum())


def test_eight_bits_are_two_bytes_a_parameter_and_the_table_keeps_eight():
    expected = 8 * N_TABLE + (2 + 2 * 4 / 256) * (LLAMA.n_parameters - N_TABLE)
    assert state_bytes(lowered("adamw-8bit")) == pytest.approx(expected, rel=1e-3)
    assert state_bytes(lowered("adamw-8bit", "bf16")) == state_bytes(lowered("adamw-8bit"))


def test_lion_has_one_state_and_adafactor_next_to_none():
    assert state_bytes(lowered("lion")) == 4 * LLAMA.n_parameters
    assert state_bytes(lowered("adafactor")) < 0.01 * LLAMA.n_parameters * 4


def test_muon_has_one_state_for_matrices_of_blocks_and_two_for_the_rest():
    n_norms = 33 * 2048
    expected = 4 * (LLAMA.n_parameters - N_TABLE - n_norms) + 8 * (N_TABLE + n_norms)
    assert state_bytes(lowered("muon")) == pytest.approx(expected, rel=1e-4)


def test_five_newton_schulz_steps_are_three_products_each():
    """Of a matrix with s rows and l columns: 2 s s l, 2 s s s and 2 s s l."""
    graph = lowered("muon")
    flop = op_flop(graph, np.array([1]))[0][graph.op_phase == Phase.OPTIMIZER].sum()
    square, thin, wide = (2048, 2048), (512, 2048), (2048, 8192)
    of_block = sum(5 * (4 * s * s * n + 2 * s**3) for s, n in [square] * 2 + [thin] * 2 + [wide] * 3)
    assert flop == 16 * of_block


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_a_fused_update_is_one_kernel_with_the_same_states_and_no_temporaries(optimizer):
    plain, fused = lowered(optimizer), lowered(f"{optimizer}-fused")
    assert int((fused.op_phase == Phase.OPTIMIZER).sum()) == 1
    assert state_bytes(fused) == state_bytes(plain)
    in_update = (fused.storage_alloc == fused.n_ops - 1) & (fused.storage_free > fused.storage_alloc)
    assert not in_update.any()


def test_megatron_updates_in_one_kernel_and_copies_the_masters_in_it():
    graph = lowered("adamw", "bf16", stack="megatron", master_weights=True)
    assert int((graph.op_phase == Phase.OPTIMIZER).sum()) == 1


@pytest.mark.parametrize("optimizer", FORECAST_OPTIMIZERS)
def test_every_optimizer_can_be_asked_about_with_masters(optimizer):
    answer = tc.forecast("gpt2", "A100-SXM4-80GB", 1, precision="bf16", optimizer=optimizer, master_weights=True)
    assert answer.covered_flop_fraction == 1
    assert (answer.optimizer_s > 0) == (optimizer != "none")


def test_an_optimizer_that_is_not_known_names_those_that_are():
    with pytest.raises(InputError, match=r"optimizer 'adamw8bit' is not known\. Close names: adamw-8bit"):
        Settings("fp32", "adamw8bit")
