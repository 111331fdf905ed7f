"""Real steps: what is timed, and what is kept when they end badly."""

import json
import math
import mmap
import signal
import time

import pytest
import torch
from fake_gpu import FakeGpu
from torch import nn

import traincast as tc
from traincast.errors import InputError, MeasurementError, MemoryEndedError
from traincast.measurement import measure as measuring
from traincast.measurement.measure import FEWEST_WARMUPS, MOST_WARMUPS, measure_step
from traincast.measurement.measured import Measurement
from traincast.measurement.runnable import Runnable
from traincast.measurement.stopwatch import CudaStopwatch
from traincast.measurement.training import Training, check_device, tf32_math

torch.set_num_threads(1)


class Net(nn.Module):
    """Two layers; `at` lists what happens in the forward of which step, counted from 1."""

    def __init__(self, at=None):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
        self.at, self.n_calls = at or {}, 0

    def forward(self, x):
        self.n_calls += 1
        return self.at.get(self.n_calls, lambda y: y)(self.layers(x))


def runnable(module, loss=lambda output, inputs: output.mean(), make_inputs=lambda n: torch.randn(n, 8)):
    return Runnable(name="net", module=module, make_inputs=make_inputs, forward=lambda module, x: module(x), loss=loss)


def measured(module, **options):
    return measure_step(runnable(module), batch_size=4, **({"n_steps": 6} | options))


def fails(error):
    def act(output):
        raise error

    return act


def test_a_step_is_split_into_four_phases_that_add_up():
    net = Net()
    result = measured(net)
    assert list(result.phases) == ["forward", "loss", "backward", "optimizer"]
    assert result.n_steps == 6
    assert FEWEST_WARMUPS + 6 <= net.n_calls <= MOST_WARMUPS + 6
    assert sum(phase.total for phase in result.phases.values()) == pytest.approx(result.step.total)
    assert result.samples_per_s == pytest.approx(4 / result.step_s)
    assert not result.is_partial
    assert result.launch is None  # on a CPU, a call returns when its work is done


def test_intervals_are_of_the_step_its_phases_and_its_speed():
    result = measured(Net())
    low, high = result.interval("step_s")
    assert low <= result.step_s <= high
    assert result.interval("backward_s")[0] > 0
    assert result.interval("samples_per_s") == pytest.approx((4 / high, 4 / low))
    with pytest.raises(InputError, match="no interval of 'step'"):
        result.interval("step")


def test_without_a_number_of_steps_there_are_between_five_and_a_hundred():
    assert 5 <= measured(Net(), n_steps=None).n_steps <= 100


def test_a_step_that_takes_a_second_is_timed_five_times():
    gpu = FakeGpu()
    net = Net({call: lambda y: (gpu.ask(1.0), y)[1] for call in range(1, 100)})
    assert measured(net, n_steps=None, stopwatch=CudaStopwatch(gpu, "cuda")).n_steps == 5
    assert net.n_calls == FEWEST_WARMUPS + 5


def test_the_warm_up_goes_on_while_steps_get_faster_and_ends_at_ten():
    gpu = FakeGpu(launch_s=0)
    net = Net({call: lambda y, call=call: (gpu.ask(2.0**-call), y)[1] for call in range(1, 100)})
    measured(net, n_steps=1, stopwatch=CudaStopwatch(gpu, "cuda"))
    assert net.n_calls == MOST_WARMUPS + 1


def test_on_a_gpu_the_work_is_timed_and_a_loop_that_times_launches_is_warned_of(monkeypatch):
    gpu = FakeGpu(launch_s=0.010)
    monkeypatch.setattr(time, "perf_counter", gpu.clock)
    net = Net({call: lambda y: (gpu.ask(0.200), y)[1] for call in range(1, 100)})
    result = measured(net, stopwatch=CudaStopwatch(gpu, "cuda"))
    assert result.step_s == pytest.approx(0.210)
    assert result.phase_s("forward") == pytest.approx(0.210)
    assert result.launch.median == pytest.approx(0.010)
    assert "would report that instead of 210 ms, 21.0 x too fast" in result.warnings[0]


def test_the_module_given_by_the_user_is_left_as_it_was():
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    tc.measure(net, torch.randn(2, 8), batch_size=4, optimizer="adam", precision="bf16", n_steps=2)
    after = net.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not net.training


