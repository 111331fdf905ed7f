"""Real gloo all-reduces on this machine: over loopback, or between network namespaces with shaped links.

Started by live_allreduce.py; run as a script it is one of the processes. All four start once and stay: the first two
or three of them make the smaller groups, and each shapes its own link, so nothing is started again for another rate.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

GROUPS = (2, 3, 4)
N_PROCESSES = max(GROUPS)
FULL_FRAME_BYTES = 1514  # as tc sees it: 1448 of data, 32 of TCP, 20 of IP, 14 of Ethernet
ON_WIRE_BYTES = FULL_FRAME_BYTES + 24  # and on a wire: preamble, frame check, gap
QUEUED_BYTES = 32_768  # that TCP may have waiting in the shaped queue
PACKET_BYTES = 16_384  # the kernel passes frames on in packets of up to this size
PREFIX = "tclive"  # of every namespace made here; an interface name has 15 characters at most


@dataclass(frozen=True)
class Measured:
    """One all-reduce: seconds of each batch (their mean over the calls in it) and what the first process sent."""

    rate_bit_per_s: float | None
    n: int
    n_bytes: int
    batch_s: list[float]
    sent_bytes: float
    n_packets: float


@dataclass(frozen=True)
class Plan:
    """Every link, group and size once a round, so that all of them see the same machine.

    An all-reduce that should take longer than `slow_s` is run in the first two rounds only.
    """

    rates_bit_per_s: tuple[float | None, ...]
    sizes: tuple[int, ...]
    n_rounds: int
    slow_s: float

    def is_run(self, number: int, link_s: float) -> bool:
        return number < 2 or link_s <= self.slow_s


def why_no_namespaces() -> str | None:
    """None where they can be made; else the reason in one line."""
    if os.geteuid() != 0:
        return "not root"
    if missing := [tool for tool in ("ip", "tc", "sysctl") if shutil.which(tool) is None]:
        return f"no {missing[0]} here"
    name = f"{PREFIX}{os.getpid()}probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return made.stderr.strip().splitlines()[-1] if made.returncode else None


@contextlib.contextmanager
def namespaces() -> Iterator[list[list[str]]]:
    """One namespace a process, joined by a bridge in a namespace of its own; gives the command prefix of each.

    Nothing touches the machine's own network. They are deleted at the end, and so on an error and on Ctrl-C.
    """
    names = [f"{PREFIX}{os.getpid()}n{i}" for i in range(N_PROCESSES)]
    switch = f"{PREFIX}{os.getpid()}sw"
    try:
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", switch, "link", "set", "br0", "up")
        for i, name in enumerate(names):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{i}", "netns", switch)
            _ip("-n", name, "link", "set", "eth0", "gso_max_size", str(PACKET_BYTES))
            _ip("-n", name, "address", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", switch, "link", "set", f"port{i}", "master", "br0", "up")
            # bbr would pace by its own estimate of the rate; reno, which any namespace may have, fills the link.
            _run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")
            # A real card stops the host when enough is queued. tbf has no such brake: hundreds of kilobytes of data can
            # stand before an announcement of gloo, and its neighbour idles for want of it.
            _run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv4.tcp_limit_output_bytes={QUEUED_BYTES}")
        yield [["ip", "netns", "exec", name] for name in names]
    finally:
        for name in (*names, switch):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def measure(plan: Plan, prefixes: list[list[str]] | None, *, timeout_s: float) -> list[Measured]:
    """Runs the plan; over loopback without `prefixes`."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "plan.json").write_text(json.dumps(asdict(plan)), encoding="utf-8")
        environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0" if prefixes else "lo"}
        running = [
            subprocess.Popen(
                [*(prefixes[rank] if prefixes else []), sys.executable, __file__, "--rank", str(rank), "--in", folder],
                env=environment,
            )
            for rank in range(N_PROCESSES)
        ]
        try:
            end_s = time.monotonic() + timeout_s
            codes = [process.wait(timeout=max(1.0, end_s - time.monotonic())) for process in running]
        finally:
            for process in running:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                process.wait()
        if any(codes):
            raise SystemExit(f"A process failed: exit codes {codes}.")
        rows = json.loads((Path(folder) / "measured.json").read_text(encoding="utf-8"))
    return [Measured(**row) for row in rows]


