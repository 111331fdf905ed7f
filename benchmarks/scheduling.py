"""Policies on published workloads:  python benchmarks/scheduling.py --data DIR [--write] [--part NAME ...]

Pollux' eight workloads of 160 jobs on 16 servers of 4 T4, against the results that its authors published; ours;
forecasts that are wrong on purpose; failures; and the Philly trace for speed. With --write the tables of
docs/schedule_accuracy.md are renewed, and its image. DIR holds `distributed` and `cluster`.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

import checkout  # noqa: F401 - finds lab
from lab.markdown import refresh
from scheduling_made_up import online, several_types
from scheduling_speed import PHILLY_FILE, SIDE_BY_SIDE, philly, philly_full, speed, table
from scheduling_variants import ABLATIONS, NextEpochOptimus, published_rules
from traincast.report.files import write_file
from traincast.scheduling.decision import Policy
from traincast.scheduling.failures import Failures
from traincast.scheduling.jobs_file import read_jobs
from traincast.scheduling.machines import find_machines
from traincast.scheduling.policies.elastic import Elastic
from traincast.scheduling.policies.registry import POLICIES
from traincast.scheduling.policies.tiresias import Tiresias
from traincast.scheduling.pollux_tables import read_applications
from traincast.scheduling.schedule import Schedule
from traincast.scheduling.simulator import Rules, simulate_policy
from traincast.scheduling.speeds import Speeds

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "schedule_accuracy.md"
T4S = find_machines("16x4xT4")
ALL = tuple(range(1, 9))
TUNED, HELD_OUT = ALL[:4], ALL[4:]
PUBLISHED = ("tiresias", "optimus", "pollux")
SHORTNESS, RELUCTANCE = (0.25, 0.5, 0.75, 1.0), (0.0, 1.0, 2.0, 4.0)
SIGMAS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)
N_SEEDS = 3
Make = Callable[[], Policy]


class Bench:
    """Jobs and speeds, read once."""

    def __init__(self, data: Path) -> None:
        self.data = data
        applications = read_applications(data / "distributed")
        path = data / "cluster" / "pollux_workloads.csv"
        self.jobs = {n: read_jobs(path, applications=applications, workload=f"load-1.0/{n}") for n in ALL}
        self.speeds = Speeds(T4S)
        with (data / "cluster" / "pollux_policy_results.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.published = {(row["policy"], int(row["workload"])): float(row["avg_jct_s"]) for row in rows}
        with (data / "cluster" / "pollux_policy_job_completion.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.published_jobs = {(row["policy"], int(row["workload"]), row["job"]): float(row["jct_s"]) for row in rows}

    def run(self, make: Make, workload: int, rules: Rules | None = None) -> Schedule:
        return simulate_policy(self.jobs[workload], T4S, make(), rules, speeds=self.speeds)

    def means(self, make: Make, workloads: Iterable[int] = ALL, rules: Rules | None = None) -> np.ndarray:
        return np.array([self.run(make, n, rules).mean_completion_s for n in workloads])


def reproduction(bench: Bench) -> str:
    rows = []
    ours = {policy: bench.means(POLICIES[policy]) for policy in PUBLISHED}
    theirs = {policy: np.array([bench.published[policy, n] for n in ALL]) for policy in PUBLISHED}
    for place, n in enumerate(ALL):
        cells = [
            f"{theirs[p][place]:,.0f} | {ours[p][place]:,.0f} | {_more(ours[p][place], theirs[p][place])}"
            for p in PUBLISHED
        ]
        rows.append((str(n), *cells))
    cells = [
        f"{theirs[p].mean():,.0f} | {ours[p].mean():,.0f} | {_more(ours[p].mean(), theirs[p].mean())}"
        for p in PUBLISHED
    ]
    rows.append(("mean", *cells))
    n_same = sum(
        sorted(PUBLISHED, key=lambda p: ours[p][place]) == sorted(PUBLISHED, key=lambda p: theirs[p][place])
        for place in range(len(ALL))
    )
    header = ("workload", *(f"{p} published | ours | difference" for p in PUBLISHED))
    by_job = ", ".join(f"{policy} {100 * _job_by_job(bench, policy):.1f} %" for policy in PUBLISHED)
    return (
        table(header, rows)
        + f"\n\nThe three policies rank the same in {n_same} of {len(ALL)} workloads. "
        + f"Job by job, the median absolute difference of completion times: {by_job}."
    )


def _job_by_job(bench: Bench, policy: str) -> float:
    """Median over all jobs of all workloads."""
    differences = [
        abs(record.completion_s / bench.published_jobs[policy, n, record.name] - 1)
        for n in ALL
        for record in bench.run(POLICIES[policy], n).jobs
    ]
    return float(np.median(differences))


def explained(bench: Bench) -> str:
    """The published simulator's own rules, one after the other."""
    changed = {n: published_rules(bench.jobs[n]) for n in ALL}
    reached: dict[str, np.ndarray] = {}
    speeds = Speeds(T4S)
    rows = []
    own: list[tuple[str, Make, str]] = [
        ("Tiresias", Tiresias, "tiresias"),
        ("Optimus", POLICIES["optimus"], "optimus"),
        ("Optimus that counts from the next epoch", NextEpochOptimus, "optimus"),
    ]
    for name, make, policy in own:
        theirs = np.array([bench.published[policy, n] for n in ALL])
        ours = bench.means(make)
        same = np.array([simulate_policy(changed[n], T4S, make(), speeds=speeds).mean_completion_s for n in ALL])
        rows.append((name, *(_differences(means, theirs) for means in (ours, same))))
        reached[name] = same
    header = ("", "our rules", "epochs of whole seconds, triangulated gaps")
    names = list(reached)
    n_same = int((reached[names[0]] < reached[names[2]]).sum())
    return (
        table(header, rows)
        + f"\n\nWith all of its rules Tiresias is ahead of Optimus in {n_same} of {len(ALL)}, as published."
    )


