"""Does the page answer while it is attacked?  python benchmarks/web_load.py [--seconds S] [--write]

A server runs in a process of its own on 127.0.0.1. Fifty clients ask and upload as users do, by turns alone and beside
clients that mean harm (web_hostile.py), who run in a third process. It prints how long the fifty waited, the memory of
the server, and how many tracebacks it wrote, and fails if there was one. --write puts it into docs/serve.md.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil

from traincast.units import show_duration
from web_hostile import Attack, Crowd
from web_speed import DEVICES, N_CLIENTS, machine, server, settle, write

N_UPLOADING = 4  # of the clients
PLAN_SHARE = 0.07  # of what the others ask
N_ROUNDS = 2  # each alone, then attacked: what else the machine does falls on both
PAUSE_S = 1.0
LEAD_S = 4.0  # of the attackers: they have taken what there is when the others come
MARKS = ("<!-- load: written by benchmarks/web_load.py --write -->", "<!-- end of load -->")
HEAD = (
    "| 50 clients | alone: median | p99 | max | n | failed | attacked: median | p99 | max | n | failed |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


@dataclass(slots=True)
class Waited:
    """Of one kind of request: how long each took in seconds, and how many got no answer."""

    times_s: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        if len(self.times_s) < 2:
            return ["", "", "", f"{len(self.times_s)}", f"{len(self.problems)}"]
        p99_s = statistics.quantiles(self.times_s, n=100, method="inclusive")[98]
        shown = [show_duration(seconds) for seconds in (statistics.median(self.times_s), p99_s, max(self.times_s))]
        return [*shown, f"{len(self.times_s):,}", f"{len(self.problems)}"]


class Users:
    """Clients as they should be: they ask, read for a moment, and ask again."""

    def __init__(self, url: str, seed: int) -> None:
        self._url, self._seed = url, seed
        self._names = [model["name"] for model in httpx.get(f"{url}api/models", timeout=60).json()["models"]]
        self.questions, self.plans, self.uploads = Waited(), Waited(), Waited()

    async def come(self, n_clients: int, n_uploading: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(self._one(number, number < n_uploading, until) for number in range(n_clients)))

    async def _one(self, number: int, is_uploading: bool, until: float) -> None:
        self._seed += 1
        chance = random.Random(self._seed)
        await asyncio.sleep(chance.uniform(0, PAUSE_S))
        async with httpx.AsyncClient(timeout=120, verify=False) as client:
            while time.monotonic() < until:
                is_plan = not is_uploading and chance.random() < PLAN_SHARE
                waited = self.uploads if is_uploading else self.plans if is_plan else self.questions
                request = self._upload(chance) if is_uploading else self._question(chance, is_plan=is_plan)
                if chance.random() < 0.5:  # the next one is as of a newcomer, for whom no connection is kept
                    request["headers"] = {"Connection": "close"}
                await self._ask(client, request, waited)
                await asyncio.sleep(chance.uniform(0.5, 1.5) * PAUSE_S)

    async def _ask(self, client: httpx.AsyncClient, request: dict[str, Any], waited: Waited) -> None:
        """Like a browser, it tries once more where a connection has been closed that was kept for it."""
        start_s = time.perf_counter()
        try:
            try:
                reply = await client.post(**request)
            except httpx.TransportError:
                reply = await client.post(**request)
        except httpx.TransportError as error:
            waited.problems.append(repr(error))
            return
        waited.times_s.append(time.perf_counter() - start_s)
        if reply.status_code != 200:
            waited.problems.append(f"{reply.status_code} {reply.text[:200]}")

    def _question(self, chance: random.Random, *, is_plan: bool) -> dict[str, Any]:
        """A plan as the page asks for it, with the defaults of its form; or a forecast."""
        question: dict[str, Any] = {"model": chance.choice(self._names), "batch_size": chance.randint(1, 4000)}
        if is_plan:
            question |= {"n_samples": chance.randint(10_000, 2_000_000), "n_epochs": 10, "deadline_s": 86_400}
            return {"url": f"{self._url}api/plan", "json": question}
        return {"url": f"{self._url}api/forecast", "json": question | {"on": [chance.choice(DEVICES)]}}

    def _upload(self, chance: random.Random) -> dict[str, Any]:
        start = chance.uniform(3, 5)
        rows = (f"{step},{0.5 + start / (1 + step / 50):.5f}" for step in range(10, 400, 10))
        return {
            "url": f"{self._url}api/logs",
            "params": {"name": "run.csv"},
            "content": "step,loss\n" + "\n".join(rows) + "\n",
        }


def main() -> int:
    """Measures, prints, and writes if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of all rounds together (default 60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write into docs/serve.md")
    options = parser.parse_args()
    with tempfile.TemporaryFile("w+") as errors:
        with server(stderr=errors) as (url, process):
            settle(process)
            lines, problems = rounds(url, process, options.seconds / (2 * N_ROUNDS) - LEAD_S / 2, options.seed)
        errors.seek(0)
        told = errors.read()
    n_tracebacks = told.count("Traceback")
    lines += ["", f"Tracebacks of the server: {n_tracebacks}.", "", machine()]
    print("\n".join(lines))
    for problem in problems[:20]:
        print(f"failed: {problem}", file=sys.stderr)
    if n_tracebacks:
        print(told[-20_000:], file=sys.stderr)
    if options.write:
        write(lines, *MARKS)
    return 1 if n_tracebacks else 0


def rounds(url: str, process: psutil.Process, seconds: float, seed: int) -> tuple[list[str], list[str]]:
    """The table and what came back to the attackers; and the problems of the others."""
    alone, attacked, memory = Users(url, seed), Users(url, seed), [process.memory_info().rss]
    for number in range(N_ROUNDS):
        asyncio.run(alone.come(N_CLIENTS, N_UPLOADING, seconds))
        memory.append(process.memory_info().rss)
        attack = start_attack(url, LEAD_S + seconds, seed + number)
        time.sleep(LEAD_S)
        asyncio.run(attacked.come(N_CLIENTS, N_UPLOADING, seconds))
        memory.append(process.memory_info().rss)
        attack.join(timeout=30)
        attack.kill()
    lines = [HEAD]
    for name, one, other in (
        ("forecasts, each a new question", alone.questions, attacked.questions),
        (f"plans, {100 * PLAN_SHARE:.0f} % of the questions", alone.plans, attacked.plans),
        ("uploads of a log", alone.uploads, attacked.uploads),
    ):
        lines.append(f"| {' | '.join([name, *one.cells(), *other.cells()])} |")
    shown = ", ".join(f"{size / 2**20:.0f}" for size in memory)
    lines += ["", f"Memory of the server before, and after each round (alone, attacked, by turns), MiB: {shown}."]
    problems = [one.problems for users in (attacked, alone) for one in (users.questions, users.plans, users.uploads)]
    return lines, [problem for some in problems for problem in some]


def start_attack(url: str, seconds: float, seed: int) -> multiprocessing.process.BaseProcess:
    """In a process of its own, so that only the server suffers; it ends by itself."""
    context = multiprocessing.get_context("spawn")
    started = context.Process(target=attack_for, args=(url, seconds, seed), daemon=True)
    started.start()
    return started


def attack_for(url: str, seconds: float, seed: int) -> None:
    """All kinds of hostile clients."""
    address = httpx.URL(url)
    attack = Attack(address.host, address.port or 80, seconds=seconds, seed=seed)
    print(f"replies to attackers: {dict(sorted(asyncio.run(attack.run(Crowd())).items()))}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
