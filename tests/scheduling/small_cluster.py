"""Small jobs, tables and clusters that several tests use."""

from dataclasses import dataclass

import numpy as np

from traincast.scaling.optimus import SpeedModel
from traincast.scheduling.applications import Application, Learning
from traincast.scheduling.decision import NEVER
from traincast.scheduling.forecast_errors import ForecastErrors
from traincast.scheduling.job import Job
from traincast.scheduling.live import Live
from traincast.scheduling.machines import find_machines
from traincast.scheduling.measured_steps import StepRow, measured_steps
from traincast.scheduling.policies.registry import make_policy
from traincast.scheduling.profile import ServersProfile, plain_profile
from traincast.scheduling.simulator import Rules, simulate_policy
from traincast.scheduling.speeds import Speeds

AT_ONCE = Rules(interval_s=0)
ONE_TYPE = ("fifo", "srtf", "drf", "tiresias", "optimus", "gavel", "pollux", "traincast", "traincast-batch")


def equal_nodes(n_nodes, devices_per_node):
    return find_machines(f"{n_nodes}x{devices_per_node}xGPU")


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


def server_job(name="a", submit_s=0.0, n_steps=500.0, asked=(1, 1), restart_s=10.0, most=16):
    """A training with parameter servers that takes so many steps, though its owner expects 700."""
    b0, b1, b2 = 0.01, 0.5, 0.1
    profile = ServersProfile(
        name="ps",
        speed=SpeedModel(mode="sync", theta=(0.5, 0.1, 0.3, 0.0, 0.01), batch_size=16),
        loss=(b0, b1, b2),
        target_loss=1 / (b0 * n_steps + b1) + b2,
        expected_steps=700.0,
        max_devices=most,
        asked=asked,
    )
    return Job(name=name, submit_s=submit_s, profile=profile, n_devices=sum(asked), restart_s=restart_s)


def state_of(jobs, machines, *, adapts_batch=False, sigma=0.0):
    """All jobs submitted, nobody placed."""
    errors = ForecastErrors([0.0] * len(jobs), speed_sigma=sigma)
    live = Live(jobs, machines, Speeds(machines), adapts_batch=adapts_batch, errors=errors)
    live.active = dict.fromkeys(range(len(jobs)))
    return live


@dataclass
class Told:
    """A policy that says what a test wants."""

    tell: object  # state -> Decision
    wakes: float = NEVER
    name: str = "told"
    adapts_batch: bool = False
    is_random: bool = False

    def fresh(self, seed):
        return self

    def decide(self, state):
        return self.tell(state)

    def wakes_s(self, state):
        return self.wakes