def test_an_example_of_two_samples_is_repeated_to_fill_the_batch():
    seen = []

    def loss(output, inputs):
        seen.append(inputs)
        return output.mean()

    example = torch.tensor([[1.0] * 8, [2.0] * 8])
    tc.measure(nn.Linear(8, 1), example, batch_size=5, n_steps=1, loss=loss)
    assert seen[0][:, 0].tolist() == [1.0, 2.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    "optimizer", ["none", "sgd", "momentum", "nesterov", "adagrad", "adadelta", "rmsprop", "adamw"]
)
def test_every_optimizer_of_a_forecast_can_be_measured(optimizer):
    assert measured(Net(), optimizer=optimizer, n_steps=1).optimizer == optimizer


@pytest.mark.parametrize("precision", ["amp-bf16", "bf16"])
def test_a_step_in_bf16_computes_in_bf16(precision):
    dtypes = set()
    net = Net({call: lambda y: (dtypes.add(y.dtype), y)[1] for call in range(1, 100)})
    measured(net, precision=precision, n_steps=1)
    assert dtypes == {torch.bfloat16}


def test_a_module_that_fails_at_step_3_is_told_in_one_sentence_and_the_steps_before_are_kept():
    with pytest.raises(MeasurementError) as caught:
        measured(Net({3: fails(ValueError("bad\nthings"))}))
    assert str(caught.value) == "Step 3, in its forward, failed (ValueError: bad)."
    assert caught.value.partial.n_steps == 2
    assert caught.value.partial.is_partial
    assert "No step was timed after the warm-up" in caught.value.partial.warnings[1]


def test_a_failure_after_the_warm_up_keeps_the_timed_steps_only():
    gpu = FakeGpu()
    at = {call: lambda y: (gpu.ask(1.0), y)[1] for call in range(1, 100)} | {6: fails(RuntimeError("no"))}
    with pytest.raises(MeasurementError) as caught:
        measured(Net(at), stopwatch=CudaStopwatch(gpu, "cuda"))
    assert caught.value.partial.n_steps == 2
    assert caught.value.partial.warnings[0] == "Stopped after 2 steps."


def test_the_phase_that_failed_is_named():
    def loss(output, inputs):
        return output.mean().detach()

    with pytest.raises(MeasurementError, match=r"Step 1, in its backward, failed .RuntimeError: .*require grad"):
        measure_step(runnable(Net(), loss), batch_size=2)


def test_inputs_that_cannot_be_made_are_told_before_any_step():
    def make_inputs(batch_size):
        raise KeyError("no file")

    with pytest.raises(
        MeasurementError, match=r"Preparing the model and its batch failed .KeyError: 'no file'"
    ) as caught:
        measure_step(runnable(Net(), make_inputs=make_inputs), batch_size=2)
    assert caught.value.partial is None


def really_out_of_memory(output):
    return torch.empty(2**60)


@pytest.mark.parametrize("ends", [really_out_of_memory, fails(MemoryError()), fails(torch.OutOfMemoryError("CUDA"))])
def test_the_end_of_memory_has_a_class_of_its_own(ends):
    with pytest.raises(MemoryEndedError, match="Step 2, in its forward, ran out of memory") as caught:
        measured(Net({2: ends}))
    assert caught.value.partial.n_steps == 1


def test_a_loss_that_is_not_a_number_is_a_warning_that_names_the_step():
    result = measured(Net({5: lambda y: y * math.nan}))
    assert any(warning.startswith("The loss was nan at step 5,") for warning in result.warnings)
    assert not result.is_partial


def test_ctrl_c_gives_what_was_measured_so_far():
    gpu = FakeGpu()
    at = {call: lambda y: (gpu.ask(1.0), y)[1] for call in range(1, 100)}
    at[7] = lambda y: signal.raise_signal(signal.SIGINT)
    result = measured(Net(at), stopwatch=CudaStopwatch(gpu, "cuda"))
    assert result.n_steps == 3
    assert result.is_partial
    assert result.warnings[0] == "Stopped after 3 steps."


def test_ctrl_c_before_the_first_step_is_just_that():
    with pytest.raises(KeyboardInterrupt):
        measured(Net({1: lambda y: signal.raise_signal(signal.SIGINT)}))


