"""Batch sizes until memory ends, each in a process of its own."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweep_samples import measured
from traincast.api.sweeping import sweep_batches as sweep_named
from traincast.errors import InputError
from traincast.measurement.sweeps.batch import BatchRow, BatchSweep, sweep_batches
from traincast.measurement.sweeps.child import outcome_of
from traincast.measurement.sweeps.collect import collect
from traincast.measurement.sweeps.process_memory import available_bytes

WIDE = """
import torch

def make():
    return torch.nn.Linear(100_000, 2), lambda n: (torch.zeros(n, 100_000),), lambda output, inputs: output.mean()

def killed():
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
"""


def row(batch_size, samples_per_s):
    return BatchRow(
        batch_size=batch_size,
        status="measured",
        measurement=measured(batch_size / samples_per_s, batch_size=batch_size),
    )


def ends_at(limit, status="out of memory"):
    """A machine on which all sizes below the limit run, each sample in a millisecond."""
    return lambda size: row(size, 1000.0) if size < limit else BatchRow(batch_size=size, status=status)


def swept(attempt, first=1, max_step_s=20.0):
    return sweep_batches("m", attempt, first=first, max_step_s=max_step_s)


def test_sizes_grow_four_times_until_memory_ends_and_that_is_a_row():
    sweep = swept(ends_at(4096))
    assert [one.batch_size for one in sweep.rows] == [1, 4, 16, 64, 256, 1024, 4096]
    assert sweep.rows[-1].status == "out of memory"
    assert sweep.rows[-1].step_s is None
    assert "Out of memory at 4,096." in sweep.verdict


def test_the_smallest_size_within_5_percent_of_the_best_is_enough():
    rows = (row(1, 100.0), row(4, 960.0), row(16, 1000.0), row(64, 990.0))
    sweep = BatchSweep(model="m", rows=rows, max_step_s=20.0)
    assert sweep.recommended.batch_size == 4
    assert sweep.verdict.startswith("A batch of 4 is enough: 960 samples/s, within 5 % of the best (1,000 at 16).")


def test_where_throughput_still_rises_at_the_end_that_is_said():
    sweep = BatchSweep(model="m", rows=(row(1, 100.0), row(4, 400.0)), max_step_s=20.0)
    assert "The largest batch that ran, 4, is the quickest: 400 samples/s, and still rising" in sweep.verdict


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=8))
def test_no_smaller_size_than_the_recommended_one_is_good_enough(speeds):
    rows = tuple(row(4**power, speed) for power, speed in enumerate(speeds))
    best = BatchSweep(model="m", rows=rows, max_step_s=20.0).recommended
    assert best.samples_per_s >= 0.9499 * max(speeds)
    assert all(one.samples_per_s < 0.9501 * max(speeds) for one in rows if one.batch_size < best.batch_size)


def test_a_step_that_takes_too_long_ends_the_sweep_and_is_told():
    slow = BatchRow(batch_size=16, status="too slow", first_step_s=31.0)
    sweep = swept(lambda size: row(size, 1.0) if size < 16 else slow)
    assert len(sweep.rows) == 3
    assert "Stopped at 16, where one step took 31.0 s: longer than --max-step-s, 20.0 s." in sweep.verdict


def test_a_batch_of_one_that_fails_under_batch_norm_does_not_end_the_sweep():
    failed = BatchRow(batch_size=1, status="failed", message="Expected more than 1 value per channel.")
    sweep = swept(lambda size: failed if size == 1 else ends_at(64)(size))
    assert [one.status for one in sweep.rows] == ["failed", "measured", "measured", "out of memory"]


def test_a_model_that_never_runs_is_not_tried_for_ever():
    sweep = swept(lambda size: BatchRow(batch_size=size, status="failed", message="No."))
    assert len(sweep.rows) == 2
    assert sweep.verdict == "No batch size could be measured. Stopped at 4: No."


def test_ctrl_c_keeps_the_sizes_before_it():
    def attempt(size):
        if size == 16:
            raise KeyboardInterrupt
        return row(size, 1000.0)

    sweep = swept(attempt)
    assert sweep.was_stopped
    assert [one.batch_size for one in sweep.rows] == [1, 4]
    assert "Stopped by Ctrl-C after 4." in sweep.verdict


def test_ctrl_c_before_the_first_row_ends_the_program_as_usual():
    def attempt(size):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(attempt)


def test_a_real_ctrl_c_that_a_measurement_swallows_still_ends_the_sweep():
    def rows():
        yield "whole"
        try:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(5)
        except KeyboardInterrupt:
            yield "what there was"
        yield "never reached"

    before = signal.getsignal(signal.SIGINT)
    done = collect(rows())
    assert (done.rows, done.was_stopped) == (("whole", "what there was"), True)
    assert signal.getsignal(signal.SIGINT) is before


def test_every_row_is_told_as_it_comes():
    told = []
    sweep_batches("m", ends_at(16), first=1, max_step_s=20.0, on_row=lambda one: told.append(one.batch_size))
    assert told == [1, 4, 16]


@pytest.mark.parametrize(
    ("code", "errors", "is_memory"),
    [
        (-signal.SIGKILL, "", True),
        (-signal.SIGABRT, "terminate called after throwing an instance of 'std::bad_alloc'", True),
        (1, "libgomp: Thread creation failed: Cannot allocate memory", True),
        (-signal.SIGSEGV, "", False),
        (1, "SyntaxError: invalid syntax", False),
    ],
)
def test_how_a_child_ended_tells_whether_memory_did(code, errors, is_memory):
    outcome = outcome_of(code, None, errors)
    assert outcome.answer is None
    assert outcome.died_of_memory is is_memory
    assert (errors.splitlines() or ["without a word"])[-1] in outcome.last_words


@pytest.mark.skipif(available_bytes() is None, reason="only Linux says what memory is free")
def test_what_a_process_takes_shows_in_its_peak():
    # A process of its own: this one may have had a higher peak before.
    code = (
        "from traincast.measurement.sweeps.process_memory import peak_bytes\n"
        "before = peak_bytes()\n"
        "taken = bytearray(2**28)\n"
        "taken[:: 2**12] = b'x' * 2**16  # touched: memory that was only asked for is not there yet\n"
        "assert peak_bytes() - before > 2**27, (before, peak_bytes())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(available_bytes() is None, reason="the limit is one of Linux")
def test_memory_really_ends_in_the_child_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "wide.py").write_text(WIDE)
    sweep = sweep_named(f"{tmp_path}/wide.py:make", first_batch_size=1024, memory_bytes=2**30, n_steps=1)
    assert [one.status for one in sweep.rows] == ["measured", "out of memory"]
    fits, ended = sweep.rows
    assert fits.peak_memory_bytes > 1024 * 100_000 * 4
    assert fits.step_s > 0
    assert "ran out of memory" in ended.message


def test_a_child_that_the_kernel_kills_ran_out_of_memory(tmp_path):
    (tmp_path / "wide.py").write_text(WIDE)
    sweep = sweep_named(f"{tmp_path}/wide.py:killed", n_steps=1)
    assert [one.status for one in sweep.rows] == ["out of memory"]
    assert "SIGKILL" in sweep.rows[0].message


def test_when_the_sweep_is_killed_its_child_ends_too(tmp_path):
    """kill -9: no handler of ours runs, and the child has a session of its own."""
    file, mark = tmp_path / "net.py", tmp_path / "pid"
    file.write_text(
        "import os, pathlib, time\n"
        f"def slow():\n    pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\n    time.sleep(600)\n"
    )
    script = f"from traincast.api.sweeping import sweep_batches; sweep_batches({f'{file}:slow'!r})"
    with subprocess.Popen([sys.executable, "-c", script]) as sweep:
        until_s = time.monotonic() + 60
        while not (mark.is_file() and mark.read_text()) and time.monotonic() < until_s:
            time.sleep(0.05)
        child = int(mark.read_text())
        sweep.kill()
    while is_running(child) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert not is_running(child)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"first_batch_size": 0}, "A batch of 0 samples cannot be measured"),
        ({"max_step_s": 0.0}, "A step cannot take at most 0 s"),
        ({"max_step_s": float("nan")}, "A step cannot take at most nan s"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_before_anything_runs(settings, words):
    with pytest.raises(InputError, match=words):
        sweep_named("mnist_cnn", **settings)
