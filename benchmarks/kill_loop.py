"""kill -9 at random moments, again and again:  python benchmarks/kill_loop.py --seconds 120

Two commands are killed and begun again until they come to their end: `train scratch`, whose log and last weights must
then be those of a run that nobody killed, bit for bit, and `bench ops`, whose store must have lost, doubled and changed
no row, whole at every moment. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

N_ROWS = 30
_TRAIN = ("train", "scratch", "--image-side", "8", "--epochs", "2", "--batch-size", "128", "--checkpoint-every", "0")
_MOST_S = 300.0  # for a command that nobody kills
Rows = list[tuple[object, ...]]


@dataclass
class Killer:
    """Begins commands, and ends them at moments that the seed decides."""

    rng: random.Random
    environment: dict[str, str]
    n_kills: int = 0
    faults: list[str] = field(default_factory=list)

    def whole(self, *line: str) -> float:
        """A command that may come to its end; gives its seconds."""
        start_s = time.perf_counter()
        child = self._begun(line)
        try:
            code = child.wait(_MOST_S)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        self.check(code == 0, f"'traincast {' '.join(line)}' ended with {code}")
        return time.perf_counter() - start_s

    def killed(self, most_s: float, *line: str) -> bool:
        """The same with kill -9 after a random time; gives whether that came before its end."""
        child = self._begun(line)
        time.sleep(self.rng.uniform(0, most_s))
        child.send_signal(signal.SIGKILL)
        code = child.wait()
        self.n_kills += code == -signal.SIGKILL
        self.check(code in (0, -signal.SIGKILL), f"'traincast {' '.join(line)}' ended with {code}")
        return code == -signal.SIGKILL

    def check(self, is_right: bool, sentence: str) -> None:
        if not is_right:
            self.faults.append(sentence)
            print(f"WRONG: {sentence}", flush=True)

    def _begun(self, line: tuple[str, ...]) -> subprocess.Popen[bytes]:
        silent = subprocess.DEVNULL
        command = [sys.executable, "-m", "traincast", *line]
        return subprocess.Popen(command, env=self.environment, stdout=silent, stderr=silent)


def logged(folder: Path) -> list[dict[str, str]]:
    """The rows of a run's log without what the clock said."""
    with (folder / "log.csv").open(newline="", encoding="utf-8") as file:
        return [{name: cell for name, cell in row.items() if name != "seconds"} for row in csv.DictReader(file)]


def same_weights(first: Path, second: Path) -> bool:
    """Whether two checkpoints hold the same tensors, bit for bit."""
    import torch

    from traincast.recipes.engine.checkpoint import load_checkpoint

    one, other = (load_checkpoint(folder / "checkpoint.pt")["module"] for folder in (first, second))
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def stored(path: Path) -> Rows | None:
    """The rows of a store, oldest first; None before it is made."""
    if not path.exists():
        return None
    connection = sqlite3.connect(path, timeout=30)
    try:
        return connection.execute("SELECT id, key, value, created_s FROM records ORDER BY id").fetchall()
    except sqlite3.OperationalError:  # killed before its tables were made
        return None
    finally:
        connection.close()


def is_whole(path: Path) -> bool:
    connection = sqlite3.connect(path, timeout=30)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    finally:
        connection.close()


def kill_training(killer: Killer, unbroken: Path, folder: Path, most_s: float) -> None:
    """One run, killed one to five times."""
    for _ in range(killer.rng.randrange(1, 6)):
        if not killer.killed(most_s, *_TRAIN, "--out", str(folder)):
            break
    killer.whole(*_TRAIN, "--out", str(folder))
    killer.check(logged(folder) == logged(unbroken), f"{folder.name}: the log is not that of a run nobody killed")
    killer.check(same_weights(folder, unbroken), f"{folder.name}: the weights are not those of a run nobody killed")


def kill_store(killer: Killer, path: Path, most_s: float) -> None:
    """One campaign, killed one to five times."""
    line, kept = ("bench", "ops", "--rows", str(N_ROWS), "--store", str(path)), []
    for _ in range(killer.rng.randrange(1, 6)):
        killer.killed(most_s, *line)
        now = stored(path)
        if now is not None:
            killer.check(now[: len(kept)] == kept, f"{path.name}: rows from before the kill have changed")
            killer.check(is_whole(path), f"{path.name}: the store is damaged")
            kept = now
    killer.whole(*line)
    final = stored(path) or []
    killer.check(final[: len(kept)] == kept, f"{path.name}: rows from before the kill have changed")
    killer.check(len({row[1] for row in final}) == len(final) == N_ROWS, f"{path.name}: {len(final)} rows of {N_ROWS}")


def main() -> int:
    """Kills until the budget is spent; what has begun then is finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0, help="budget; no run begins after it but the first")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    until_s = time.monotonic() + options.seconds
    n_runs = {"trainings": 0, "stores": 0}
    with tempfile.TemporaryDirectory(prefix="kill-") as place:
        folder = Path(place)
        # One thread: how sums are cut among several is not the same in every run.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TRAINCAST_HOME": str(folder / "home")}
        killer = Killer(random.Random(options.seed), environment)
        training_s = killer.whole(*_TRAIN, "--out", str(folder / "unbroken"))
        store_s = killer.whole("bench", "ops", "--rows", str(N_ROWS), "--store", str(folder / "unbroken.db"))
        while not n_runs["stores"] or time.monotonic() < until_s:
            kill_training(killer, folder / "unbroken", folder / f"run{n_runs['trainings']}", training_s)
            n_runs["trainings"] += 1
            kill_store(killer, folder / f"store{n_runs['stores']}.db", store_s)
            n_runs["stores"] += 1
    print(f"{killer.n_kills} kills of {n_runs['trainings']} trainings and {n_runs['stores']} stores:", end=" ")
    print(f"{len(killer.faults)} faults")
    return int(bool(killer.faults))


if __name__ == "__main__":
    sys.exit(main())
