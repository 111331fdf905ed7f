"""A timing loop that reads its clock while the device still works is found out."""

import time
import timeit

import pytest
from fake_gpu import FakeGpu

from traincast.errors import InputError
from traincast.measurement import audit
from traincast.measurement.audit import audit_loop


@pytest.fixture
def gpu(monkeypatch):
    """A day in the lab: 100 launches a step, whose work takes seven times as long."""
    fake = FakeGpu(launch_s=0.035)
    monkeypatch.setattr(time, "perf_counter", fake.clock)
    monkeypatch.setattr(time, "time", fake.clock)
    return fake


def test_launches_timed_instead_of_work_are_told_with_the_factor(gpu):
    def lab_epoch():
        start_s = time.time()
        for _ in range(100):
            gpu.ask(work_s=0.240)
        print(time.time() - start_s)

    found = audit_loop(lab_epoch, cuda=gpu)
    assert (found.n_clock_reads, found.n_pending) == (2, 1)
    assert found.loop_s == pytest.approx(3.5)
    assert found.true_s == pytest.approx(24.0, rel=0.01)
    assert "the loop saw 3.50 s for what took 24.0 s, 6.87 x too fast" in found.warning
    assert "torch.cuda.synchronize()" in found.warning


def test_a_loop_that_waits_before_its_clock_is_right(gpu):
    def careful_epoch():
        start_s = time.perf_counter()
        gpu.ask(work_s=2.0)
        gpu.synchronize()
        return time.perf_counter() - start_s

    found = audit_loop(careful_epoch, cuda=gpu)
    assert (found.n_clock_reads, found.n_pending) == (2, 0)
    assert found.loop_s == found.true_s
    assert found.warning is None


def test_waiting_only_at_the_end_makes_the_total_right_and_the_steps_wrong(gpu):
    def half_careful_epoch():
        for _ in range(3):
            time.perf_counter()
            gpu.ask(work_s=1.0)
        gpu.synchronize()
        time.perf_counter()

    found = audit_loop(half_careful_epoch, cuda=gpu)
    assert (found.n_clock_reads, found.n_pending) == (4, 2)
    assert "the total is right" in found.warning


def test_work_from_before_the_loop_is_not_held_against_it(gpu):
    gpu.ask(work_s=50.0)
    found = audit_loop(lambda: (time.time(), time.time()), cuda=gpu)
    assert found.n_pending == 0


def test_work_on_the_second_gpu_counts_as_well():
    cuda = FakeGpu(n_devices=2)

    def loop():
        time.perf_counter()
        cuda.ask(work_s=9.0, device=1)
        time.perf_counter()

    assert audit_loop(loop, cuda=cuda).n_pending == 1


def test_a_loop_without_a_clock_cannot_be_judged(gpu):
    assert "never read a clock" in audit_loop(lambda: gpu.ask(work_s=1.0), cuda=gpu).warning


def test_clocks_imported_by_name_and_those_of_timeit_are_watched():
    names = {"audit": audit}
    code = "from time import monotonic_ns\nimport timeit\ndef loop():\n    monotonic_ns()\n    timeit.default_timer()\n"
    exec(compile(code, "a user's file", "exec"), names)  # noqa: S102
    before = names["monotonic_ns"]
    assert audit_loop(names["loop"], cuda=FakeGpu()).n_clock_reads == 2
    assert names["monotonic_ns"] is before is time.monotonic_ns


def test_clocks_are_as_before_even_if_the_loop_fails():
    before = time.time, time.perf_counter, time.monotonic_ns, timeit.default_timer

    def fails():
        raise RuntimeError("out of data")

    with pytest.raises(RuntimeError, match="out of data"):
        audit_loop(fails, cuda=FakeGpu())
    assert (time.time, time.perf_counter, time.monotonic_ns, timeit.default_timer) == before


def test_on_a_machine_without_a_gpu_no_clock_read_is_too_early():
    def loop():
        start_s = time.perf_counter()
        sum(range(1000))
        return time.perf_counter() - start_s

    found = audit_loop(loop)
    assert (found.n_clock_reads, found.n_pending, found.warning) == (2, 0, None)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(InputError, match="takes a function"):
        audit_loop(3)
