"""fp32 masters behind 16-bit weights, in bytes a parameter that everybody can add up."""

import numpy as np
import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.memory.shares import Shares
from traincast.memory.timeline import alive_at, alive_bytes_by_kind
from traincast.trace.graph import StorageKind
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

TRACE = tc.load_model("gpt2")


def bytes_a_parameter(**settings):
    graph = lower(TRACE, settings=Settings("bf16", "adamw", **settings))
    sizes = graph.storage_bytes(np.array([1]))[0]
    kinds = (StorageKind.WEIGHT, StorageKind.GRADIENT, StorageKind.OPTIMIZER_STATE)
    return [round(sizes[graph.storage_kind == kind].sum() / TRACE.n_parameters, 2) for kind in kinds]


def test_bf16_alone_is_eight_bytes_a_parameter_and_with_masters_eighteen():
    assert bytes_a_parameter() == [2, 2, 4]
    assert bytes_a_parameter(master_weights=True) == [2, 4, 4 + 8]


def test_a_sharded_run_has_masters_unless_it_is_told_otherwise():
    def answer(**options):
        return tc.forecast("gpt2", "8xA100-SXM4-80GB", 8, precision="bf16", optimizer="adamw", **options)

    assert answer(strategy="fsdp").to_dict()["master_weights"]
    assert not answer(strategy="ddp").to_dict()["master_weights"]
    assert not answer(strategy="fsdp", master_weights=False).to_dict()["master_weights"]
    assert answer(stack="megatron").to_dict()["master_weights"]
    assert any("fp32 masters" in told for told in answer(strategy="fsdp").assumptions)
    assert any("without fp32 masters" in told for told in answer(strategy="ddp").assumptions)
    assert not any("masters" in told for told in answer(strategy="fsdp", master_weights=True).assumptions)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "amp-bf16"])
def test_precisions_that_keep_fp32_weights_refuse_the_question(precision):
    with pytest.raises(InputError, match=f"precision '{precision}' keeps fp32 ones as it is: leave it out"):
        Settings(precision, master_weights=True)


def test_what_one_of_four_devices_holds_of_its_state_is_a_quarter():
    graph = lower(TRACE, settings=Settings("bf16", "adamw", master_weights=True))
    whole = alive_at(graph, 1, Shares(accumulates=True)).by_op
    quarter = alive_at(graph, 1, Shares(weights=0.0, gradients=0.25, optimizer_state=0.25, accumulates=True)).by_op
    state = (2 + 4 + 12) * TRACE.n_parameters
    assert whole[0] - quarter[0] == pytest.approx(state - (4 + 12) / 4 * TRACE.n_parameters, rel=0.01)


def test_gradients_of_earlier_passes_are_there_from_the_start():
    graph = lower(TRACE, settings=Settings("fp32", "sgd"))
    once, several = (alive_bytes_by_kind(graph, 2, Shares(accumulates=some)) for some in (False, True))
    assert once[StorageKind.GRADIENT][0] == 0
    assert several[StorageKind.GRADIENT][0] == once[StorageKind.GRADIENT].max() > 4 * TRACE.n_parameters * 0.99


def test_clipping_reads_every_gradient_twice_and_writes_it_once():
    plain, clipped = (Settings("fp32", "sgd", clip_gradients=some) for some in (False, True))
    n_ops = [int((lower(TRACE, settings=each).op_phase == 3).sum()) for each in (plain, clipped)]
    assert n_ops == [1, 6]
    slower, faster = (
        tc.forecast("gpt2", "A100-SXM4-80GB", 1, clip_gradients=some).optimizer_s for some in (True, False)
    )
    assert slower == pytest.approx(2 * faster, rel=0.15)  # the update reads two and writes one, too
