"""Several processes: steps, links and what is said about them. The processes are real ones, forked from the test."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from dataclasses import replace

import pytest
import torch
import torch._dynamo  # by the first optimizer, if not here: once, and not in every process
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError, LostProcessError, MeasurementError
from traincast.measurement.processes.all_reduce import run_all_reduces
from traincast.measurement.processes.ddp import N_ROUNDS, Loop, run_ddp
from traincast.measurement.processes.group import is_loss_of_another, join, losses_told
from traincast.measurement.processes.link_fit import fit_link, ring_bytes
from traincast.measurement.processes.link_result import AllReduceMeasurement
from traincast.measurement.processes.result import ProcessesMeasurement
from traincast.measurement.processes.share import share_of, threads_of
from traincast.measurement.runnable import Runnable
from traincast.measurement.training import TIMING_LEARNING_RATE

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # from Python 3.12 on


def runnable(module: torch.nn.Module, *, width: int = 64) -> Runnable:
    return Runnable(
        name="test model",
        module=module,
        make_inputs=lambda n: torch.ones(n, width),
        forward=lambda called, inputs: called(inputs),
        loss=lambda output, inputs: output.mean(),
    )


def perceptron() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.BatchNorm1d(512), torch.nn.Linear(512, 512))


def between(n_processes, run, *, timeout_s=20.0):
    """What `run(group)` gives in each process, or the error that it raised there. A process that died gives None."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    pipes, processes = [], []
    for rank in range(n_processes):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_worker, args=(rank, n_processes, port, run, timeout_s, writer))
        process.start()
        writer.close()
        pipes.append(reader)
        processes.append(process)
    said = [_received(reader, timeout_s + 10) for reader in pipes]
    for process in processes:
        process.kill()
        process.join()
    return said


def _worker(rank, n_processes, port, run, timeout_s, writer):
    torch.set_num_threads(1)
    os.environ |= {"RANK": f"{rank}", "WORLD_SIZE": f"{n_processes}", "LOCAL_RANK": f"{rank}"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}"}
    try:
        writer.send(run(join("cpu", timeout_s=timeout_s)))
    except Exception as error:  # noqa: BLE001  (the test looks at it)
        writer.send(error if not is_loss_of_another(error) else "lost another")
    writer.close()
    signal.pause()  # until it is killed: the others may still be meeting it


def _received(reader, timeout_s):
    if not reader.poll(timeout_s):
        return "hangs"
    try:
        return reader.recv()
    except EOFError:
        return None


def test_a_data_parallel_step_is_measured_in_four_ways_and_both_processes_say_the_same():
    def steps(group):
        return run_ddp(group, runnable(perceptron()), batch_size=16, optimizer="adam", n_steps=2 * N_ROUNDS)

    first, second = between(2, steps)
    assert first.step == second.step
    assert first.n_processes == 2
    assert (first.backend, first.n_threads, first.batch_size) == ("gloo", 1, 16)
    assert first.gradient_bytes == 4 * sum(weight.numel() for weight in perceptron().parameters())
    ways = (first.step, first.compute, first.crowded, first.alone)
    assert [way.n for way in ways] == [2 * N_ROUNDS] * 4
    assert first.exposed.n == N_ROUNDS
    assert first.step_s > first.exposed_s
    assert 0 < sum(first.phases[name].median for name in first.phases) < 10 * first.step_s
    assert first.bus_bytes_per_s > 0
    assert first.bandwidth_utilisation_fraction > 0
    assert ProcessesMeasurement.from_dict(first.to_dict()) == first


def test_the_gradients_that_ddp_reduces_are_the_mean_of_those_of_the_shares():
    """Nothing about timing: the loop that is timed must be the training that people run."""

    def moved(group):
        module = torch.nn.Linear(4, 1, bias=False)
        torch.nn.init.zeros_(module.weight)
        model = replace(runnable(module), make_inputs=lambda n: torch.full((n, 4), float(group.rank + 1)))
        Loop(group, model, 1, optimizer="sgd", precision="fp32").run("step", 3)
        return module.weight.detach().tolist()[0]

    expected = [-3 * TIMING_LEARNING_RATE * (1 + 2) / 2] * 4
    assert between(2, moved) == [pytest.approx(expected)] * 2


