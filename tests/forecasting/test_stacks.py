"""What the stack that trains changes of a step beside its ops."""

import pytest

import traincast as tc

H100 = "H100-SXM5-80GB"


def test_a_shared_sequence_takes_half_of_the_time_on_each_of_two_devices():
    alone = tc.forecast("gpt2", "A100-SXM4-80GB", 32, precision="amp-bf16")
    shared = tc.forecast("gpt2", "2xA100-SXM4-80GB", 32, precision="amp-bf16", context_parallel=2)
    assert shared.forward_s == pytest.approx(alone.forward_s / 2, rel=0.05)
    assert shared.backward_s == pytest.approx(alone.backward_s / 2, rel=0.05)


def test_megatron_takes_attention_kernels_of_the_vendor():
    plain, vendor = (tc.forecast("gpt2", H100, 32, precision="bf16", stack=stack) for stack in ("torch", "megatron"))
    assert vendor.question.timed_method.attention == "tuned"
    assert vendor.forward_s < plain.forward_s


def test_megatron_exchanges_activations_beside_products():
    options = {"precision": "bf16", "tensor_parallel": 2}
    torch, megatron = (tc.forecast("gpt2", f"2x{H100}", 32, stack=stack, **options) for stack in ("torch", "megatron"))
    assert megatron.exposed_communication_s < torch.exposed_communication_s / 2
    assert megatron.communication_s == pytest.approx(torch.communication_s)


def test_the_stage_with_the_head_sets_the_pace():
    """Of twelve blocks four stages have three each, and the last the logits, a quarter of the work of GPT-2."""
    whole = tc.forecast("gpt2", "A100-SXM4-80GB", 4, precision="amp-bf16")
    found = tc.forecast(
        "gpt2", "4xA100-SXM4-80GB", 256, precision="amp-bf16", pipeline_parallel=4, accumulation_steps=64
    )
    busy_s = found.forward_s + found.loss_s + found.backward_s - found.bubble_s
    of_all = 64 * (whole.forward_s + whole.loss_s + whole.backward_s)
    assert 0.3 < busy_s / of_all < 0.6
