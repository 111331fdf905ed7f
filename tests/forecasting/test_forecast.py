"""Forecasts of one device: times that add up, intervals, epochs, cost, memory, and what a wrong question gets."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast as tc
from traincast.api.forecasts import forecast_many
from traincast.errors import InputError, TraincastError, UnknownDeviceError
from traincast.forecasting.forecast import NUMBERS, PARTS, complete
from traincast.forecasting.question import Question
from traincast.forecasting.spread import WAITING_LOG_SD, WORKING_LOG_SD
from traincast.forecasting.sweep import forecast_step
from traincast.hardware.catalog import find_device
from traincast.hardware.host import Host
from traincast.kernels.method import OpTimes
from traincast.report.json_ import to_json
from traincast.trace.graph import Phase
from traincast.trace.settings import Settings

NO_HOST = Host(
    name="instant", forward_dispatch_s=0, backward_dispatch_s=0, optimizer_dispatch_s=0, view_dispatch_s=0, call_s=0
)


@dataclass(frozen=True)
class Even:
    """A method by which the forward and loss ops take 1 s a sample together, backward 2 s and the update 1 s."""

    log_sd: float = 0.0
    name: str = "even"

    def op_times(self, graph, device, batch_sizes, *, precision):
        whole_s = {Phase.FORWARD: 0.75, Phase.LOSS: 0.25, Phase.BACKWARD: 2.0, Phase.OPTIMIZER: 1.0}
        seconds = np.zeros((len(batch_sizes), graph.n_ops))
        for phase, phase_s in whole_s.items():
            ops = graph.op_phase == phase
            per_op_s = phase_s / ops.sum()
            seconds[:, ops] = per_op_s if phase == Phase.OPTIMIZER else per_op_s * batch_sizes[:, None]
        return OpTimes(
            seconds=seconds,
            compute_s=seconds,
            log_sd=np.full(graph.n_ops, self.log_sd),
            error_group=np.zeros(graph.n_ops, dtype=np.int64),
            is_covered=np.ones(graph.n_ops, dtype=bool),
        )


@pytest.fixture(scope="module")
def mnist():
    return tc.load_model("mnist_cnn")


@pytest.fixture(scope="module")
def question(mnist):
    return Question(
        trace=mnist,
        device=find_device("T4"),
        batch_size=4,
        settings=Settings(),
        method=Even(),
        host=NO_HOST,
    )


def ask(question, **changes):
    return forecast_step(replace(question, **changes))


def roofline(model="resnet50", on="V100-PCIe-32GB", batch_size=128, **options):
    return tc.forecast(model, on, batch_size, method="roofline", **options)


def test_phases_are_those_of_the_ops(question):
    answer = ask(question)
    assert [answer.forward_s, answer.loss_s, answer.backward_s, answer.optimizer_s] == pytest.approx([3, 1, 8, 1])
    assert answer.step_s == pytest.approx(13)
    assert answer.samples_per_s == pytest.approx(4 / 13)


@pytest.mark.parametrize("options", [{}, {"input_samples_per_s": 10.0}, {"accumulation_steps": 4}])
def test_the_parts_sum_to_the_step(options):
    answer = roofline(**options)
    assert sum(getattr(answer, part) for part in PARTS) == pytest.approx(answer.step_s, rel=1e-12)
    assert answer.exposed_communication_s == 0.0


def test_accumulated_passes_share_the_batch_and_the_update_comes_once(question):
    answer = ask(question, batch_size=8, accumulation_steps=2)
    assert answer.question.micro_batch_size == 4
    assert [answer.forward_s, answer.backward_s, answer.optimizer_s] == pytest.approx([6, 16, 1])
    assert answer.samples_per_s == pytest.approx(8 / 25)


def test_accumulation_needs_the_memory_of_one_pass_and_all_gradients():
    """Those of the passes before are there while the activations of the last one are."""
    several, one = roofline(batch_size=256, accumulation_steps=4), roofline(batch_size=64)
    gradients = 4 * several.question.trace.n_parameters
    assert 0.5 * gradients < several.peak_memory_bytes - one.peak_memory_bytes <= gradients


def test_a_last_batch_that_is_not_full_counts_as_a_step(question):
    answer = ask(question, n_samples=9, n_epochs=10, price_usd_per_hour=3.6)
    assert answer.epoch_s == pytest.approx(3 * 13)
    assert answer.total_s == pytest.approx(390)
    assert answer.cost_usd == pytest.approx(0.39)


def test_without_samples_or_a_price_there_is_no_total_and_no_cost(question):
    assert (ask(question).epoch_s, ask(question).total_s, ask(question).cost_usd) == (None, None, None)
    assert ask(question, n_samples=9).cost_usd is None
    assert ask(question, price_usd_per_hour=1).cost_usd is None


def test_a_slow_loader_makes_the_step_wait(question):
    answer = ask(question, input_samples_per_s=0.25)
    assert (answer.step_s, answer.input_wait_s) == (pytest.approx(16), pytest.approx(3))


@pytest.mark.parametrize(("samples_per_s", "bound_by"), [(0.25, "compute"), (0.1, "input")])
def test_a_step_is_bound_by_its_input_where_it_waits_longer_than_it_works(question, samples_per_s, bound_by):
    answer = ask(question, input_samples_per_s=samples_per_s)
    assert answer.input_wait_s > 0
    assert answer.bound_by == bound_by


def test_a_fast_loader_changes_nothing(question):
    answer = ask(question, input_samples_per_s=1000)
    assert (answer.step_s, answer.input_wait_s, answer.bound_by) == (pytest.approx(13), 0, "compute")


def test_utilisation_is_the_flop_of_the_step_over_those_of_the_peak(question, mnist):
    flop = mnist.forward_flop(4) + mnist.backward_flop(4)
    assert ask(question).flop_utilisation == pytest.approx(flop / 13 / 8.1e12, rel=1e-2)
    halves = ask(question, accumulation_steps=2)
    assert halves.flop_utilisation == pytest.approx(flop / halves.step_s / question.device.peak_flop_per_s("fp32"))


def test_a_device_that_never_waits_has_the_spread_of_its_ops_and_of_machines(question):
    assert ask(question).log_sd == pytest.approx(WORKING_LOG_SD)
    several_kinds = ask(question, method=Even(log_sd=0.3)).log_sd
    assert WORKING_LOG_SD < several_kinds < math.hypot(0.3, WORKING_LOG_SD)


def test_a_device_that_always_waits_has_the_spread_of_hosts(question):
    slow = replace(NO_HOST, call_s=1e6)
    assert ask(question, host=slow).log_sd == pytest.approx(WAITING_LOG_SD, rel=1e-4)
    assert ask(question, host=slow).bound_by == "host"


def test_eight_of_ten_steps_are_in_the_interval(question):
    low, high = ask(question).interval("step_s")
    factor = math.exp(1.2816 * WORKING_LOG_SD)
    assert (low, high) == (pytest.approx(13 / factor), pytest.approx(13 * factor))


def test_eight_of_ten_links_are_within_a_factor_of_1_78_of_the_forecast():
    answer = roofline("resnet18", "4xT4", 64)
    low, high = answer.interval("exposed_communication_s")
    assert 0 < low < answer.exposed_communication_s
    assert answer.exposed_communication_s / low == pytest.approx(1.780, abs=0.001)  # exp(1.2816 x 0.45)
    assert high / answer.exposed_communication_s == pytest.approx(1.780, abs=0.001)


def test_a_step_that_is_all_communication_is_as_uncertain_as_its_links():
    answer = roofline("vgg16", "2x4xV100-SXM2-16GB@0.01Gb/s", 8)
    assert answer.exposed_communication_s > 0.999 * answer.step_s
    assert answer.interval("step_s")[1] / answer.step_s == pytest.approx(1.780, abs=0.002)


def test_intervals_follow_the_step(question):
    answer = ask(question, n_samples=9, price_usd_per_hour=3.6)
    low, high = answer.interval("step_s")
    assert answer.interval("epoch_s") == (pytest.approx(3 * low), pytest.approx(3 * high))
    assert answer.interval("cost_usd") == (pytest.approx(3e-3 * low), pytest.approx(3e-3 * high))
    assert answer.interval("samples_per_s") == (pytest.approx(4 / high), pytest.approx(4 / low))
    assert answer.interval("peak_memory_bytes") == (answer.peak_memory_bytes, answer.peak_memory_bytes)


def test_estimates_are_the_numbers_that_are_known_each_with_its_interval(question):
    answer = ask(question, n_samples=9)
    unknown = ("cost_usd", "tokens_per_s", "tokens_per_s_per_device")  # no price, and a model that reads no tokens
    assert list(answer.estimates) == [name for name in NUMBERS if name not in unknown]
    for name, number in answer.estimates.items():
        assert (number.p50, number.ends) == (getattr(answer, name), answer.interval(name))


def test_a_complete_forecast_is_the_same_with_nothing_left_to_work_out(question):
    lazy = ("flop_utilisation", "memory", "estimates", "bound_s", "energy", "warnings", "assumptions")
    answer = ask(question)
    assert not vars(answer).keys() & set(lazy)
    assert complete(answer) is answer
    assert set(lazy) <= vars(answer).keys()


def test_a_loader_that_binds_hides_the_spread_of_the_step(question):
    answer = ask(question, input_samples_per_s=0.01)
    assert answer.interval("step_s") == (pytest.approx(400), pytest.approx(400))
    low, high = answer.interval("input_wait_s")
    assert low < answer.input_wait_s < high


def test_no_device_passes_its_own_peak_by_the_definition_of_its_ops():
    low, high = roofline().interval("flop_utilisation")
    assert low < roofline().flop_utilisation < high <= 1


def test_winograds_convolutions_pass_the_peak_and_a_warning_says_so():
    answer = tc.forecast("vgg16", "A100-SXM4-80GB", 64)
    low, high = answer.interval("flop_utilisation")
    assert 1 < low < answer.flop_utilisation < high
    assert high / answer.flop_utilisation == pytest.approx(answer.interval("samples_per_s")[1] / answer.samples_per_s)
    (told,) = [warning for warning in answer.warnings if "utilisation" in warning]
    assert "Winograd" in told
    assert "above 100 %" in told


def test_below_the_peak_nothing_is_said_of_it():
    assert not [warning for warning in tc.forecast("gpt2", "T4", 4).warnings if "utilisation" in warning]


OF_TOKENS = {"tokens_per_s", "tokens_per_s_per_device"}


@given(st.sampled_from([name for name in NUMBERS if name not in OF_TOKENS]), st.floats(0.01, 10), st.integers(1, 3))
def test_every_number_lies_in_its_interval(name, rate, log2_passes):
    answer = ask(
        Question(
            trace=tc.load_model("mnist_cnn"),
            device=find_device("T4"),
            batch_size=16,
            settings=Settings(),
            method=Even(log_sd=0.2),
            host=NO_HOST,
            n_samples=100,
            price_usd_per_hour=1.0,
        ),
        input_samples_per_s=rate,
        accumulation_steps=2**log2_passes,
    )
    low, high = answer.interval(name)
    assert low * (1 - 1e-9) <= getattr(answer, name) <= high * (1 + 1e-9)


def test_what_is_no_number_has_no_interval(question):
    with pytest.raises(InputError, match="'bound_by' has no interval; these have: step_s"):
        ask(question).interval("bound_by")
    with pytest.raises(InputError, match="cost_usd is not known: it needs n_samples and a price"):
        ask(question).interval("cost_usd")


def test_memory_is_that_of_the_memory_command():
    expected = tc.estimate_memory("resnet50", 128, on="V100-PCIe-32GB")
    assert roofline().peak_memory_bytes == expected.total_bytes
    assert roofline().fits


def test_what_does_not_fit_says_so_and_still_has_a_time():
    answer = roofline(batch_size=1024)
    assert not answer.fits
    assert answer.step_s > roofline().step_s
    assert any("Does not fit: needs" in warning for warning in answer.warnings)


def test_a_precision_without_units_says_so():
    assert roofline("resnet18", "T4", 8, precision="amp-bf16").warnings == (
        "T4 has no bf16 units: matrix products run at the fp32 rate.",
    )


def test_work_without_a_figure_is_counted():
    answer = tc.forecast("vit_b_16", "T4", 8, method="paleo", ppp=0.5)
    assert 0.9 < answer.covered_flop_fraction < 1
    assert any("the rest counts as zero time" in warning for warning in answer.warnings)
    assert roofline().covered_flop_fraction == 1


def test_paleo_without_ppp_says_that_it_is_optimistic():
    assert "PPP of 1" in tc.forecast("resnet18", "T4", 8, method="paleo").warnings[0]
    assert tc.forecast("resnet18", "T4", 8, method="paleo", ppp=0.5).warnings == ()


def test_half_of_the_peaks_take_twice_the_time_of_the_device():
    full, half = (tc.forecast("resnet50", "T4", 32, method="paleo", ppp=ppp) for ppp in (1.0, 0.5))
    assert half.backward_s == pytest.approx(2 * full.backward_s, rel=0.01)


def test_the_slower_the_host_the_longer_a_small_step():
    torch, keras = (roofline("mnist_cnn", "T4", 1, host=host) for host in ("torch-eager", "tf2-keras"))
    assert torch.bound_by == keras.bound_by == "host"
    assert keras.step_s > torch.step_s > torch.device_s


def test_one_device_may_be_counted():
    assert roofline(on="1xT4").device == "T4"


def test_this_machine_is_a_generic_cpu_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    answer = roofline("resnet18", "this-machine", 8, host="this-machine")
    assert answer.device == "generic-cpu"
    assert "not calibrated" in answer.warnings[0]
    assert "no host profile" in answer.warnings[1]
    assert answer.step_s == pytest.approx(answer.host_s + answer.device_s)


def test_settings_change_the_answer():
    plain = roofline()
    assert roofline(precision="amp-fp16").step_s < plain.step_s
    assert roofline(optimizer="adam").optimizer_s > plain.optimizer_s


def test_devices_of_ones_own_can_be_asked_about(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("name,fp32_tflop_per_s,memory_gib,memory_gb_per_s\nmy-card,1,8,100\n")
    assert roofline("resnet18", "my-card", 8, devices=file).device == "my-card"


def test_json_holds_everything_that_python_does(question):
    answer = ask(question, n_samples=9)
    data = json.loads(to_json(answer.to_dict()))
    assert {name: data[name] for name in PARTS} == {name: getattr(answer, name) for name in PARTS}
    assert set(data["intervals"]) == set(NUMBERS) - {"cost_usd"} - OF_TOKENS | {"power_w", "energy_j"}
    assert (data["model"], data["device"], data["method"], data["host"]) == ("mnist_cnn", "T4", "even", "instant")


def test_a_forecast_shows_itself(question):
    answer = ask(question, n_samples=9)
    assert repr(answer).startswith("Forecast('mnist_cnn' on T4, batch 4: 13.0 s per step (11.8 s to 14.3 s), bound by")
    assert "<td>39.0 s</td>" in answer._repr_html_()


def test_a_sweep_is_the_same_as_one_forecast_after_another():
    sweep = forecast_many(
        "resnet18", ["T4", "V100-PCIe-32GB"], [8, 64, 256], method="roofline", input_samples_per_s=700.0
    )
    assert sweep.step_s.shape == (2, 3)
    forecasts = sweep.forecasts()
    singles = [
        roofline("resnet18", on, batch_size, input_samples_per_s=700.0)
        for on in ("T4", "V100-PCIe-32GB")
        for batch_size in (8, 64, 256)
    ]
    for together, alone in zip(forecasts, singles, strict=True):
        assert [getattr(together, name) for name in PARTS] == pytest.approx([getattr(alone, name) for name in PARTS])
        assert (together.bound_by, together.batch_size) == (alone.bound_by, alone.batch_size)
        assert together.log_sd == pytest.approx(alone.log_sd)
        assert together.peak_memory_bytes == alone.peak_memory_bytes
    assert sweep.step_s.ravel().tolist() == [answer.step_s for answer in forecasts]
    assert sweep.samples_per_s.ravel() == pytest.approx([answer.samples_per_s for answer in forecasts])
    assert [word for row in sweep.bound_by for word in row] == [answer.bound_by for answer in forecasts]
    assert sweep.log_sd.ravel().tolist() == [answer.log_sd for answer in forecasts]


def test_a_sweep_checks_every_batch_size():
    with pytest.raises(InputError, match="A batch of 9 cannot be split evenly into 2 accumulation steps"):
        forecast_many("resnet18", ["T4"], [8, 9], method="roofline", accumulation_steps=2)
    with pytest.raises(InputError, match="at least one device and one batch size"):
        forecast_many("resnet18", [], [8], method="roofline")
    with pytest.raises(InputError, match="at least one device and one batch size"):
        forecast_many("resnet18", ["T4"], [], method="roofline")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size cannot be 0"),
        ({"batch_size": 2.5}, "batch_size cannot be 2.5: give a whole number"),
        ({"batch_size": 9, "accumulation_steps": 2}, "cannot be split evenly"),
        ({"accumulation_steps": 0}, "accumulation_steps cannot be 0: give a whole number of at least 1"),
        ({"n_samples": 0}, "n_samples cannot be 0"),
        ({"n_samples": 1e6}, "n_samples cannot be 1000000.0: give a whole number"),
        ({"n_epochs": -1}, "n_epochs cannot be -1"),
        ({"n_epochs": True}, "n_epochs cannot be True"),
        ({"price_usd_per_hour": -1.0}, "price_usd_per_hour cannot be -1.0: give a number above 0"),
        ({"price_usd_per_hour": float("nan")}, "price_usd_per_hour cannot be nan"),
        ({"input_samples_per_s": 0}, "input_samples_per_s cannot be 0"),
        ({"input_samples_per_s": "fast"}, "input_samples_per_s cannot be 'fast'"),
        ({"on": "2x4xT4"}, "'2x4xT4'"),
        ({"on": "0xT4"}, "'0xT4'"),
        ({"on": "8xT4", "batch_size": 4}, "A batch of 4 leaves some of 8 devices without a sample: choose at least 8."),
        ({"on": "4xT4", "strategy": "dpd"}, "No strategy named 'dpd'. Close names: dp, ddp."),
        ({"on": "2x4xT4@50Gb/s", "strategy": "dp"}, "The strategy 'dp' runs in one process and cannot span 2 nodes"),
        ({"method": "magic"}, "method 'magic' is not known"),
        ({"ppp": 0.5}, "PPP is a setting of the method paleo and has no effect with roofline"),
        ({"method": "paleo", "ppp": 2.0}, "above 0, at most 1, not 2.0"),
        ({"layout": "nhwc"}, "The method roofline does not distinguish layouts"),
        ({"precision": "half"}, "precision 'half' is not known"),
        ({"optimizer": "adamm"}, "optimizer 'adamm' is not known. Close names: adam"),
        ({"host": "tf3"}, "No host named 'tf3'"),
    ],
)
def test_a_wrong_question_gets_one_sentence(options, words):
    with pytest.raises(InputError) as caught:
        tc.forecast(**({"model": "resnet18", "on": "T4", "batch_size": 8, "method": "roofline"} | options))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_device_is_refused():
    with pytest.raises(UnknownDeviceError, match="No device or machine named 'T44'"):
        roofline(on="T44")


def test_a_rate_that_is_not_known_is_asked_for():
    with pytest.raises(TraincastError, match="rate of 'RTX-2070-MaxQ' is not known"):
        roofline(on="RTX-2070-MaxQ", precision="amp-fp16")


def test_layers_that_run_in_inference_have_no_backward():
    import torch

    trace = tc.capture(torch.nn.Linear(8, 4), torch.zeros(2, 8), mode="inference")
    answer = roofline(trace, "T4", 4)
    assert (answer.backward_s, answer.optimizer_s) == (0, 0)
    assert answer.step_s == pytest.approx(answer.forward_s)


def test_a_compiled_step_moves_fewer_bytes_and_says_what_was_measured():
    eager, compiled = (tc.forecast("gpt2", "V100-PCIe-32GB", 8, compiled=compiled) for compiled in (False, True))
    assert 0.6 * eager.step_s < compiled.step_s < eager.step_s
    assert compiled.peak_memory_bytes == eager.peak_memory_bytes
    assert any("in inference" in warning for warning in compiled.warnings)


@pytest.mark.parametrize(
    ("on", "is_warned"),
    [
        ("2x4xT4@50Gb/s", True),
        ("2xg4dn.12xlarge", True),
        ("2x4xT4@5Gb/s", False),
        ("2xp4d.24xlarge", False),
        ("8xT4", False),
    ],
)
def test_a_ring_over_tcp_may_be_one_flow_that_a_cloud_limits(on, is_warned):
    warnings = roofline(on=on, batch_size=64).warnings
    assert any(warning.startswith("Over TCP a ring is one flow") for warning in warnings) == is_warned


@pytest.mark.parametrize("strategy", ["fsdp", "zero2", "dp", "mirrored", "ps:1"])
def test_a_strategy_that_one_device_has_no_use_for_is_told(strategy):
    (told,) = tc.forecast("mnist_cnn", "T4", 8, strategy=strategy).warnings
    assert told == f"Strategy '{strategy}' has no effect on a single device."
    assert not tc.forecast("mnist_cnn", "2xT4", 8, strategy="fsdp").warnings


def test_a_parameter_server_apart_from_one_worker_changes_much():
    found = tc.forecast("mnist_cnn", "p3.2xlarge", 8, strategy="ps:1")
    assert found.communication_s > 0
    assert not [warning for warning in found.warnings if "no effect on a single device" in warning]


@pytest.mark.parametrize("options", [{"n_epochs": 9}, {"price_usd_per_hour": 2.0}])
def test_epochs_and_a_price_without_samples_are_told_to_be_of_no_use(options):
    (told,) = tc.forecast("mnist_cnn", "T4", 8, **options).warnings
    assert told == "Total time and cost need the number of samples per epoch."
    assert not tc.forecast("mnist_cnn", "T4", 8, n_samples=100, **options).warnings
