"""Instants that mean something on a device that works on."""

import pytest
from fake_gpu import FakeGpu

from traincast.measurement.stopwatch import CpuStopwatch, CudaStopwatch, stopwatch_for


def test_on_a_gpu_a_duration_is_that_of_the_work_not_of_the_launch():
    gpu = FakeGpu(launch_s=0.001)
    stopwatch = CudaStopwatch(gpu, "cuda")
    stopwatch.mark()
    gpu.ask(work_s=0.500)
    stopwatch.mark()
    gpu.ask(work_s=0.250)
    stopwatch.mark()
    assert gpu.clock() == pytest.approx(100.002)  # the host was done long before
    assert stopwatch.read() == pytest.approx([0.501, 0.250])
    assert gpu.query()


def test_what_was_read_is_forgotten():
    gpu = FakeGpu()
    stopwatch = CudaStopwatch(gpu, "cuda")
    stopwatch.mark()
    stopwatch.mark()
    assert len(stopwatch.read()) == 1
    assert stopwatch.read() == []


def test_on_a_cpu_n_marks_make_n_minus_one_durations_none_of_them_negative():
    stopwatch = stopwatch_for("cpu")
    assert isinstance(stopwatch, CpuStopwatch)
    for _ in range(4):
        stopwatch.mark()
    durations_s = stopwatch.read()
    assert len(durations_s) == 3
    assert min(durations_s) >= 0
    assert stopwatch.read() == []


def test_a_cuda_device_by_number_gets_events():
    assert isinstance(stopwatch_for("cuda:1"), CudaStopwatch)


def test_the_second_gpu_is_timed_by_its_own_work_and_not_by_the_idle_first():
    gpu = FakeGpu(launch_s=0.001, n_devices=2)
    stopwatch = CudaStopwatch(gpu, "cuda:1")
    stopwatch.mark()
    gpu.ask(work_s=0.500, device=1)
    stopwatch.mark()
    assert stopwatch.read() == pytest.approx([0.501])
    gpu.ask(work_s=1.0, device=1)
    stopwatch.synchronize()
    assert gpu.clock() == pytest.approx(gpu.done_s[1])
