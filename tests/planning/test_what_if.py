"""What would help: each change is asked of the forecast again, and says how sure it is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.planning.checkpointing import saved_bytes
from traincast.planning.gain import ask, gain_of
from traincast.planning.other_devices import cheapest_by_device
from traincast.planning.what_if import what_ifs


def tried(model, on, batch, **options):
    found, left_out = what_ifs(tc.forecast(model, on, batch, **options).question)
    return {one.name: one for one in found}, {one.name: one.reason for one in left_out}


def test_changes_are_sorted_by_what_they_bring():
    found, _ = what_ifs(tc.forecast("resnet50", "V100-SXM2-16GB", 32).question)
    speedups = [one.gain.speedup for one in found]
    assert speedups == sorted(speedups, reverse=True)
    assert all(one.catch.endswith(".") for one in found)
    assert all(one.gain.low <= one.gain.speedup <= one.gain.high for one in found)


def test_a_change_says_what_the_forecast_says_of_it():
    own = tc.forecast("resnet50", "V100-SXM2-16GB", 32)
    found, left_out = tried("resnet50", "V100-SXM2-16GB", 32)
    amp = tc.forecast("resnet50", "V100-SXM2-16GB", 32, precision="amp-fp16", layout="nhwc")
    assert found["amp-fp16 and channels-last"].gain.speedup == pytest.approx(own.step_s / amp.step_s)
    assert found["torch.compile"].forecast.step_s == pytest.approx(
        tc.forecast("resnet50", "V100-SXM2-16GB", 32, compiled=True).step_s
    )
    assert left_out["tf32"] == "V100-SXM2-16GB has no tf32 units"
    assert left_out["amp-bf16"] == "V100-SXM2-16GB has no bf16 units"


def test_a_step_that_waits_for_the_host_gains_most_from_a_larger_batch():
    found, _ = tried("mnist_cnn", "T4", 2)
    larger = found["larger batch"]
    assert larger is max(found.values(), key=lambda one: one.gain.speedup)
    assert larger.gain.speedup > 4
    assert "the learning rate has to be adapted" in larger.catch


def test_a_batch_that_does_not_fit_twice_is_left_out():
    _, left_out = tried("resnet50", "T4", 128)
    assert left_out["larger batch"] == "twice the batch does not fit T4"


def test_more_workers_help_where_the_loader_binds_and_nothing_else_does():
    found, left_out = tried("resnet50", "T4", 32, input_samples_per_s=20)
    assert list(found)[:1] == ["more loader workers"]
    assert found["more loader workers"].gain.speedup == pytest.approx(2)
    assert left_out["amp-fp16"] == left_out["torch.compile"] == "it would change nothing"
    _, left_out = tried("resnet50", "T4", 32, input_samples_per_s=10_000)
    assert left_out["more loader workers"] == "the loader keeps up at 10,000 samples per second"


def test_a_faster_link_helps_where_communication_shows():
    found, left_out = tried("vgg16", "2x2xV100-SXM2-16GB@10Gb/s", 64)
    assert found["faster link between nodes"].gain.speedup > 1.2
    assert left_out["another GPU"] == "'traincast plan' compares whole machines"
    _, left_out = tried("vgg16", "V100-SXM2-16GB", 64)
    assert left_out["faster link"] == "a single device does not communicate"


def test_a_fused_update_reads_the_states_once():
    found, _ = tried("gpt2", "A100-SXM4-80GB", 4, optimizer="adamw", precision="amp-bf16")
    own = tc.forecast("gpt2", "A100-SXM4-80GB", 4, optimizer="adamw", precision="amp-bf16")
    fused = found["fused optimizer"].forecast
    assert fused.optimizer_s < own.optimizer_s / 2  # 7 tensors a parameter instead of 20
    assert fused.forward_s == pytest.approx(own.forward_s)
    assert fused.backward_s == pytest.approx(own.backward_s)
    _, left_out = tried("resnet18", "T4", 8)
    assert left_out["fused optimizer"].startswith("sgd already makes a single pass")


def test_what_is_done_already_is_not_proposed():
    found, left_out = tried("resnet18", "T4", 32, precision="amp-fp16", layout="nhwc", compiled=True)
    assert left_out["lower precision"] == "it already runs in amp-fp16"
    assert left_out["torch.compile"] == "the model is already compiled"
    assert left_out["channels-last"] == "images already have this layout"
    assert not {"amp-fp16", "torch.compile", "channels-last"} & set(found)


def test_methods_that_tell_less_propose_less():
    _, left_out = tried("resnet18", "T4", 32, method="roofline")
    assert left_out["channels-last"] == "the method roofline does not distinguish layouts"


def test_another_gpu_is_one_that_can_be_rented_and_holds_the_step():
    found, _ = tried("gpt2-xl", "T4", 1, optimizer="adamw")
    others = [one for one in found.values() if one.name.startswith("another GPU")]
    assert others
    assert all(one.forecast.fits and one.forecast.device in cheapest_by_device() for one in others)
    assert all("per hour" in one.catch and "times the price per sample" in one.catch for one in others)


def test_checkpointing_costs_a_forward_pass_and_saves_activations():
    own = tc.forecast("resnet50", "V100-SXM2-16GB", 32)
    found, _ = tried("resnet50", "V100-SXM2-16GB", 32)
    one = found["checkpointing"]
    assert one.is_reckoned
    assert one.forecast.step_s == pytest.approx(own.step_s + own.forward_s)
    assert 0 < own.peak_memory_bytes - one.peak_memory_bytes == saved_bytes(own.question)
    _, left_out = tried("mnist_cnn", "T4", 2)
    assert left_out["checkpointing"] == "activations do not dominate its memory"


def test_checkpointing_as_reckoned_is_near_to_checkpointing_as_captured():
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint_sequential

    class Blocks(torch.nn.Module):
        def __init__(self, n_runs):
            super().__init__()
            block = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()) for _ in range(12)]
            self.blocks, self.n_runs = torch.nn.Sequential(*block), n_runs

        def forward(self, x):
            return self.blocks(x) if not self.n_runs else checkpoint_sequential(self.blocks, self.n_runs, x, False)

    def captured(n_runs):
        with torch.device("meta"):
            module = Blocks(n_runs)
        return tc.forecast(tc.capture(module, lambda batch: torch.empty(batch, 64, 256)), "V100-SXM2-16GB", 1024)

    plain, real = captured(0), captured(4)
    (reckoned,) = [one for one in what_ifs(plain.question)[0] if one.name == "checkpointing"]
    assert reckoned.peak_memory_bytes == pytest.approx(real.peak_memory_bytes, rel=0.15)
    assert reckoned.forecast.step_s == pytest.approx(real.step_s, rel=0.1)
    assert reckoned.peak_memory_bytes < 0.7 * plain.peak_memory_bytes
    assert {one.name: one.reason for one in what_ifs(real.question)[1]}["checkpointing"] == "the model already does it"


@given(
    model=st.sampled_from(["mnist_cnn", "resnet18"]),
    on=st.sampled_from(["T4", "2x2xT4@10Gb/s"]),
    batch=st.sampled_from([8, 64]),
    passes=st.sampled_from([1, 2]),
)
def test_causes_of_error_make_up_the_forecasts_own(model, on, batch, passes):
    forecast = tc.forecast(model, on, batch, accumulation_steps=passes)
    asked = ask(forecast.question)
    assert asked.forecast.step_s == pytest.approx(forecast.step_s)
    assert sum(sd**2 for sd in asked.errors.values()) ** 0.5 == pytest.approx(forecast.log_sd)


def test_errors_that_are_shared_cancel_and_those_of_another_device_add_up():
    before = ask(tc.forecast("resnet18", "T4", 32).question)
    after = ask(tc.forecast("resnet18", "T4", 64).question)
    same, kernels, device = (
        gain_of(before, after),
        gain_of(before, after, other_kernels=True),
        gain_of(before, after, other_device=True),
    )
    assert same.speedup == kernels.speedup == device.speedup
    widths = [gain.high / gain.low for gain in (same, kernels, device)]
    assert widths == sorted(widths)
    assert 1 < widths[0] < widths[2]
    back = gain_of(after, before)
    assert back.speedup == pytest.approx(1 / same.speedup)
    assert back.high == pytest.approx(1 / same.low)


def test_a_cpu_is_asked_too():
    forecast = tc.forecast("mnist_cnn", "generic-cpu", 8)
    found, left_out = what_ifs(forecast.question)
    assert {one.name for one in left_out} >= {"amp-fp16", "faster link"}
    assert any(one.name.startswith("another GPU") for one in found)


def test_a_rate_that_is_not_known_is_told_and_stops_nothing():
    question = tc.forecast("resnet18", "A100-SXM4-80GB", 32).question
    unknown = replace(question, device=replace(question.device, name="mine", tf32_flop_per_s=None))
    found, left_out = what_ifs(unknown)
    assert "The tf32 rate of 'mine' is not known" in {one.name: one.reason for one in left_out}["tf32"]
    assert "amp-fp16" in {one.name for one in found}


def test_a_calibrated_machine_is_asked_too():
    question = tc.forecast("mnist_cnn", "generic-cpu", 8, optimizer="adam").question
    prices = (("bytes.elementwise", 1e-10), ("call.forward", 1e-5), ("flop.linear", 1e-11))
    mine = replace(question, device=replace(question.device, name="my-cpu", prices=prices, price_log_sd=0.1))
    found, left_out = what_ifs(mine)
    assert "larger batch" in {one.name for one in found}
    assert {one.name: one.reason for one in left_out}["another GPU"].startswith("this machine is measured")
