"""A job as its owner submits it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from traincast.errors import InputError
from traincast.scheduling.profile import Profile

RESTART_S = 30.0  # as in Pollux' simulator: save, stop, start elsewhere, load


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to run, from when on, and what its owner asked for.

    `length` stretches the profile: jobs of one kind that differ only in how long they take share one profile.
    `adaptive` is the same training where the scheduler may choose the batch; None: it may not. `work_sigma` is how
    uncertain its length is to the scheduler, as the standard deviation of a logarithm; None: as the rules say.
    """

    name: str
    submit_s: float
    profile: Profile
    n_devices: int  # asked for; elastic policies give fewer or more
    length: float = 1.0
    restart_s: float = RESTART_S  # a pause whenever its devices change
    adaptive: Profile | None = None
    work_sigma: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.submit_s) and self.submit_s >= 0):
            raise InputError(f"Job '{self.name}' is submitted at {self.submit_s:g} s: it should be 0 or later.")
        least = self.profile.min_devices
        if not isinstance(self.n_devices, int) or self.n_devices < least:
            raise InputError(
                f"Job '{self.name}' asks for {self.n_devices} devices: it should be a whole number, at least {least}."
            )
        if not (math.isfinite(self.length) and self.length > 0):
            raise InputError(f"Job '{self.name}' has the length {self.length:g}: it should be above 0.")
        if not (math.isfinite(self.restart_s) and self.restart_s >= 0):
            raise InputError(f"Job '{self.name}' restarts in {self.restart_s:g} s: it should be 0 or more.")
        if self.work_sigma is not None and not 0 <= self.work_sigma < math.inf:
            raise InputError(f"Job '{self.name}': its work_sigma should be 0 or more, not {self.work_sigma:g}.")

    def profile_for(self, *, adapts_batch: bool) -> Profile:
        """What a policy that may, or may not, choose the batch works with."""
        return self.adaptive if adapts_batch and self.adaptive is not None else self.profile
