"""Our own steps under the profiler."""

import pytest
import torch
from torch import nn

from profiled_traces import small_cnn
from traincast.errors import InputError, MeasurementError
from traincast.measurement.profile_step import as_timed, profile_step
from traincast.measurement.runnable import Runnable
from traincast.records.profiled_run import ProfiledRun

torch.set_num_threads(1)


def runnable(module):
    return Runnable(
        name="cnn",
        module=module,
        make_inputs=lambda batch_size: torch.zeros(batch_size, 3, 16, 16),
        forward=lambda module, inputs: module(inputs),
        loss=lambda output, inputs: output.square().mean(),
    )


def test_a_step_is_told_by_phase_and_kind():
    run = profile_step(runnable(small_cnn()), batch_size=4, optimizer="adam", n_steps=3)
    assert list(run.phases) == ["forward", "loss", "backward", "optimizer"]
    assert sum(run.phases.values()) == pytest.approx(run.step_s)
    assert {"convolution", "gemm", "pooling", "normalisation"} <= set(run.work["forward"])
    assert {"convolution backward", "gemm"} <= set(run.work["backward"])
    assert run.work["loss"]
    assert run.work["optimizer"]
    for phase, kinds in run.work.items():
        assert sum(kinds.values()) <= run.phases[phase] * (1 + 1e-9)


def test_larger_convolutions_take_a_larger_share():
    wide = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1))
    run = profile_step(runnable(wide), batch_size=8, n_steps=3)
    forward = run.work["forward"]
    assert max(forward, key=forward.get) == "convolution"


def test_a_module_that_fails_is_one_sentence():
    with pytest.raises(MeasurementError, match=r"A step of cnn at batch 4 failed \(RuntimeError"):
        profile_step(runnable(nn.Linear(7, 7)), batch_size=4)


def test_no_samples_are_no_step():
    with pytest.raises(InputError, match="A batch of 0 samples cannot be measured"):
        profile_step(runnable(small_cnn()), batch_size=0)


def test_no_gpu_is_no_profile_of_one():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match="no CUDA device"):
        profile_step(runnable(small_cnn()), batch_size=4, device="cuda")


def profiled(work_s, phase_s):
    return ProfiledRun(
        source="", device_kind="cpu", n_steps=1, step_s=phase_s, phases={"forward": phase_s},
        work={"forward": {"gemm": work_s}}, ops=(),
    )  # fmt: skip


def test_what_the_profiler_costs_falls_on_the_host():
    run = as_timed(profiled(work_s=6.0, phase_s=10.0), {"forward": 8.0})
    assert run.work == {"forward": {"gemm": 6.0}}
    assert run.host_s == pytest.approx(2.0)
    assert "25 % slower" in run.notes[0]


def test_ops_never_take_longer_than_the_phase_that_was_timed():
    run = as_timed(profiled(work_s=9.0, phase_s=10.0), {"forward": 3.0})
    assert run.work == {"forward": {"gemm": pytest.approx(3.0)}}
    assert run.host_s == 0


def test_a_slower_phase_without_the_profiler_was_slower_alike():
    run = as_timed(profiled(work_s=6.0, phase_s=10.0), {"forward": 20.0})
    assert run.work == {"forward": {"gemm": pytest.approx(12.0)}}
    assert run.host_s == pytest.approx(8.0)