def test_progress_is_told_after_every_step_and_the_warm_up_has_no_end_yet():
    told = []
    measured(Net(), n_steps=3, on_progress=lambda done, to_do: told.append((done, to_do)))
    assert told[:3] == [(1, 0), (2, 0), (3, 0)]
    assert told[-3:] == [(1, 3), (2, 3), (3, 3)]


def test_a_measurement_goes_through_json_and_back():
    result = measured(Net(), n_steps=2)
    assert Measurement.from_dict(json.loads(json.dumps(result.to_dict()))) == result


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "A batch of 0 samples cannot be measured"),
        ({"batch_size": "2"}, "A batch of '2' samples cannot be measured"),
        ({"batch_size": 2.5}, "A batch of 2.5 samples cannot be measured"),
        ({"n_steps": 0}, "0 steps cannot be timed"),
        ({"n_steps": "3"}, "'3' steps cannot be timed"),
        ({"device": None}, "not on 'None'"),
        ({"precision": None}, "precision 'None' is not known"),
        ({"optimizer": None}, "optimizer 'None' is not known"),
        ({"device": "tpu"}, "on 'cpu', 'cuda' or 'cuda:1', not on 'tpu'"),
        ({"device": "cpu:x"}, "not on 'cpu:x'"),
        ({"precision": "fp8"}, "precision 'fp8' is not known"),
        ({"precision": "tf32"}, "tf32 is a mode of NVIDIA GPUs"),
        ({"optimizer": "lion"}, "optimizer 'lion' is not known"),
    ],
)
def test_wrong_settings_are_told_before_anything_runs(options, words):
    net = Net()
    with pytest.raises(InputError, match=words):
        measure_step(runnable(net), **({"batch_size": 2} | options))
    assert net.n_calls == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_gpu_that_is_not_there_is_told():
    with pytest.raises(InputError, match=r"no CUDA device to measure on .'cuda:1'."):
        measured(Net(), device="cuda:1")


def test_tf32_is_switched_for_products_and_convolutions_alike_and_back():
    class Backend:
        allow_tf32 = True

    class Backends:
        cudnn = Backend()

        class cuda:
            matmul = Backend()

    Backends.cuda.matmul.allow_tf32 = False
    with tf32_math(Backends, False):
        assert (Backends.cuda.matmul.allow_tf32, Backends.cudnn.allow_tf32) == (False, False)
    with tf32_math(Backends, True):
        assert (Backends.cuda.matmul.allow_tf32, Backends.cudnn.allow_tf32) == (True, True)
    assert (Backends.cuda.matmul.allow_tf32, Backends.cudnn.allow_tf32) == (False, True)


def test_compiled_means_torch_compile(monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda module: compiled.append(module) or module)
    assert measured(Net(), compiled=True, n_steps=1).compiled
    assert len(compiled) == 1


def test_batches_of_any_nesting_are_moved_and_cast():
    training = Training(runnable(Net()), precision="bf16")
    moved = training.to_device({"a": [torch.zeros(2), torch.zeros(2, dtype=torch.long)], "b": "text"})
    assert [tensor.dtype for tensor in moved["a"]] == [torch.bfloat16, torch.long]
    assert moved["b"] == "text"


def test_page_faults_of_a_step_are_counted():
    def touch(y):
        with mmap.mmap(-1, 2**22) as pages:  # 4 MiB straight from the system, however malloc was told to behave
            pages.madvise(mmap.MADV_NOHUGEPAGE)
            pages.write(b"1" * 2**22)
        return y

    faults = measured(Net(dict.fromkeys(range(1, 20), touch)), n_steps=3).page_faults
    assert faults is not None
    assert faults > 100 or measuring._page_faults() == 0


def test_a_gpu_that_is_not_there_is_told_by_its_number():
    assert check_device("cuda:1", FakeGpu(n_devices=2)) == "cuda:1"
    with pytest.raises(InputError, match=r"no 'cuda:9': of 2 CUDA devices the last is 'cuda:1'"):
        check_device("cuda:9", FakeGpu(n_devices=2))


def test_more_steps_than_anyone_waits_for_are_refused_before_the_first_one():
    class Untouched(nn.Module):
        def forward(self, x):
            raise AssertionError("no step may run")

    with pytest.raises(
        InputError, match=r"n_steps cannot be 9223372036854775807: give a whole number of at most 1,000,000,000\."
    ):
        tc.measure(Untouched(), torch.randn(2, 8), batch_size=2, n_steps=2**63 - 1)