def _differences(ours: np.ndarray, theirs: np.ndarray) -> str:
    return f"{_more(ours.mean(), theirs.mean())}, largest {100 * np.abs(ours / theirs - 1).max():.1f} %"


def side_by_side(bench: Bench) -> str:
    rows = []
    for name in SIDE_BY_SIDE:
        schedules = [bench.run(POLICIES[name], n) for n in ALL]
        means = np.array([one.mean_completion_s for one in schedules])
        rows.append(
            (
                name,
                f"{means.mean():,.0f}",
                f"{means[:4].mean():,.0f}",
                f"{means[4:].mean():,.0f}",
                *(
                    f"{np.mean([getattr(one, what) for one in schedules]):,.0f}"
                    for what in ("median_completion_s", "p99_completion_s", "makespan_s")
                ),
                *(
                    f"{100 * np.mean([getattr(one, what) for one in schedules]):.0f} %"
                    for what in ("utilisation_fraction", "restarting_fraction", "fairness_fraction")
                ),
                f"{np.mean([one.n_restarts for one in schedules]):,.0f}",
            )
        )
    header = (
        "policy",
        "mean completion, s",
        "workloads 1-4",
        "5-8",
        "median",
        "p99",
        "makespan",
        "in use",
        "restarting",
        "fairness",
        "restarts",
    )
    return table(header, rows)


def choice(bench: Bench) -> str:
    """Both numbers of our policy, on the first four workloads alone."""
    rows = []
    for shortness in SHORTNESS:
        cells = []
        for reluctance in RELUCTANCE:
            both = [
                bench.means(
                    lambda b=batch, s=shortness, r=reluctance: Elastic(adapts_batch=b, shortness=s, reluctance=r), TUNED
                )
                for batch in (False, True)
            ]
            cells.append(f"{both[0].mean():,.0f} / {both[1].mean():,.0f}")
        rows.append((f"{shortness:g}", *cells))
    return table(("shortness", *(f"reluctance {value:g}" for value in RELUCTANCE)), rows)


def ablations(bench: Bench) -> str:
    rows = []
    for name, make in ABLATIONS.items():
        schedules = [bench.run(make, n) for n in ALL]
        means = np.array([one.mean_completion_s for one in schedules])
        lost = 100 * np.mean([one.restarting_fraction for one in schedules])
        used = 100 * np.mean([one.utilisation_fraction for one in schedules])
        rows.append(
            (
                name,
                f"{means[:4].mean():,.0f}",
                f"{means[4:].mean():,.0f}",
                f"{means.mean():,.0f}",
                f"{used:.0f} %",
                f"{lost:.0f} %",
            )
        )
    return table(("", "workloads 1-4", "5-8", "all", "in use", "restarting"), rows)


