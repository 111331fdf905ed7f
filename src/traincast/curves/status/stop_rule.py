"""A rule by which a run is not worth going on: "p(target) < 0.05"."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from traincast.curves.log_question import LogQuestion
from traincast.curves.status.status import Status
from traincast.errors import ParameterError
from traincast.logs.names import is_loss

NAMES = ("p(target)", "loss", "eta_s", "slower")
N_IN_A_ROW = 3
_FIRST_SHARE, _FIRST_POINTS = 0.1, 20  # of the run, or points: what comes before them is not judged
_RULE = re.compile(
    r"\s*(?P<name>p\s*\(\s*target\s*\)|loss|eta_s|slower)\s*(?P<sign>[<>])\s*(?P<limit>[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)\s*"
)


@dataclass(frozen=True, slots=True)
class StopRule:
    """A name, < or >, and a number."""

    name: str
    is_below: bool
    limit: float

    def __str__(self) -> str:
        return f"{self.name} {'<' if self.is_below else '>'} {self.limit:g}"

    def value(self, status: Status) -> float | None:
        """What the rule is about; None while it is not known."""
        if self.name == "p(target)":
            return None if status.arrival is None else status.arrival.probability
        if self.name == "eta_s":
            return None if status.left_s is None else status.left_s.p50
        if self.name == "slower":
            return status.slower
        if not is_loss(status.series.metric):
            return None
        return math.inf if status.series.divergence is not None else status.value

    def lacking(self, asked: LogQuestion) -> str | None:
        """What is not asked without which the rule can never hold, whatever is logged; None where nothing lacks."""
        if self.name == "p(target)" and asked.target is None:
            return f"The rule '{self}' needs a target."
        if self.name == "slower" and asked.step_s is None:
            return f"The rule '{self}' needs the expected time of a step."
        return None

    def may_come(self, status: Status, asked: LogQuestion) -> bool:
        """Whether what is `missing` may still be logged: a length that nobody says will not, nor another metric."""
        if self.name == "loss":
            return False
        lengths = (asked.total_steps, asked.n_epochs, status.log.total_steps, status.log.n_epochs)
        is_said = status.total_steps is not None or any(length is not None for length in lengths)
        return self.name != "eta_s" or is_said

    def missing(self, status: Status) -> str | None:
        """Why the rule cannot hold, as far as the log tells so far; None where it can."""
        if self.name == "loss" and not is_loss(status.series.metric):
            return (
                f"The rule '{self}' is about a loss, and '{status.series.name}' is being watched, which is not a "
                "loss: use the metric loss."
            )
        if self.name == "eta_s" and status.total_steps is None:
            return (
                f"The rule '{self}' needs the length of the run, and '{status.log.path}' does not give it: name "
                "its steps or epochs."
            )
        needed = {"eta_s": status.speed, "slower": status.pace}
        if self.name in needed and needed[self.name] is None:
            return f"The rule '{self}' needs a clock, but fewer than three rows of '{status.log.path}' have a time."
        return None

    def holds(self, status: Status) -> bool:
        """Not on the first points of a run, of which too little follows; a run that has diverged is told by one."""
        value = self.value(status)
        is_early = len(status.series) < _FIRST_POINTS and (status.progress or 0.0) < _FIRST_SHARE
        if value is None or (is_early and status.divergence is None):
            return False
        return value < self.limit if self.is_below else value > self.limit


def read_rule(text: str) -> StopRule:
    """A rule as it is typed."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise ParameterError(
            "stop_if", text, f"give one of {', '.join(NAMES)}, then < or >, then a number, such as 'p(target) < 0.05'"
        )
    name = re.sub(r"\s", "", match["name"])
    limit = float(match["limit"])
    if name == "p(target)" and not 0 <= limit <= 1:
        raise ParameterError("stop_if", text, "a probability should be between 0 and 1 (5 % is 0.05)")
    return StopRule(name, match["sign"] == "<", limit)
