"""Files of trainings with parameter servers."""

import numpy as np
import pytest

import traincast.api.simulating as api
from traincast.errors import FileFormatError
from traincast.scheduling.jobs_file import read_jobs

SERVERS = "name,submit_s,mode,theta,batch_size,loss,target_loss,expected_steps,n_servers,n_workers,max_devices\n"


def test_jobs_with_parameter_servers_run_under_every_policy(written):
    rows = "".join(
        f"job{n},{60 * n},sync,0.5 0.1 0.3 0 0.01,16,0.01 0.5 0.1,0.4,{500 + 100 * n},1,2,12\n" for n in range(3)
    )
    path = written(SERVERS + rows)
    policies = ["optimus-online", "fifo", "srtf", "drf", "tiresias", "gavel", "optimus", "pollux", "traincast"]
    for outcome in api.simulate_many(path, "2x4xGPU", policies, restart_s=5).outcomes:
        assert np.isfinite(outcome.schedule.completions_s).all(), outcome.policy
        assert all(sum(n for _, n in span.placement) >= 2 for span in outcome.schedule.spans), outcome.policy


def test_places_without_a_word_about_servers_are_split_as_asked(written):
    (one,) = read_jobs(written(SERVERS + "a,0,sync,0.5 0.1 0.3 0 0.01,16,0.01 0.5 0.1,0.4,500,1,2,\n"))
    assert (one.n_devices, one.profile.min_devices, one.profile.max_devices) == (3, 2, 64)
    assert [one.profile.n_servers_of(n) for n in (2, 3, 6, 12)] == [1, 1, 2, 4]
    schedule = api.simulate([one], "1x3xGPU", policy="fifo", interval_s=0, restart_s=0)
    n_steps = (1 / 0.3 - 0.5) / 0.01
    assert schedule.makespan_s == pytest.approx(n_steps / float(one.profile.speed.steps_per_s(1, 2)))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,0,sync,0.5 0.1,16,0.01 0.5 0.1,0.4,500,1,2,12", "has 5 coefficients, not 2"),
        ("a,0,both,0.5 0.1,16,0.01 0.5 0.1,0.4,500,1,2,12", "'sync' or 'async', not 'both'"),
        ("a,0,sync,0.5 x,16,0.01 0.5 0.1,0.4,500,1,2,12", "theta is '0.5 x', not numbers"),
        ("a,0,sync,0.5 0.1 0.3 0 0.01,,0.01 0.5 0.1,0.4,500,1,2,12", "needs the global batch size"),
        ("a,0,sync,0.5 0.1 0.3 0 0.01,16,0.01 0.5,0.4,500,1,2,12", "loss has 2 numbers"),
        ("a,0,sync,0.5 0.1 0.3 0 0.01,16,0.01 0.5 0.1,9,500,1,2,12", "does not fall to 9"),
        ("a,0,sync,0.5 0.1 0.3 0 0.01,16,0.01 0.5 0.1,0.4,0,1,2,12", "expected steps should be above 0"),
        ("a,0,sync,0.5 0.1 0.3 0 0.01,16,0.01 0.5 0.1,0.4,500,1,0,12", "n_workers is 0"),
        ("a,0,sync,0.5 0.1 0.3 0 0.01,16,0.01 0.5 0.1,0.4,500,4,4,6", "together at most 6"),
    ],
)
def test_parameter_servers_that_cannot_be_are_told(written, row, words):
    with pytest.raises(FileFormatError, match=f"line 2: .*{words}"):
        read_jobs(written(SERVERS + row + "\n"))
