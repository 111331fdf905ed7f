"""Steps on a CPU as sums of priced work: what ops ask for, and how prices are read off measured steps."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import traincast as tc
from traincast.errors import InputError
from traincast.hardware.device import Device
from traincast.hardware.host import find_host
from traincast.kernels.cpu.fit import MeasuredPhase, fit_prices, moment_log_sd
from traincast.kernels.cpu.memory_work import fresh_bytes
from traincast.kernels.cpu.times import priced_times
from traincast.kernels.cpu.work import cpu_work
from traincast.kernels.timeline import step_timeline
from traincast.trace.graph import Phase
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

BATCH = np.array([8])


def work_of(module, example, *, batch_size=8, optimizer="sgd"):
    trace = tc.capture(module, example, loss=lambda output, inputs: output.mean())
    graph = lower(trace, target="cpu", settings=Settings("fp32", optimizer))
    return graph, cpu_work(graph, np.array([batch_size]))


def amounts(graph, terms):
    totals = terms.totals(graph.op_phase, len(Phase))
    return [dict(zip(terms.prices, row.tolist(), strict=True)) for row in totals]


def vectors(width):
    return lambda batch_size: torch.zeros(batch_size, width)


def images(channels, side):
    return lambda batch_size: torch.zeros(batch_size, channels, side, side)


def test_a_linear_layer_asks_for_its_products_once_in_forward_and_once_for_its_weight():
    forward, _, backward, _ = amounts(*work_of(nn.Linear(64, 32), vectors(64)))
    assert forward["flop.linear"] == backward["flop.linear"] == 2 * 8 * 64 * 32


def test_every_phase_of_a_step_is_paid_once_whatever_its_ops():
    for phase, name in zip(
        amounts(*work_of(nn.Linear(4, 4), vectors(4))), ("forward", "loss", "backward", "optimizer"), strict=True
    ):
        assert phase[f"phase.{name}"] == 1


def test_adam_asks_for_more_calls_than_sgd_but_updates_as_many_parameters():
    layers = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    sgd = amounts(*work_of(layers, vectors(4)))[3]
    adam = amounts(*work_of(layers, vectors(4), optimizer="adam"))[3]
    assert sgd["call.parameter"] == adam["call.parameter"] == 4
    assert adam["call.optimizer"] > 5 * sgd["call.optimizer"]


def test_pooling_is_paid_by_the_places_of_its_windows():
    graph, terms = work_of(nn.Sequential(nn.Conv2d(2, 2, 1), nn.MaxPool2d(3, 1, 1)), images(2, 4))
    assert amounts(graph, terms)[0]["window.max"] == 8 * 2 * 4 * 4 * 9


def test_a_batch_norm_that_takes_no_statistics_passes_over_its_input_once():
    norm = nn.BatchNorm2d(16)
    trained, *_ = amounts(*work_of(nn.Sequential(norm), images(16, 8)))
    frozen, *_ = amounts(*work_of(nn.Sequential(norm.eval()), images(16, 8)))
    assert trained["bytes.batch_norm"] > 0
    assert frozen.get("bytes.batch_norm", 0) == 0
    assert frozen["bytes.elementwise"] >= 2 * 8 * 16 * 8 * 8  # floats are counted


def test_depthwise_windows_that_libraries_have_no_fast_kernel_for_have_a_price_of_their_own():
    three = amounts(*work_of(nn.Conv2d(16, 16, 3, groups=16), images(16, 8)))[2]
    five = amounts(*work_of(nn.Conv2d(16, 16, 5, groups=16), images(16, 8)))[2]
    assert three["flop.depthwise_weight"] > 0 == three.get("flop.depthwise_weight.other", 0)
    assert five["flop.depthwise_weight.other"] > 0 == five.get("flop.depthwise_weight", 0)


def test_a_gru_is_paid_by_its_steps_and_an_lstm_runs_fused():
    class Last(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x)[0]

    def sequence(batch_size):
        return torch.zeros(batch_size, 10, 16)

    gru = amounts(*work_of(Last(nn.GRU(16, 16, batch_first=True)), sequence))[0]
    lstm = amounts(*work_of(Last(nn.LSTM(16, 16, batch_first=True)), sequence))[0]
    assert gru["steps.rnn.forward"] == lstm["steps.lstm.forward"] == 10
    assert "steps.lstm.forward" not in gru


def test_threads_start_only_for_large_tensors():
    few = amounts(*work_of(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), vectors(8)))[0]
    many = amounts(*work_of(nn.Sequential(nn.Linear(8, 64_000), nn.ReLU()), vectors(8)))[0]
    assert few["threads"] == 0 < many["threads"]


def test_memory_that_glibc_gives_back_is_told_by_how_much_a_step_outgrows_its_largest_tensor():
    layers = nn.Sequential(nn.Linear(1024, 1024), *(nn.Sigmoid() for _ in range(20)))
    graph, _ = work_of(layers, vectors(1024))
    few, many, huge = fresh_bytes(graph, np.array([2, 4096, 16_384]))
    needed = 21 * 4096 * 1024 * 4
    assert 0.9 * needed < many < 1.2 * needed  # all of it lies on the heap
    assert huge > 4 * many  # tensors of 64 MiB are mapped one by one, in backward too
    assert few < 20 * 2**20


@given(st.integers(2, 64))
def test_more_samples_never_ask_for_less(batch_size):
    trace = tc.load_model("cifar10_cnn")
    graph = lower(trace, target="cpu", settings=Settings("fp32", "sgd"))
    terms = cpu_work(graph, np.array([batch_size, batch_size + 1]))
    assert (terms.amount[1] >= terms.amount[0] - 1e-9).all()


def measured(prices, works, *, noise=0.0, seed=0):
    """Phases of made-up steps of a machine with these prices."""
    rng = np.random.default_rng(seed)
    return [
        MeasuredPhase(
            benchmark=f"benchmark {number % 12}",
            step=str(number),
            work=work,
            seconds=sum(prices[name] * amount for name, amount in work.items()) * float(np.exp(noise * rng.normal())),
        )
        for number, work in enumerate(works)
    ]


def made_up_works(n=60, seed=1):
    rng = np.random.default_rng(seed)
    return [
        {
            "call": float(rng.integers(1, 50)),
            "flop": float(10 ** rng.uniform(5, 9)),
            "bytes": float(10 ** rng.uniform(4, 8)),
        }
        for _ in range(n)
    ]


PRICES = {"call": 1e-5, "flop": 1e-11, "bytes": 1e-10}


def test_prices_of_a_machine_without_noise_are_found_exactly():
    fitted = fit_prices(measured(PRICES, made_up_works()))
    assert fitted.price_s == pytest.approx(PRICES, rel=1e-6)
    assert fitted.mean_error < 1e-6


def test_a_step_that_was_disturbed_hardly_moves_the_prices():
    phases = measured(PRICES, made_up_works(), noise=0.03)
    disturbed = [
        *phases[:-2],
        *(MeasuredPhase(benchmark=p.benchmark, step=p.step, work=p.work, seconds=20 * p.seconds) for p in phases[-2:]),
    ]
    assert fit_prices(disturbed).price_s == pytest.approx(PRICES, rel=0.25)


def test_the_spread_is_that_of_benchmarks_that_were_left_out():
    fitted = fit_prices(measured(PRICES, made_up_works(400), noise=0.2))
    assert fitted.log_sd == pytest.approx(0.2, rel=0.2)


def test_a_run_has_one_moment_and_its_spread_is_added():
    rng = np.random.default_rng(0)
    rounds = np.exp(0.15 * rng.standard_normal((500, 4)))
    spread = moment_log_sd(rounds.tolist())
    # A round around the median of four of its kind: 0.15 times the square root of 1 - 1/4, and the median of the
    # 500 standard deviations of four numbers is 11 % below the true one.
    assert spread == pytest.approx(0.15 * 0.75**0.5 * 0.89, rel=0.05)
    phases = measured(PRICES, made_up_works(400), noise=0.2)
    assert fit_prices(phases, spread).log_sd == pytest.approx(np.hypot(fit_prices(phases).log_sd, spread))
    assert moment_log_sd([[1.0], [2.0]]) == 0.0


def test_no_price_is_negative():
    works = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 2.0}]
    phases = [
        MeasuredPhase(benchmark=str(i), step="", work=work, seconds=s)
        for i, (work, s) in enumerate(zip(works, (2.0, 1.0), strict=True))
    ]
    assert min(fit_prices(phases).price_s.values()) >= 0


def test_prices_cannot_be_read_off_nothing():
    with pytest.raises(InputError, match="no step was measured"):
        fit_prices([])


def machine(**prices):
    return Device(
        name="my-cpu",
        kind="cpu",
        fp32_flop_per_s=1e11,
        memory_bytes=2**34,
        memory_bytes_per_s=1e10,
        prices=tuple(sorted({name.replace("__", "."): price for name, price in prices.items()}.items())),
        price_log_sd=0.1,
    )


def test_times_are_work_times_price():
    trace = tc.capture(nn.Linear(64, 32), vectors(64), loss=lambda output, inputs: output.mean())
    graph = lower(trace, target="cpu", settings=Settings("fp32", "sgd"))
    times = priced_times(graph, machine(flop__linear=1e-9, call__forward=1e-3), BATCH, precision="fp32")
    assert times.seconds.sum() == pytest.approx(2 * 2 * 8 * 64 * 32 * 1e-9)
    assert times.dispatch_s.sum() == pytest.approx(
        1e-3 * ((graph.op_phase <= Phase.LOSS) & (times.dispatch_s > 0)).sum()
    )


@pytest.mark.parametrize("batch_size", [1, 4096])
def test_the_whole_step_is_as_uncertain_as_its_prices_whatever_its_share_of_calls(batch_size):
    trace = tc.capture(nn.Linear(64, 32), vectors(64), loss=lambda output, inputs: output.mean())
    graph = lower(trace, target="cpu", settings=Settings("fp32", "sgd"))
    times = priced_times(
        graph, machine(flop__linear=1e-9, call__forward=1e-3), np.array([batch_size]), precision="fp32"
    )
    step = step_timeline(graph, times, find_host("torch-eager"), is_synchronous=True)
    assert step.op_log_sd == pytest.approx([0.1])


def test_work_without_a_price_is_not_covered_and_named():
    trace = tc.load_model("mnist_cnn")
    graph = lower(trace, target="cpu", settings=Settings("fp32", "sgd"))
    times = priced_times(graph, machine(flop__linear=1e-9), BATCH, precision="fp32")
    assert not times.is_covered.all()
    assert "flop.convolution" in times.warnings[0]
    assert "calibrate again" in times.warnings[0]


def test_a_precision_that_was_not_calibrated_is_told_and_less_sure():
    trace = tc.load_model("mnist_cnn")
    graph = lower(trace, target="cpu", settings=Settings("bf16", "sgd"))
    times = priced_times(graph, machine(flop__linear=1e-9), BATCH, precision="bf16")
    assert times.log_sd[0] == pytest.approx(0.3)
    assert any("bf16" in warning for warning in times.warnings)


def test_page_faults_that_a_default_allocator_may_add_are_told():
    trace = tc.load_model("cifar_resnet20")
    graph = lower(trace, target="cpu", settings=Settings("fp32", "sgd"))
    told = priced_times(graph, machine(bytes__fresh=1e-9), np.array([256]), precision="fp32").warnings
    assert any("MALLOC_TRIM_THRESHOLD_" in warning and "ms" in warning for warning in told)
