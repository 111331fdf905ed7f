"""How fast does the page's server answer, and does it last?  python benchmarks/web_speed.py [--seconds S] [--write]

A server runs in a process of its own. First every zoo model is asked about, then 50 clients ask at once. --write puts
the times of the machine at hand into docs/serve.md. No test asserts them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

from traincast.report.files import write_file
from traincast.trace.settings import OPTIMIZERS, PRECISIONS
from traincast.units import show_duration

PAGE = Path(__file__).parents[1] / "docs" / "serve.md"
BEGIN, END = "<!-- speed: written by benchmarks/web_speed.py --write -->", "<!-- end of speed -->"
N_CLIENTS = 50
ANSWER_TARGET_S, CROWD_TARGET_S = 0.2, 1.0
DEVICES = ("T4", "V100-SXM2-16GB", "A100-SXM4-80GB", "RTX-3090")
HEAD = "| {} | target | median | p99 | max | n | met |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |"


def main() -> None:
    """Measures, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each crowd (default 15)")
    parser.add_argument("--write", action="store_true", help=f"write into {PAGE.name}")
    options = parser.parse_args()
    with server() as (url, process):
        settle(process)
        lines = [HEAD.format("one client"), *one_client(url), "", HEAD.format(f"{N_CLIENTS} clients at once")]
        memory = [process.memory_info().rss]
        for name, is_fresh, pause_s in (
            ("questions that were asked before, without a pause", False, 0.0),
            ("new questions, each client reads for 5 s", True, 5.0),
            ("new questions, without a pause", True, 0.0),
        ):
            times, failed = asyncio.run(crowd(url, options.seconds, is_fresh=is_fresh, pause_s=pause_s))
            lines.append(row(name, times, CROWD_TARGET_S, failed))
            memory.append(process.memory_info().rss)
            print(lines[-1], flush=True)
        asked = everything(url)
        memory.append(process.memory_info().rss)
    shown = ", ".join(f"{size / 2**20:.0f}" for size in memory)
    lines += [
        "",
        f"Memory of the server before the crowds, after each, and after {asked:,} further questions (every model in "
        f"every precision with every optimizer), MiB: {shown}.",
        "",
        machine(),
    ]
    print("\n".join(lines))
    if options.write:
        write(lines, BEGIN, END)


