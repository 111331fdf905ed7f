"""Calibration: which steps it runs, how they become a profile, and what the profile is good for."""

import tomllib
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import traincast as tc
from traincast.__main__ import run
from traincast.api import calibrating
from traincast.api.calibrating import calibrate, fit_timings, work_of_cases
from traincast.api.machine_profile import gpu_profile
from traincast.calibration import timing as timings_of
from traincast.calibration.benchmarks import all_benchmarks
from traincast.calibration.gpu import measure_gpu
from traincast.calibration.machine_rates import read_caches
from traincast.calibration.timing import Effort, Timing, cases, time_case
from traincast.errors import FileFormatError, InputError
from traincast.hardware.catalog import find_device
from traincast.hardware.device import Device
from traincast.hardware.device_table import device_toml, read_device_file
from traincast.hardware.host import find_host
from traincast.hardware.run_place import find_place
from traincast.hardware.this_machine import profile_path, read_profile, write_profile
from traincast.kernels.cpu.work import cpu_work
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

torch.set_num_threads(1)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def all_cases():
    return cases(all_benchmarks())


@pytest.fixture(scope="module")
def works(all_cases):
    return work_of_cases(all_cases)


def my_cpu(**changes):
    figures = {
        "name": "my-cpu",
        "kind": "cpu",
        "fp32_flop_per_s": 1e11,
        "memory_bytes": 2**34,
        "memory_bytes_per_s": 1e10,
        "prices": (("call.forward", 2e-5), ("flop.linear", 1e-11)),
        "price_log_sd": 0.1,
    }
    return Device(**(figures | changes))


def test_benchmarks_have_distinct_names_and_cases():
    names = [benchmark.name for benchmark in all_benchmarks()]
    assert len(set(names)) == len(names)


def test_neighbours_in_the_run_are_of_different_kinds():
    first = [benchmark.name.partition("-")[0] for benchmark in all_benchmarks()[:5]]
    assert len(set(first)) == 5


