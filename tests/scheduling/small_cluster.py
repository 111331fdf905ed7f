"""Small jobs, tables and clusters that several tests use."""

import numpy as np

from traincast.scheduling.applications import Application, Learning
from traincast.scheduling.job import Job
from traincast.scheduling.machines import equal_nodes
from traincast.scheduling.measured_steps import StepRow, measured_steps
from traincast.scheduling.policies.registry import make_policy
from traincast.scheduling.profile import plain_profile
from traincast.scheduling.simulator import Rules, simulate_policy

AT_ONCE = Rules(interval_s=0)
ONE_TYPE = ("fifo", "srtf", "drf", "tiresias", "optimus", "gavel", "pollux", "traincast", "traincast-batch")


def job(name, submit_s=0.0, seconds=100.0, n=1, most=None, exponent=1.0, restart_s=0.0):
    profile = plain_profile("plain", seconds, n, max_devices=most, exponent=exponent)
    return Job(name=name, submit_s=submit_s, profile=profile, n_devices=n, restart_s=restart_s)


def simulate(jobs, policy="fifo", nodes=1, devices=4, rules=AT_ONCE):
    return simulate_policy(jobs, equal_nodes(nodes, devices), make_policy(policy), rules)


def ends(schedule):
    return {record.name: record.finish_s for record in schedule.jobs}


def tiny_application(fixed_s=0.0, noise=1.0):
    """A training of 2 epochs of 100 steps of 8: 0.1 s a sample and device, and a wait of `fixed_s` and more."""
    rows = []
    for shape in ((1,), (2,), (1, 1), (2, 2), (1, 2)):
        for local_batch in (2, 4, 8):
            sync_s = 0.01 * sum(shape) + fixed_s
            rows.append(
                StepRow(
                    shape=shape,
                    n_nodes=len(shape),
                    n_devices=sum(shape),
                    local_batch=local_batch,
                    step_s=0.1 * local_batch + sync_s,
                    sync_s=sync_s,
                )
            )
    learning = Learning(
        batches=np.array([8.0, 16.0, 32.0]),
        progress=np.array([100.0, 100.0]),
        grad_sqr=np.ones((3, 2)),
        grad_var=np.full((3, 2), noise),
    )
    return Application(
        name="tiny",
        steps={"GPU": measured_steps("tiny", rows)},
        learning=learning,
        max_local_batch=8,
        min_local_batch=2,
        max_devices=4,
    )