def test_an_all_reduce_benchmark_tells_bandwidths_and_a_link():
    sizes = (4096, 1048576, 16777216)
    first, second = between(2, lambda group: run_all_reduces(group, sizes_bytes=sizes, n_rounds=3))
    assert first.rows == second.rows
    assert [row.n_bytes for row in first.rows] == list(sizes)
    assert first.rows[-1].bus_bytes_per_s == pytest.approx(first.rows[-1].bytes_per_s)  # 2(P-1)/P is 1 for two
    assert 1e-6 < first.link.latency_s.median < 1
    assert 1e6 < first.link.bytes_per_s.median < 1e12
    assert AllReduceMeasurement.from_dict(first.to_dict()) == first


class FailsAtStep(torch.nn.Module):
    def __init__(self, rank, step, action):
        super().__init__()
        self.inner, self.rank, self.step, self.action, self.n = torch.nn.Linear(64, 64), rank, step, action, 0

    def forward(self, inputs):
        self.n += 1
        if self.n == self.step and os.environ["RANK"] == str(self.rank):
            self.action()
        return self.inner(inputs)


def _raise():
    raise ValueError("the third batch is bad")


def test_what_is_known_is_told_after_each_round_but_the_last():
    def steps(group):
        told = []
        whole = run_ddp(group, runnable(perceptron()), batch_size=4, n_steps=N_ROUNDS, on_round=told.append)
        return whole, told

    (whole, told), _ = between(2, steps)
    assert [each.exposed.n for each in told] == list(range(1, N_ROUNDS))
    assert all(each.is_partial and each.warnings[0].startswith("Stopped after") for each in told)
    assert ProcessesMeasurement.from_dict(told[0].to_dict()) == told[0]
    assert not whole.is_partial

    def link(group):
        told = []
        whole = run_all_reduces(group, sizes_bytes=(4096, 2**22), n_rounds=3, on_round=told.append)
        return whole, told

    (whole, told), _ = between(2, link)
    assert [each.rows[0].seconds.n for each in (*told, whole)] == [1, 2, 3]
    assert [each.is_partial for each in (*told, whole)] == [True, True, False]
    assert AllReduceMeasurement.from_dict(told[0].to_dict()) == told[0]


def test_a_module_that_raises_in_one_process_is_told_there_and_the_other_does_not_hang():
    other, failed = between(2, lambda group: run_ddp(group, runnable(FailsAtStep(1, 3, _raise)), batch_size=4))
    assert isinstance(failed, MeasurementError)
    assert str(failed) == "Step 3 of test model failed (ValueError: the third batch is bad)."
    assert other == "lost another"


def test_a_process_that_is_killed_leaves_no_other_one_hanging():
    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    began_s = time.monotonic()
    other, killed = between(2, lambda group: run_ddp(group, runnable(FailsAtStep(1, 3, kill)), batch_size=4))
    assert killed is None
    assert other == "lost another"
    assert time.monotonic() - began_s < 20


def test_a_loss_that_is_not_finite_is_a_warning():
    def steps(group):
        model = replace(runnable(torch.nn.Linear(64, 8)), loss=lambda output, inputs: output.mean() * float("nan"))
        return run_ddp(group, model, batch_size=2, n_steps=1)

    first, _ = between(2, steps)
    assert first.warnings[0].startswith("Process 0: The loss was nan at step 1 and not finite at ")
    assert first.warnings[1].startswith("Process 1: ")


def test_a_loss_that_was_not_finite_for_a_moment_only_is_a_warning_too():
    def steps(group):
        losses = iter([1.0, float("nan")])
        model = replace(runnable(torch.nn.Linear(64, 8)), loss=lambda output, inputs: output.mean() * next(losses, 1.0))
        return run_ddp(group, model, batch_size=2, n_steps=1, optimizer="none")  # which would spread it

    first, _ = between(2, steps)
    assert "The loss was nan at step 2 and not finite at 1 of " in first.warnings[0]


def test_an_example_that_fails_is_one_sentence():
    def steps(group):
        model = replace(runnable(torch.nn.Linear(64, 8)), make_inputs=lambda n: [][n])
        return run_ddp(group, model, batch_size=2, n_steps=1)

    said = between(2, steps)
    assert all("Preparing test model and its batch failed (IndexError" in str(each) for each in said)