@pytest.mark.parametrize("model", ["mnist_cnn", "cifar_resnet20", "mobilenet_v2", "efficientnet_b0", "lstm_lm", "gpt2"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_calibration_prices_all_work_that_models_of_the_zoo_ask_for(model, optimizer, works):
    priced = {price for phases in works.values() for amounts in phases.values() for price in amounts}
    graph = lower(tc.load_model(model), target="cpu", settings=Settings("fp32", optimizer))
    import numpy as np

    terms = cpu_work(graph, np.array([64]))
    asked = {price for price, total in zip(terms.prices, terms.totals(graph.op_phase * 0, 1)[0], strict=True) if total}
    assert asked <= priced


def test_a_benchmark_really_runs_and_its_phases_add_up_to_its_step(all_cases):
    case = next(case for case in all_cases if case.benchmark.name == "many-small")
    timing = time_case(case, budget_s=0.01)
    assert timing.n_steps >= 3
    phases = [timing.usual_s[phase] for phase in ("forward", "loss", "backward", "optimizer")]
    assert min(phases) > 0
    assert sum(phases) == pytest.approx(timing.usual_s["step"], rel=1.0)  # medians, each of its own column


def machine_with(price_s, works, slowdown=1.0):
    """What a machine with exactly these prices would have been timed at."""
    for (benchmark, step), phases in works.items():
        batch_size, optimizer = step.split()
        seconds = {
            phase: sum(price_s(price) * amount for price, amount in amounts.items())
            for phase, amounts in phases.items()
        }
        seconds["step"] = sum(seconds.values())
        yield Timing(
            benchmark=benchmark,
            batch_size=int(batch_size),
            optimizer=optimizer,
            usual_s={phase: slowdown * value for phase, value in seconds.items()},
            n_steps=5,
        )


def true_price(name):
    kind = name.partition(".")[0]
    return {"flop": 1e-11, "bytes": 1e-10, "element": 1e-9, "window": 2e-9}.get(kind, 1e-5)


def test_the_round_in_the_middle_counts_and_usual_steps_are_what_is_priced(all_cases, works, monkeypatch):
    monkeypatch.setattr(calibrating, "work_of_cases", lambda chosen: works)
    timings = [timing for slowdown in (3.0, 1.0, 1.2) for timing in machine_with(true_price, works, slowdown=slowdown)]
    fitted = fit_timings(all_cases, timings)
    assert fitted.price_s["flop.linear"] == pytest.approx(1.2e-11, rel=0.05)
    assert fitted.mean_error < 0.02


def test_a_calibrated_machine_is_what_this_machine_means(home, monkeypatch):
    monkeypatch.setattr(timings_of, "FULL", Effort(budget_s=0.01, names=("linear-64-64", "many-small", "relu")))
    seen = []
    found = calibrate(on_progress=lambda n_done, n_all: seen.append((n_done, n_all)))
    assert found.path == profile_path()
    assert seen[-1][0] == seen[-1][1]
    place = find_place("this-machine")
    assert place.device.prices == found.device.prices
    assert place.warnings == ()
    answer = tc.forecast("mnist_cnn", "this-machine", 8)
    assert any("no price" in warning for warning in answer.warnings)  # three benchmarks do not tell convolutions
    assert find_host("this-machine").backward_dispatch_s == dict(found.device.prices)["call.backward"]


@pytest.mark.parametrize("n_processes", [0, -1])
def test_no_processes_cannot_be_calibrated(n_processes, home):
    with pytest.raises(InputError, match="n_processes cannot be"):
        calibrate(n_processes=n_processes)
    assert not home.exists()


def test_a_busy_machine_is_told(home, monkeypatch):
    monkeypatch.setattr(timings_of, "FULL", Effort(n_rounds=1, budget_s=0.001, names=("linear-64-64",)))
    monkeypatch.setattr("os.getloadavg", lambda: (1e3, 1e3, 1e3))
    (warning,) = calibrate(save=False).warnings
    assert "a load of 1000 on" in warning


def test_a_calibrated_machine_needs_no_host_in_the_headline(home, capsys):
    write_profile(my_cpu())
    assert run(["forecast", "mnist_cnn", "--on", "this-machine", "--batch", "8"]) == 0
    assert "method traincast, calibrated" in capsys.readouterr().out


def test_without_a_profile_this_machine_is_a_guess_and_says_how_to_change_that(home):
    place = find_place("this-machine")
    assert place.device.name == "generic-cpu"
    assert "traincast calibrate" in place.warnings[0]


def test_a_profile_is_a_device_file_that_others_can_use(home, tmp_path):
    write_profile(my_cpu())
    assert read_profile() == my_cpu()
    copy = tmp_path / "colleague.toml"
    copy.write_text(profile_path().read_text())
    assert find_device("my-cpu", devices_file=copy) == my_cpu()


@pytest.mark.parametrize("name", ["T4", "A100-SXM4-80GB", "generic-cpu", "MI250-GCD"])
def test_devices_of_the_table_survive_being_written_and_read(name, tmp_path):
    path = tmp_path / "device.toml"
    path.write_text(device_toml(find_device(name)))
    (read,) = read_device_file(path)
    assert replace(read, aliases=()) == replace(find_device(name), aliases=())


def test_prices_that_are_no_seconds_are_refused(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(device_toml(my_cpu()).replace("2e-05", '"fast"'))
    with pytest.raises(FileFormatError, match="table of seconds"):
        read_device_file(path)
    path.write_text(device_toml(my_cpu()).replace("2e-05", "-1.0"))
    with pytest.raises(FileFormatError, match=r"price of call\.forward cannot be -1\.0"):
        read_device_file(path)


def test_a_calibrated_step_is_all_work_and_no_second_host(home):
    write_profile(my_cpu(prices=tuple((name, true_price(name)) for name in ("call.forward", "flop.linear"))))
    slow = tc.forecast("mnist_cnn", "this-machine", 8, host="tf1-session")
    usual = tc.forecast("mnist_cnn", "this-machine", 8)
    assert slow.step_s == usual.step_s


def test_a_gpu_cannot_be_calibrated_where_there_is_none(home):
    with pytest.raises(InputError, match="no CUDA device"):
        calibrate("cuda")


class FakeCuda:
    """A GPU with a clock of its own: every call takes a made-up time."""

    def __init__(self):
        self.now_ms = 0.0

    class _Event:
        def __init__(self, cuda):
            self.cuda = cuda

        def record(self, stream):
            assert stream == "the stream of cuda:1"
            self.at_ms = self.cuda.now_ms

        def elapsed_time(self, other):
            return other.at_ms - self.at_ms

    def Event(self, enable_timing):
        return self._Event(self)

    def current_stream(self, device):
        return f"the stream of {device}"

    def synchronize(self, device):
        assert device == "cuda:1"

    def get_device_properties(self, device):
        return SimpleNamespace(
            name="My GPU", multi_processor_count=80, total_memory=16 * 2**30, major=7, minor=5, clock_rate=1_500_000
        )


def fake_torch(flop_per_s, bytes_per_s):
    cuda = FakeCuda()

    class Tensor:
        def __init__(self, n):
            self.n = n

        def copy_(self, other):
            cuda.now_ms += 1e3 * 2 * 4 * self.n / bytes_per_s

        def add_(self, value):
            cuda.now_ms += 5e-3

    def mm(left, right):
        cuda.now_ms += 1e3 * 2 * left.n**3 / flop_per_s

    def make(n, *rest, **kwargs):
        return Tensor(n)

    matmul = SimpleNamespace(allow_tf32=False)
    return SimpleNamespace(
        cuda=cuda,
        mm=mm,
        ones=make,
        empty=make,
        zeros=make,
        empty_like=lambda other: other,
        float32="float32",
        float16="float16",
        bfloat16="bfloat16",
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul)),
    )


def test_an_unlisted_gpu_becomes_a_device_of_measured_figures():
    figures = measure_gpu("cuda:1", fake_torch(1e13, 5e11))
    assert figures.flop_per_s == pytest.approx({"fp32": 1e13, "tf32": 0.0, "fp16": 1e13, "bf16": 0.0})
    assert figures.memory_bytes_per_s == pytest.approx(5e11)
    assert figures.launch_s == pytest.approx(5e-6)
    device = gpu_profile(figures)
    assert (device.name, device.n_sm, device.boost_clock_hz) == ("My GPU", 80, 1.5e9)
    assert "datasheet's are higher" in device.notes
    assert tomllib.loads(device_toml(device))["device"][0]["name"] == "My GPU"


def test_a_listed_gpu_keeps_its_datasheet_figures(monkeypatch):
    torch_like = fake_torch(4e12, 2.5e11)
    monkeypatch.setattr(
        torch_like.cuda,
        "get_device_properties",
        lambda device: SimpleNamespace(
            name="Tesla T4", multi_processor_count=40, total_memory=15 * 2**30, major=7, minor=5, clock_rate=1_590_000
        ),
    )
    device = gpu_profile(measure_gpu("cuda:1", torch_like))
    assert device.fp32_flop_per_s == find_device("T4").fp32_flop_per_s
    assert "Measured: fp32 4.0 Tflop/s" in device.notes


def test_caches_are_read_by_level(tmp_path):
    for number, (level, kind, size) in enumerate([(1, "Data", "32K"), (1, "Instruction", "64K"), (2, "Unified", "1M")]):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{value}\n")
    assert read_caches(tmp_path) == {1: 32 * 1024, 2: 2**20}
    assert read_caches(tmp_path / "nowhere") == {}
