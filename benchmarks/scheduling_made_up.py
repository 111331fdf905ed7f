"""Jobs made up at random, for what no published workload has: parameter servers, and several types of device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduling_speed import table
from traincast.scaling.optimus import SpeedModel
from traincast.scheduling.decision import EVERY_TIME, Decision, Policy, State
from traincast.scheduling.job import Job
from traincast.scheduling.machines import find_machines
from traincast.scheduling.observations import NoisyMonitor, servers_profile
from traincast.scheduling.placing import only_kind, place_evenly
from traincast.scheduling.policies.online_optimus import OnlineOptimus, marginal_gains
from traincast.scheduling.policies.registry import POLICIES
from traincast.scheduling.profile import CountProfile, ServersProfile
from traincast.scheduling.simulator import Rules, simulate_policy


def online(n_seeds: int) -> str:
    """Models that are fitted while jobs run, against the truth and against rivals, on jobs with parameter servers."""
    machines, rows = find_machines("8x4xGPU"), []
    policies: dict[str, Policy] = {"Optimus, told the truth": KnowingOptimus()}
    for sigma in (0.0, 0.05, 0.2):
        policies[f"optimus-online, noise {100 * sigma:.0f} %"] = OnlineOptimus(monitor=NoisyMonitor(sigma=sigma))
    policies |= {
        f"{name}, servers as asked": POLICIES[name]() for name in ("fifo", "srtf", "tiresias", "optimus", "traincast")
    }
    for name, policy in policies.items():
        means = [
            simulate_policy(server_jobs(20, seed), machines, policy, Rules(seed=seed)).mean_completion_s
            for seed in range(n_seeds)
        ]
        rows.append((name, f"{np.mean(means):,.0f}", *(f"{mean:,.0f}" for mean in means)))
    return table(("policy", "mean completion, s", *(f"seed {seed}" for seed in range(n_seeds))), rows)


def several_types(n_seeds: int) -> str:
    """Random jobs that are 1 to 4 times as fast on the second of two types."""
    machines, rows = find_machines("8x4xT4+4x4xV100"), []
    for name in ("fifo", "srtf", "drf", "tiresias", "gavel"):
        found = [simulate_policy(jobs_of_two_types(60, seed), machines, POLICIES[name]()) for seed in range(n_seeds)]
        rows.append(
            (
                name,
                f"{np.mean([one.mean_completion_s for one in found]):,.0f}",
                f"{np.mean([one.makespan_s for one in found]):,.0f}",
                f"{100 * np.mean([one.fairness_fraction for one in found]):.0f} %",
                f"{np.mean([one.n_restarts for one in found]):,.0f}",
            )
        )
    return table(("policy", "mean completion, s", "makespan", "fairness", "restarts"), rows)


@dataclass(frozen=True)
class KnowingOptimus:
    """Workers and servers by marginal gain, with the true models instead of fitted ones."""

    name: str = "optimus, told the truth"
    adapts_batch: bool = False
    is_random: bool = False

    def fresh(self, seed: int) -> KnowingOptimus:
        return self

    def decide(self, state: State) -> Decision:
        kind = only_kind(state, self.name)
        n_places = sum(state.capacity)
        jobs = list(state.active)[: n_places // 2]
        profiles = {job: servers_profile(state, job) for job in jobs}
        remaining = {job: (1 - state.position(job)) * profiles[job].n_steps for job in jobs}
        speeds = {job: profiles[job].speed for job in jobs}
        counts = marginal_gains(remaining, speeds, {job: state.n_most(job, kind) for job in jobs}, n_places)
        placements = place_evenly(state, {job: (kind, sum(pair)) for job, pair in counts.items()})
        return Decision(placements, {job: counts[job][0] for job in placements})

    def wakes_s(self, state: State) -> float:
        return EVERY_TIME


def server_jobs(n_jobs: int, seed: int) -> list[Job]:
    """Trainings with parameter servers of random speed and length, one a few minutes after the other."""
    rng = np.random.default_rng(seed)
    jobs = []
    for number in range(n_jobs):
        theta = rng.uniform((0.01, 0.05, 0.05, 0.0, 0.0), (0.1, 0.3, 0.5, 0.01, 0.01))
        b0, b1, b2 = rng.uniform(0.001, 0.01), rng.uniform(0.3, 1.0), rng.uniform(0.0, 0.3)
        n_steps = 10 ** rng.uniform(2.3, 3.7)
        profile = ServersProfile(
            name="ps",
            speed=SpeedModel(mode="sync", theta=tuple(theta.tolist()), batch_size=64),
            loss=(b0, b1, b2),
            target_loss=1 / (b0 * n_steps + b1) + b2,
            expected_steps=n_steps * float(np.exp(rng.normal(0.0, 0.7))),
            max_devices=32,
        )
        jobs.append(Job(name=f"job{number}", submit_s=200.0 * number, profile=profile, n_devices=2))
    return jobs


def jobs_of_two_types(n_jobs: int, seed: int) -> list[Job]:
    """One every five minutes on average; the speed on a V100 is that of a T4 times one to four."""
    rng = np.random.default_rng((seed, 7))
    submits_s = np.cumsum(rng.exponential(300.0, n_jobs))
    jobs = []
    for number, submit_s in enumerate(submits_s.tolist()):
        n_devices = int(rng.choice((1, 1, 2, 4, 8)))
        counts = np.arange(1, 17)
        seconds = 10 ** rng.uniform(2.5, 4.5) * (n_devices / counts) ** 0.8
        both = {"T4": tuple(seconds.tolist()), "V100": tuple((seconds / rng.uniform(1.0, 4.0)).tolist())}
        profile = CountProfile(name="two types", seconds=both)
        jobs.append(Job(name=f"job{number}", submit_s=submit_s, profile=profile, n_devices=n_devices))
    return jobs
