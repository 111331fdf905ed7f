"""A job as its owner submits it."""

from __future__ import annotations

from dataclasses import dataclass

from traincast.errors import InputError
from traincast.scheduling.profile import Profile
from traincast.scheduling.values import is_number, is_whole, told

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
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"A job's name should be text, not {self.name!r}.")
        if not (is_number(self.submit_s) and self.submit_s >= 0):
            raise InputError(
                f"Job '{self.name}' has a submission time of {told(self.submit_s)} s: it should be 0 or later."
            )
        least = getattr(self.profile, "min_devices", None)
        if not is_whole(least):
            raise InputError(f"Job '{self.name}' has the profile {self.profile!r}: plain_profile() makes one.")
        if not is_whole(self.n_devices) or self.n_devices < least:
            raise InputError(
                f"Job '{self.name}' asks for {self.n_devices!r} devices: it should be a whole number, at least {least}."
            )
        if not (is_number(self.length) and self.length > 0):
            raise InputError(f"Job '{self.name}' has the length {told(self.length)}: it should be above 0.")
        if not (is_number(self.restart_s) and self.restart_s >= 0):
            raise InputError(f"Job '{self.name}' restarts in {told(self.restart_s)} s: it should be 0 or more.")
        if self.work_sigma is not None and not (is_number(self.work_sigma) and self.work_sigma >= 0):
            raise InputError(f"Job '{self.name}': its work_sigma should be 0 or more, not {told(self.work_sigma)}.")

    def profile_for(self, *, adapts_batch: bool) -> Profile:
        """What a policy that may, or may not, choose the batch works with."""
        return self.adaptive if adapts_batch and self.adaptive is not None else self.profile
