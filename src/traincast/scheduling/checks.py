"""What cannot be scheduled, in a sentence: jobs that do not belong on a cluster, placements that are none."""

from __future__ import annotations

from collections.abc import Sequence

from traincast.errors import InputError
from traincast.scheduling.decision import Decision, Fitting, Policy
from traincast.scheduling.job import Job
from traincast.scheduling.live import Live
from traincast.scheduling.machines import Machines
from traincast.scheduling.speeds import Speeds


def check_jobs(jobs: Sequence[Job], machines: Machines, speeds: Speeds, *, adapts_batch: bool) -> None:
    """Each has a name of its own and fits on the cluster."""
    if not jobs:
        raise InputError("There are no jobs to schedule.")
    names = set()
    there = {kind: machines.n_devices_of(kind) for kind in machines.types}
    for job in jobs:
        if job.name in names:
            raise InputError(f"Two jobs are named '{job.name}': each needs a name of its own.")
        names.add(job.name)
        profile = job.profile_for(adapts_batch=adapts_batch)
        if profile.kinds is not None and not set(profile.kinds) & set(there):
            needed = " or ".join(profile.kinds)
            raise InputError(f"Job '{job.name}' runs on {needed}, which '{machines.name}' does not have.")
        most = max(n for kind, n in there.items() if profile.kinds is None or kind in profile.kinds)
        if job.n_devices > most:
            raise InputError(
                f"Job '{job.name}' asks for {job.n_devices} devices, but '{machines.name}' has only {most} "
                "that it can use."
            )


def check_fits(jobs: Sequence[Job], speeds: Speeds, policy: Policy, interval_s: float) -> None:
    """What would take hours is refused at once. Each job is counted with the devices on which it is fastest."""
    if not isinstance(policy, Fitting) or interval_s == 0:
        return
    least_s = [_least_s(job, speeds, adapts_batch=policy.adapts_batch) for job in jobs]
    n_fits = sum(least_s) / interval_s
    if n_fits > policy.most_fits:
        longest = jobs[max(range(len(jobs)), key=least_s.__getitem__)]
        raise InputError(
            f"'{policy.name}' fits models of each job at each decision, and these would be about {n_fits:,.0f} fits, "
            f"of which it makes {policy.most_fits:,} at most: '{longest.name}' alone takes {max(least_s):,.0f} s. An "
            f"interval from {interval_s * n_fits / policy.most_fits:,.0f} s on, or shorter jobs, would do."
        )


def _least_s(job: Job, speeds: Speeds, *, adapts_batch: bool) -> float:
    profile = job.profile_for(adapts_batch=adapts_batch)
    ends = [speeds.table_s(profile, kind)[profile.min_devices :, -1] for kind in speeds.kinds(profile)]
    return job.length * float(min(seconds.min() for seconds in ends))


def check_start(live: Live, job: int, decision: Decision, policy: str) -> None:
    """A policy may be anybody's: a device is given once, and to a job that is there and can use it."""
    placement, n_servers = decision.placements[job], decision.servers.get(job, 0)
    wrong = _what_is_wrong(live, job, placement, n_servers)
    if wrong:
        name = f"'{live.jobs[job].name}'" if isinstance(job, int) and 0 <= job < len(live.jobs) else repr(job)
        raise InputError(f"Policy '{policy}' puts job {name} on {placement}: {wrong}.")


def _what_is_wrong(live: Live, job: int, placement: Sequence[tuple[int, int]], n_servers: int) -> str:
    if job not in live.active:
        return "it is neither waiting nor running"
    nodes = [node for node, _ in placement]
    n_places = sum(n for _, n in placement)
    if not nodes or len(set(nodes)) < len(nodes) or not all(0 <= node < len(live.free) for node in nodes):
        return f"a placement names some of the nodes 0 to {len(live.free) - 1}, each once"
    if any(n < 1 or live.free[node] < n for node, n in placement):
        return "that is not free"
    kinds = {live.machines.kinds[node] for node in nodes}
    if len(kinds) > 1 or not kinds <= set(live.kinds(job)):
        return f"it runs on one type of device at a time: {' or '.join(live.kinds(job))}"
    if n_places < live.n_least(job) or not 0 <= n_servers < n_places:
        return f"it needs at least {live.n_least(job)} devices, and with {n_servers} servers a worker too"
    return ""
