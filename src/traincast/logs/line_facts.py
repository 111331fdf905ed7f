"""What one line of a plain-text log says."""

from __future__ import annotations

from dataclasses import dataclass, field

from traincast.logs import names


@dataclass(slots=True)
class LineFacts:
    """Numbers of a line by name. A total is what stands behind a slash: 'step 120/391'."""

    numbers: dict[str, float] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    bar: tuple[float, float] | None = None  # a progress bar: how far it is, and how far it goes
    sample_fraction: float | None = None  # of the epoch, where a line counts samples instead of steps
    time_of_day_s: float | None = None  # where the line says no date
    first_number: float | None = None  # at the start of the line, without a name
    n_percent: int = 0
    has_metric: bool = False
    has_rate: bool = False
    is_evaluation: bool = False  # its step comes behind a word of validation: it may count the batches of that
    is_within: bool = False  # the epoch: it says how far that is, and the summary of an epoch does not
    trust: dict[str, int] = field(default_factory=dict)  # of a counter: how far behind others its name is

    @property
    def has_counter(self) -> bool:
        return "step" in self.numbers or "epoch" in self.numbers

    @property
    def is_empty(self) -> bool:
        """Whether the line says nothing that we look for."""
        forms = (self.bar, self.sample_fraction, self.time_of_day_s, self.first_number)
        return not (self.numbers or self.totals) and all(form is None for form in forms)

    def is_better(self, counter: str, name: str) -> bool:
        """Whether a name says what it counts better than the one before: 'num_updates' does, behind 'update'."""
        rank = (names.STEP_NAMES if counter == "step" else names.EPOCH_NAMES).index(name)
        if rank >= self.trust.get(counter, -1 if counter in self.numbers else 1_000):
            return False
        self.trust[counter] = rank
        return True
