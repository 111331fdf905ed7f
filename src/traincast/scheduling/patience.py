"""When a simulation is given up: nothing gets further, or there is more to remember than memory is for."""

from __future__ import annotations

from traincast.errors import InputError

MOST_IDLE = 10_000  # decisions that start nobody
MOST_IN_VAIN = 10_000  # stays on devices from which nothing was kept
MOST_MOVES = 20_000  # times that a policy takes a job's devices, in all,
MOST_MOVES_OF_EACH = 2_000  # or so often on average over many jobs
MOST_EVENTS = 10_000_000  # decisions and stays: some 2 GB


class Patience:
    """Counts what came to nothing since any job last got further."""

    def __init__(self, policy: str, cluster: str, n_jobs: int) -> None:
        self._policy, self._cluster = policy, cluster
        self._most_moves = max(MOST_MOVES, MOST_MOVES_OF_EACH * n_jobs)
        self._n_idle = 0
        self._n_in_vain = 0
        self._n_failures = 0
        self._n_moves = 0

    def gets_further(self) -> None:
        """Some job ended, or keeps more of its work than before."""
        self._n_idle = self._n_in_vain = 0

    def stays_in_vain(self, job: str) -> None:
        """A failure came before the first checkpoint, or the policy took the devices before the restart was over."""
        self._n_in_vain += 1
        if self._n_in_vain > MOST_IN_VAIN:
            raise self._nobody_gets_further(job)

    def moves(self, n_jobs: int, now_s: float) -> None:
        """The policy took devices from so many jobs. Jobs much longer than an interval can change places for ever."""
        self._n_moves += n_jobs
        if self._n_moves > self._most_moves:
            raise InputError(
                f"After {now_s:,.0f} s '{self._policy}' had taken devices from running jobs more than "
                f"{self._most_moves:,} times: a longer interval or shorter jobs would be fewer."
            )

    def idles(self, job: str, *, is_whole: bool, is_for_good: bool, n_failures: int) -> None:
        """Nobody runs and nobody is to come, and the job still waits. While a node is down that is counted once."""
        if is_whole or n_failures > self._n_failures:
            self._n_idle += 1
        self._n_failures = n_failures
        if self._n_idle > MOST_IDLE and self._n_in_vain:
            raise self._nobody_gets_further(job)
        if self._n_idle > MOST_IDLE or (is_whole and is_for_good):
            raise InputError(f"'{self._policy}' never starts job '{job}' on '{self._cluster}'.")

    def _nobody_gets_further(self, job: str) -> InputError:
        return InputError(
            f"No job gets further on '{self._cluster}' under '{self._policy}': '{job}' and others lost their devices "
            f"{self._n_in_vain:,} times before any work was kept, and {self._n_idle:,} decisions started nobody. Rarer "
            "failures, shorter restarts and more frequent checkpoints would help."
        )

    def remembers(self, n_events: int, now_s: float) -> None:
        """So many decisions and stays, or failures, are behind it."""
        if n_events > MOST_EVENTS:
            raise InputError(
                f"After {now_s:,.0f} s there were more than {MOST_EVENTS:,} decisions, starts or failures under "
                f"'{self._policy}': a longer interval, rarer failures or shorter jobs would be fewer."
            )