def accuracy_worth(bench: Bench) -> str:
    """What errors of forecasts cost, over seeds and workloads."""
    rows = []
    for what in ("work_sigma", "speed_sigma"):
        for name in ("srtf", "optimus", "traincast", "traincast-batch"):
            cells = []
            for sigma in SIGMAS:
                seeds = range(N_SEEDS if sigma else 1)
                means = [bench.means(POLICIES[name], ALL, Rules(seed=seed, **{what: sigma})).mean() for seed in seeds]
                spread = f" ± {np.std(means, ddof=1):,.0f}" if len(means) > 1 else ""
                cells.append(f"{np.mean(means):,.0f}{spread}")
            rows.append((what.removesuffix("_sigma"), name, *cells))
    return table(("error of", "policy", *(f"σ {sigma:g}" for sigma in SIGMAS)), rows)


def failing(bench: Bench) -> str:
    rows = []
    for name in ("tiresias", "optimus", "traincast", "traincast-batch"):
        cells = []
        for days in (None, 7.0, 1.0):
            means = []
            for seed in range(N_SEEDS if days else 1):
                failures = None if days is None else Failures(mean_between_s=days * 86_400)
                means.append(bench.means(POLICIES[name], ALL, Rules(failures=failures, seed=seed)).mean())
            spread = f" ± {np.std(means, ddof=1):,.0f}" if len(means) > 1 else ""
            cells.append(f"{np.mean(means):,.0f}{spread}")
        rows.append((name, *cells))
    return table(("policy", "no failures", "a node fails every 7 days", "every day"), rows)


def does_badly(bench: Bench) -> str:
    """The figures of two of the points about the published Optimus."""
    bert = next(job for job in bench.jobs[1] if job.profile.name == "bert")
    table_s = bench.speeds.table_s(bert.profile, "T4")[:, -1]
    restarts = sorted(one.n_restarts for one in bench.run(POLICIES["optimus"], 1).jobs)
    return (
        f"A BERT takes {table_s[4]:,.0f} s on four GPUs, {table_s[5]:,.0f} s on five and {table_s[12]:,.0f} s on "
        f"twelve. In workload 1 two jobs restart {restarts[-2]:,} and {restarts[-1]:,} times."
    )


PARTS: dict[str, Callable[[Bench], str]] = {
    "reproduction": reproduction,
    "explained": explained,
    "side_by_side": side_by_side,
    "choice": choice,
    "does_badly": does_badly,
    "ablations": ablations,
    "accuracy_worth": accuracy_worth,
    "failing": failing,
    "online": lambda _: online(N_SEEDS),
    "several_types": lambda _: several_types(N_SEEDS),
    "speed": lambda bench: speed(bench.data, T4S),
    "philly_full": lambda bench: philly_full(bench.data / "cluster" / PHILLY_FILE),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with distributed/ and cluster/")
    parser.add_argument("--part", action="append", choices=(*PARTS, "philly"), help="only these; all by default")
    parser.add_argument("--write", action="store_true", help="renew docs/schedule_accuracy.md")
    arguments = parser.parse_args()
    bench = Bench(arguments.data)
    for name in arguments.part or (*PARTS, "philly"):
        chart = None
        if name == "philly":
            text, chart = philly(arguments.data / "cluster" / PHILLY_FILE)
        else:
            text = PARTS[name](bench)
        print(f"## {name}\n{text}", flush=True)
        if arguments.write:
            write_file(PAGE, refresh(PAGE.read_text(encoding="utf-8"), {name: text}))
            if chart is not None:  # last: it needs an extra, and what took minutes should not be lost with it
                from traincast.report.png import to_png

                write_file(DOCS / "images" / "schedule_philly.png", to_png(chart))
    print(f"on {os.cpu_count()} cores")


def _more(ours: float, theirs: float) -> str:
    return f"{100 * (ours / theirs - 1):+.1f} %"


if __name__ == "__main__":
    main()
