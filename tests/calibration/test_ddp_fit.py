"""What several processes lose to each other, read off whole steps."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.calibration.ddp_fit import fit_ddp, n_latencies
from traincast.errors import MeasurementError
from traincast.measurement.processes.link_fit import ring_bytes


@dataclass(frozen=True)
class Step:
    crowded_s: float
    step_s: float
    bucket_bytes: tuple[int, ...]
    has_buffers: bool


def steps_of(n_processes, waiting, latency_s, bytes_per_s, *, noise=0.0):
    rng = np.random.default_rng(0)
    for crowded_s in (0.004, 0.03, 0.2):
        for buckets in ((40_000,), (600_000,), (1_000_000, 5_000_000), (4_000_000, 21_000_000)):
            for has_buffers in (False, True):
                n_waits = n_latencies(n_processes, len(buckets), has_buffers=has_buffers)
                sent_s = ring_bytes(sum(buckets), n_processes) / bytes_per_s
                step_s = crowded_s * (1 + waiting) + n_waits * latency_s + sent_s
                yield Step(crowded_s, step_s * np.exp(noise * rng.standard_normal()), buckets, has_buffers)


@given(
    n=st.integers(2, 8),
    waiting=st.floats(0.0, 0.5),
    latency_s=st.floats(1e-5, 5e-3),
    bytes_per_s=st.floats(1e8, 1e10),
)
def test_prices_of_steps_without_noise_are_found(n, waiting, latency_s, bytes_per_s):
    found = fit_ddp(n, list(steps_of(n, waiting, latency_s, bytes_per_s)))
    assert found.waiting_fraction == pytest.approx(waiting, abs=1e-6)
    assert found.latency_s == pytest.approx(latency_s, rel=1e-4)
    assert found.bytes_per_s == pytest.approx(bytes_per_s, rel=1e-4)


def test_noise_of_a_tenth_moves_them_little():
    found = fit_ddp(2, list(steps_of(2, 0.1, 1e-3, 3e8, noise=0.1)))
    assert found.bytes_per_s == pytest.approx(3e8, rel=0.3)
    assert found.latency_s == pytest.approx(1e-3, rel=0.3)


def test_a_bucket_takes_a_ring_and_buffers_two_messages_down_a_tree():
    assert n_latencies(2, 1, has_buffers=False) == 2
    assert n_latencies(4, 3, has_buffers=False) == 18
    assert n_latencies(4, 3, has_buffers=True) == 22


def test_steps_that_tell_no_bandwidth_are_refused():
    flat = [Step(0.1, 0.12, (n_bytes,), False) for n_bytes in (1000, 10_000_000)]
    with pytest.raises(MeasurementError, match="no bandwidth can be determined"):
        fit_ddp(2, flat)
