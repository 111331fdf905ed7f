"""What came out: the final accuracy of every approach and rate over the seeds, and which one won."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traincast.recipes.over_seeds import OverSeeds, over_seeds, paired


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run to its end. Without an accuracy its loss was no longer a number before that."""

    approach: str
    learning_rate: float
    seed: int
    accuracy: float | None
    measured_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All seeds of one approach and rate, with their accuracies in the order of the seeds."""

    approach: str
    learning_rate: float
    accuracies: tuple[float, ...]
    n_diverged: int

    @property
    def accuracy(self) -> OverSeeds | None:
        """Mean and interval of the runs that did not diverge; None where all of them did."""
        return over_seeds(self.accuracies) if self.accuracies else None

    @property
    def may_win(self) -> bool:
        """A rate at which a run diverges is not one to recommend, however good the others are."""
        return bool(self.accuracies) and not self.n_diverged

    @property
    def mean(self) -> float:
        """For ranking: below every accuracy where nothing may win."""
        return over_seeds(self.accuracies).mean if self.may_win else -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResult:
    """The grid, the time that each stage took, and how many runs that time is of."""

    outcomes: tuple[Outcome, ...]
    stage_seconds: Mapping[str, float]
    stage_runs: Mapping[str, int]
    n_test_samples: int
    source_accuracy: float | None  # of the network that was trained here for want of weights, on its own classes

    @property
    def winner(self) -> Outcome | None:
        """The best mean; the first of equals, so that nothing depends on the order of a dict."""
        best = self.best_by_approach
        return max(best.values(), key=lambda outcome: outcome.mean, default=None)

    @property
    def best_by_approach(self) -> dict[str, Outcome]:
        """The best rate of each approach that has one."""
        best: dict[str, Outcome] = {}
        for outcome in self.outcomes:
            so_far = best.get(outcome.approach)
            if outcome.may_win and (so_far is None or outcome.mean > so_far.mean):
                best[outcome.approach] = outcome
        return best

    def to_dict(self) -> dict[str, Any]:
        """What JSON has."""
        winner = self.winner
        return {
            "outcomes": [_told(outcome) for outcome in self.outcomes],
            "winner": None if winner is None else _told(winner),
            "stage_seconds": dict(self.stage_seconds),
            "stage_runs": dict(self.stage_runs),
            "n_test_samples": self.n_test_samples,
            "source_accuracy": self.source_accuracy,
        }

    def lead_over(self, approach: str) -> OverSeeds | None:
        """How far the winner is ahead of the best rate of another approach, seed by seed."""
        winner, other = self.winner, self.best_by_approach.get(approach)
        if winner is None or other is None or len(winner.accuracies) != len(other.accuracies):
            return None
        return paired(winner.accuracies, other.accuracies)


def _told(outcome: Outcome) -> dict[str, Any]:
    found = outcome.accuracy
    return {
        "approach": outcome.approach,
        "learning_rate": outcome.learning_rate,
        "accuracy": None if found is None else found.mean,
        "accuracy_interval": None if found is None or found.low is None else (found.low, found.high),
        "accuracies": outcome.accuracies,
        "n_diverged": outcome.n_diverged,
    }


def outcomes_of(trials: Sequence[Trial]) -> tuple[Outcome, ...]:
    """One outcome for each approach and rate, in the order in which they were run."""
    groups: dict[tuple[str, float], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.approach, trial.learning_rate), []).append(trial)
    return tuple(
        Outcome(
            approach=approach,
            learning_rate=rate,
            accuracies=tuple(trial.accuracy for trial in members if trial.accuracy is not None),
            n_diverged=sum(trial.accuracy is None for trial in members),
        )
        for (approach, rate), members in groups.items()
    )
