"""What cannot be scheduled, in a sentence: jobs that do not belong on a cluster, placements that are none."""

from __future__ import annotations

from collections.abc import Sequence

from traincast.errors import InputError
from traincast.scheduling.decision import Decision
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