def test_a_model_with_nothing_to_train_is_refused():
    frozen = torch.nn.Linear(64, 8).requires_grad_(requires_grad=False)
    said = between(2, lambda group: run_ddp(group, runnable(frozen), batch_size=4))
    assert all("has no trainable parameters" in str(each) for each in said)


@given(
    n=st.integers(2, 16),
    latency_s=st.floats(1e-6, 1e-3),
    bytes_per_s=st.floats(1e8, 1e11),
)
def test_a_link_without_noise_is_found_again(n, latency_s, bytes_per_s):
    sizes = [4096 * 4**power for power in range(8)]
    seconds = [[2 * (n - 1) * latency_s + ring_bytes(size, n) / bytes_per_s] * 2 for size in sizes]
    fit = fit_link(n, sizes, seconds)
    assert fit.latency_s.median == pytest.approx(latency_s, rel=1e-3)
    assert fit.bytes_per_s.median == pytest.approx(bytes_per_s, rel=1e-3)
    assert fit.all_reduce_s(sizes[3]) == pytest.approx(seconds[3][0], rel=1e-3)


def test_rounds_that_differ_give_the_link_a_spread():
    fit = fit_link(2, [1000, 1_000_000], [[3e-6, 5e-6], [1.002e-3, 2.004e-3]])
    assert fit.bytes_per_s.minimum < 0.6e9 < 0.9e9 < fit.bytes_per_s.p90


def test_a_round_that_tells_no_bandwidth_does_not_spoil_the_others():
    fit = fit_link(2, [1000, 1_000_000], [[3e-6, 9.0], [1.002e-3, 1e-3]])
    assert fit.bytes_per_s.n == 1
    assert fit.bytes_per_s.median == pytest.approx(1e9, rel=1e-3)


def test_a_link_needs_two_sizes_and_a_time_that_grows():
    with pytest.raises(InputError, match="at least two sizes"):
        fit_link(2, [4096], [[1e-3]])
    with pytest.raises(InputError, match="longer with more bytes"):
        fit_link(2, [4096, 8192], [[1e-3], [1e-4]])


@given(n_processes=st.integers(2, 64), share=st.integers(1, 1000))
def test_the_shares_of_a_batch_add_up(n_processes, share):
    assert share_of(n_processes * share, n_processes) == share


@pytest.mark.parametrize(("batch_size", "n_processes"), [(3, 2), (1, 2), (0, 2), (-4, 2), (10, 4)])
def test_a_batch_that_cannot_be_shared_equally_is_refused(batch_size, n_processes):
    with pytest.raises(
        InputError, match=f"A batch of {batch_size} cannot be split equally among {n_processes} processes"
    ):
        share_of(batch_size, n_processes)


@pytest.mark.parametrize("n_processes", [1, 0, -1])
def test_fewer_than_two_processes_are_refused(n_processes):
    with pytest.raises(
        InputError, match=f"Between {n_processes} processes there is nothing to measure: give at least 2"
    ):
        share_of(8, n_processes)


@pytest.mark.parametrize(("n_cores", "n_processes", "n_threads"), [(2, 2, 1), (8, 2, 4), (8, 3, 2), (2, 4, 1)])
def test_cores_are_shared_equally_and_every_process_has_a_thread(n_cores, n_processes, n_threads):
    assert threads_of(n_cores, n_processes) == n_threads


def test_a_process_outside_torchrun_is_told_what_is_missing(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(InputError, match="RANK is not set"):
        join("cpu", timeout_s=1)


def test_processes_that_do_not_meet_are_one_sentence_with_the_place(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = f"{free.getsockname()[1]}"
    told = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(LostProcessError, match=rf"could not connect at 127\.0\.0\.1:{port} \("):
        join("cpu", timeout_s=1)


def test_what_torch_raises_for_a_lost_process_is_an_error_of_ours_and_others_stay_as_they_are():
    with pytest.raises(LostProcessError, match=r"Another process was lost \(gloo/transport"), losses_told():
        raise RuntimeError("gloo/transport: connection closed by peer")
    with pytest.raises(RuntimeError, match="of the user"), losses_told():
        raise RuntimeError("of the user")