def burst_bytes(rate_bit_per_s: float) -> int:
    """How much tbf lets through at once: half a millisecond's worth, and one packet of the kernel at least.

    Larger, and messages up to that size would not feel the shaping at all. Smaller than a packet, and tbf cuts packets
    into frames: each then goes through two virtual cards and a bridge alone, and two cores are not enough for that.
    Smaller than some 0.3 ms, and the rate is lost: a timer that wakes tbf late finds the bucket full.
    """
    return max(round(1.2 * PACKET_BYTES), round(rate_bit_per_s / 8 * 0.5e-3))


def shape(rate_bit_per_s: float | None) -> None:
    """This namespace sends at that rate, counted on the wire. A queue of 8 MB loses nothing."""
    subprocess.run(["tc", "qdisc", "del", "dev", "eth0", "root"], capture_output=True, check=False)
    if rate_bit_per_s is not None:
        seen_bit_per_s = rate_bit_per_s * FULL_FRAME_BYTES / ON_WIRE_BYTES
        bucket = f"rate {seen_bit_per_s:.0f}bit burst {burst_bytes(rate_bit_per_s)} limit 8000000"
        _run("tc", *f"qdisc add dev eth0 root tbf {bucket}".split())


def n_calls(n_bytes: int) -> int:
    """All-reduces in one batch: back to back, as buckets of gradients are, and so without a barrier between them."""
    return max(1, min(20, 2**20 // n_bytes))


def work(rank: int, folder: Path) -> None:
    """One process: carries the plan out together with the others."""
    import torch
    import torch.distributed as dist

    with contextlib.suppress(OSError):
        # Others use this machine too. As a real-time task each of our wake-ups goes first, and theirs wait for it.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=N_PROCESSES)
    groups = {n: dist.new_group(list(range(n))) for n in GROUPS}
    plan = Plan(**json.loads((folder / "plan.json").read_text(encoding="utf-8")))
    found: dict[tuple[float | None, int, int], Measured] = {}
    for number, rate in ((number, rate) for number in range(plan.n_rounds) for rate in plan.rates_bit_per_s):
        if os.environ["GLOO_SOCKET_IFNAME"] == "eth0":
            shape(rate)
        dist.barrier()
        for n, n_bytes in ((n, n_bytes) for n in GROUPS for n_bytes in plan.sizes):
            link_s = 2 * (n - 1) / n * n_bytes * 8 / (rate or 1e11)
            if rank < n and plan.is_run(number, link_s):
                seconds, sent, packets = _batch(torch.ones(n_bytes // 4), groups[n], is_warmed=link_s < 0.5)
                new = Measured(rate, n, n_bytes, [], sent, packets)
                found.setdefault((rate, n, n_bytes), new).batch_s.append(seconds)
        dist.barrier()
    if rank == 0:
        rows = [asdict(row) for row in found.values()]
        (folder / "measured.json").write_text(json.dumps(rows), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def _batch(tensor: Any, group: Any, *, is_warmed: bool) -> tuple[float, float, float]:
    """Mean seconds, bytes and packets of a call. A call before, not timed, warms up and lines everyone up."""
    import torch.distributed as dist

    calls = n_calls(tensor.numel() * 4)
    if is_warmed:
        dist.all_reduce(tensor, group=group)
    before, start_s = _counters(), time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(tensor, group=group)
    end_s, after = time.perf_counter(), _counters()
    return (end_s - start_s) / calls, (after[0] - before[0]) / calls, (after[1] - before[1]) / calls


def _counters() -> tuple[int, int]:
    """Bytes and packets that the interface has sent."""
    lines = Path("/proc/net/dev").read_text(encoding="utf-8").splitlines()
    fields = next(line for line in lines if line.strip().startswith(os.environ["GLOO_SOCKET_IFNAME"] + ":"))
    counts = fields.partition(":")[2].split()
    return int(counts[8]), int(counts[9])


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--in", dest="folder", type=Path, required=True)
    options = parser.parse_args()
    work(options.rank, options.folder)
