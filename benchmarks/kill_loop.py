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

    def whole(self, sign: Path, *line: str) -> float:
        """A command that may come to its end; gives its seconds from the first sign of work."""
        child = self._begun(line)
        self._wait(child, sign)
        start_s = time.perf_counter()
        try:
            code = child.wait(_MOST_S)
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        self.check(code == 0, f"'traincast {' '.join(line)}' ended with {code}")
        return time.perf_counter() - start_s

    def killed(self, sign: Path, most_s: float, *line: str) -> bool:
        """The same with kill -9 a random time after that sign; gives whether it came before its end."""
        child = self._begun(line)
        self._wait(child, sign)
        time.sleep(self.rng.uniform(0, most_s / 3))  # so that there is something left for the next
        child.send_signal(signal.SIGKILL)
        code = child.wait()
        self.n_kills += code == -signal.SIGKILL
        self.check(code in (0, -signal.SIGKILL), f"'traincast {' '.join(line)}' ended with {code}")
        return code == -signal.SIGKILL

    def _wait(self, child: subprocess.Popen[bytes], sign: Path) -> None:
        """Until the file is there and was written to; most of a command's seconds go by before, with imports."""
        start_ns, until_s = time.time_ns(), time.monotonic() + _MOST_S
        while child.poll() is None and time.monotonic() < until_s:
            if sign.exists() and sign.stat().st_mtime_ns >= start_ns:
                return
            time.sleep(0.002)

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
    """One run, killed up to seven times."""
    for _ in range(killer.rng.randrange(3, 8)):
        if not killer.killed(folder / "log.csv", most_s, *_TRAIN, "--out", str(folder)):
            break
    killer.whole(folder / "log.csv", *_TRAIN, "--out", str(folder))
    killer.check(logged(folder) == logged(unbroken), f"{folder.name}: the log is not that of a run nobody killed")
    killer.check(same_weights(folder, unbroken), f"{folder.name}: the weights are not those of a run nobody killed")


def kill_store(killer: Killer, path: Path, most_s: float) -> None:
    """One campaign, killed up to seven times."""
    line, kept = ("bench", "ops", "--rows", str(N_ROWS), "--store", str(path)), []
    wal = path.with_name(path.name + "-wal")
    for _ in range(killer.rng.randrange(3, 8)):
        killer.killed(wal, most_s, *line)
        now = stored(path)
        if now is not None:
            killer.check(now[: len(kept)] == kept, f"{path.name}: rows from before the kill have changed")
            killer.check(is_whole(path), f"{path.name}: the store is damaged")
            kept = now
    killer.whole(wal, *line)
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
        unbroken, store = folder / "unbroken", folder / "unbroken.db"
        training_s = killer.whole(unbroken / "log.csv", *_TRAIN, "--out", str(unbroken))
        store_s = killer.whole(folder / "unbroken.db-wal", "bench", "ops", "--rows", str(N_ROWS), "--store", str(store))
        while not n_runs["stores"] or time.monotonic() < until_s:
            kill_training(killer, unbroken, folder / f"run{n_runs['trainings']}", training_s)
            n_runs["trainings"] += 1
            kill_store(killer, folder / f"store{n_runs['stores']}.db", store_s)
            n_runs["stores"] += 1
    print(f"{killer.n_kills} kills of {n_runs['trainings']} trainings and {n_runs['stores']} stores:", end=" ")
    print(f"{len(killer.faults)} faults")
    return int(bool(killer.faults))


if __name__ == "__main__":
    sys.exit(main())
