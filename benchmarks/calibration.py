"""How right is a forecast for this machine, before and after calibrating it?

python benchmarks/calibration.py [--rounds 3] [--write] [--runs FOLDER]

Calibrates into a profile of its own, runs models that calibration never saw, and holds forecasts against the medians.
Nothing else should run meanwhile. With --runs, what was measured is kept in, and read from, that folder. --write makes
docs/calibration.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import traincast as tc
from calibrated_runs import LAYERED, SMALLEST
from calibration_page import page
from traincast.api.calibrating import calibrate

ROOT = Path(__file__).parents[1]
RUNS = Path(__file__).with_name("calibrated_runs.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--runs", type=Path)
    given = parser.parse_args()
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["TRAINCAST_HOME"] = str(folder / "none")
        before = {key: _forecast(key) for key in _keys()}
        os.environ["TRAINCAST_HOME"] = str(folder)
        facts = _calibrated(folder)
        steps = _rounds(folder, "steps", list(SMALLEST), given.rounds)
        layers = _rounds(folder, "layers", list(LAYERED), 3)
        after = {key: _forecast(key) for key in _keys()}
        text = page(facts, compared(steps, before, after), layer_sums(layers))
    print(text)
    if given.write:
        (ROOT / "docs" / "calibration.md").write_text(text)


Key = tuple[str, int, str]  # model, batch size, optimizer
Rows = list[dict[str, Any]]


def _keys() -> list[Key]:
    return [
        (model, f * small, optimizer)
        for model, small in SMALLEST.items()
        for f in (1, 4, 16)
        for optimizer in ("sgd", "adam")
    ]


def _forecast(key: Key) -> tuple[float, float, float]:
    model, batch_size, optimizer = key
    answer = tc.forecast(_trace(model), "this-machine", batch_size, optimizer=optimizer)
    return answer.step_s, *answer.interval("step_s")


_traces: dict[str, Any] = {}


def _trace(model: str) -> Any:
    if model not in _traces:
        _traces[model] = tc.load_model(model)
    return _traces[model]


def _calibrated(folder: Path) -> dict[str, Any]:
    """Facts of the calibration, made now unless the folder has one."""
    kept = folder / "calibration.json"
    if not kept.exists():
        print("calibrating", flush=True)
        found = calibrate()
        kept.write_text(json.dumps(found.to_dict() | {"load": os.getloadavg()[0]}))
        (folder / "timings.jsonl").write_text("".join(f"{json.dumps(asdict(one))}\n" for one in found.timings))
    return json.loads(kept.read_text())


def _rounds(folder: Path, what: str, models: list[str], n_rounds: int) -> Rows:
    """Rows of every round, one process a model; models of a round in turn, so that rounds are minutes apart."""
    rows = []
    for number in range(n_rounds):
        kept = folder / f"{what}-{number}.jsonl"
        if not kept.exists():
            start_s = time.monotonic()
            first = number * len(models) // n_rounds  # each round begins elsewhere: the machine's speed drifts
            lines = [line for model in models[first:] + models[:first] for line in _run(model, what)]
            kept.write_text("".join(lines))
            print(f"{what}, round {number + 1} of {n_rounds}: {time.monotonic() - start_s:.0f} s", flush=True)
        rows += [json.loads(line) | {"round": number} for line in kept.read_text().splitlines()]
    return rows


def _run(model: str, what: str) -> list[str]:
    options = ["--layers"] if what == "layers" else []
    done = subprocess.run([sys.executable, str(RUNS), model, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{model}: {done.stderr[-2000:]}")
    return done.stdout.splitlines(keepends=True)


def compared(rows: Rows, before: dict[Key, Any], after: dict[Key, Any]) -> Rows:
    """One row a model, batch size and optimizer: measured (the median of the rounds' medians), and both forecasts."""
    by_key = defaultdict(list)
    for row in rows:
        by_key[row["model"], row["batch_size"], row["optimizer"]].append(row["step_s"])
    found = []
    for key, seconds in by_key.items():
        measured_s = statistics.median(seconds)
        step_s, low_s, high_s = after[key]
        found.append(
            {
                "key": key,
                "measured_s": measured_s,
                "before": before[key][0] / measured_s - 1,
                "after": step_s / measured_s - 1,
                "is_inside": low_s <= measured_s <= high_s,
                "noise": [abs(one / measured_s - 1) for one in seconds],
                "predicted_s": step_s,
            }
        )
    return found


def layer_sums(rows: Rows) -> dict[str, dict[str, Any]]:
    """By model: sum of lone layers over the whole model, measured and forecast."""
    found = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        own = _medians([row for row in rows if row["model"] == model])
        (whole,) = [row for row in own if not row["layer"]]
        layers = [row for row in own if row["layer"]]
        found[model] = {
            "n": len(layers),
            "measured": sum(row["measured_s"] for row in layers) / whole["measured_s"],
            "forecast": sum(row["forecast_s"] for row in layers) / whole["forecast_s"],
            "layer_error": float(np.mean([abs(row["forecast_s"] / row["measured_s"] - 1) for row in layers])),
        }
    return found


def _medians(rows: Rows) -> Rows:
    """One row a layer: a round that was disturbed tells nothing of it."""
    by_round = defaultdict(list)
    for row in rows:
        by_round[row["round"]].append(row)
    # A layer that is called twice has two rows in a round, so rows are told apart by their place.
    return [
        same[0] | {"measured_s": statistics.median(row["measured_s"] for row in same)}
        for same in zip(*by_round.values(), strict=True)
    ]


if __name__ == "__main__":
    main()