@contextlib.contextmanager
def server(stderr: IO[str] | None = None) -> Iterator[tuple[str, psutil.Process]]:
    """The command as users start it, on a free port."""
    command = [sys.executable, "-u", "-m", "traincast", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as started:
        assert started.stdout is not None
        found = re.search(r"http://\S+", started.stdout.readline())
        assert found is not None
        try:
            yield found[0], psutil.Process(started.pid)
        finally:
            started.terminate()


def settle(process: psutil.Process) -> None:
    """Waits until the zoo is warm: the server does nothing any more."""
    until = time.monotonic() + 60
    while process.cpu_percent(interval=1.0) > 5 and time.monotonic() < until:
        pass


def one_client(url: str) -> list[str]:
    """First questions, later ones, and those that take longer."""
    names = [model["name"] for model in httpx.get(f"{url}api/models").json()["models"]]
    lines = []
    with httpx.Client(timeout=60) as client:
        for title, question in (
            ("forecast of a zoo model, first question", {"on": ["T4"], "batch_size": 24}),
            ("the same at another batch", {"on": ["T4"], "batch_size": 40}),
            ("the same in amp-fp16", {"on": ["T4"], "batch_size": 24, "precision": "amp-fp16"}),
            ("the same in bf16", {"on": ["A10"], "batch_size": 24, "precision": "bf16"}),
            (
                "the same in bf16 with AdamW, which the server has not prepared",
                {"on": ["A10"], "batch_size": 24, "precision": "bf16", "optimizer": "adamw"},
            ),
        ):
            times = {name: timed(client, f"{url}api/forecast", {"model": name, **question}) for name in names}
            slowest = max(times, key=lambda name: times[name])
            lines.append(
                row(f"{title} ({len(names)} models, slowest {slowest})", list(times.values()), ANSWER_TARGET_S)
            )
            print(lines[-1], flush=True)
        for what, question in {
            "memory": {"on": "T4"},
            "layers": {"on": "T4"},
            "explain": {"on": "T4"},
            "scale": {"on": "V100-SXM2-16GB"},
            "plan": {"n_samples": 1_281_167, "n_epochs": 90, "deadline_s": 86_400},
        }.items():
            asked = [{"model": "resnet50", "batch_size": 32 * factor, **question} for factor in range(1, 6)]
            lines.append(row(f"{what} of resnet50", [timed(client, f"{url}api/{what}", one) for one in asked], None))
            print(lines[-1], flush=True)
    return lines


def everything(url: str) -> int:
    """Asks once about all that a graph is made for; how many questions that were."""
    names = [model["name"] for model in httpx.get(f"{url}api/models").json()["models"]]
    questions = [
        {"model": name, "batch_size": 16, "on": ["T4"], "precision": precision, "optimizer": optimizer}
        for precision, optimizer, name in itertools.product(PRECISIONS, OPTIMIZERS, names)
    ]
    with httpx.Client(timeout=60) as client:
        for question in questions:
            timed(client, f"{url}api/forecast", question)
    return len(questions)


def timed(client: httpx.Client, url: str, question: dict[str, Any]) -> float:
    start = time.perf_counter()
    reply = client.post(url, json=question)
    assert reply.status_code == 200, reply.text
    return time.perf_counter() - start


async def crowd(url: str, seconds: float, *, is_fresh: bool, pause_s: float) -> tuple[list[float], int]:
    """So many clients, each with a question under way all the time but for its pauses."""
    times: list[float] = []
    failed = 0
    names = [model["name"] for model in httpx.get(f"{url}api/models").json()["models"]]
    if not is_fresh:
        with httpx.Client(timeout=60) as alone:
            for name in names:
                timed(alone, f"{url}api/forecast", {"model": name, "batch_size": 16, "on": ["T4"]})
    until = time.monotonic() + seconds

    async def one(number: int) -> None:
        chance = random.Random(number)
        await asyncio.sleep(chance.uniform(0, pause_s))
        async with httpx.AsyncClient(timeout=120, verify=False) as client:
            await ask(chance, client)

    async def ask(chance: random.Random, client: httpx.AsyncClient) -> None:
        nonlocal failed
        while time.monotonic() < until:
            question = {"model": chance.choice(names), "batch_size": 16, "on": ["T4"]}
            if is_fresh:
                question |= {"batch_size": chance.randint(1, 4000), "on": [chance.choice(DEVICES)]}
            start = time.perf_counter()
            reply = await client.post(f"{url}api/forecast", json=question)
            times.append(time.perf_counter() - start)
            failed += reply.status_code != 200
            await asyncio.sleep(pause_s)

    await asyncio.gather(*(one(number) for number in range(N_CLIENTS)))
    return times, failed


def row(name: str, times: list[float], target_s: float | None, failed: int = 0) -> str:
    """One line of a table. The p99 of a crowd is judged, and the slowest of single questions."""
    p99 = statistics.quantiles(times, n=100, method="inclusive")[98]
    judged = p99 if len(times) > 100 else max(times)
    met = "" if target_s is None else "yes" if judged < target_s and not failed else "NO"
    target = "" if target_s is None else f"< {show_duration(target_s)}"
    values = (show_duration(value) for value in (statistics.median(times), p99, max(times)))
    return f"| {' | '.join((name, target, *values, f'{len(times):,}', met))} |"


def machine() -> str:
    load = os.getloadavg()[1]
    return (
        f"Python {platform.python_version()} on {os.cpu_count()} cores ({platform.machine()}), shared with clients, "
        f"load average {load:.1f} over five minutes."
    )


def write(lines: list[str], begin: str, end: str) -> None:
    """Between these marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    content = "\n".join([begin, "", *lines, "", end])
    print(f"Wrote {write_file(PAGE, f'{before}{content}{after}')}")


if __name__ == "__main__":
    main()
