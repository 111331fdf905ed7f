"""Policies by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from traincast.errors import InputError
from traincast.scheduling.decision import Policy
from traincast.scheduling.policies.drf import DominantFairness
from traincast.scheduling.policies.elastic import Elastic
from traincast.scheduling.policies.gavel import Gavel
from traincast.scheduling.policies.online_optimus import OnlineOptimus
from traincast.scheduling.policies.optimus import Optimus
from traincast.scheduling.policies.pollux import Goodput
from traincast.scheduling.policies.rigid import Fifo, ShortestRemaining
from traincast.scheduling.policies.tiresias import Tiresias

# A fresh one each time: some remember what they have seen.
POLICIES: dict[str, Callable[[], Policy]] = {
    "fifo": Fifo,
    "srtf": ShortestRemaining,
    "drf": DominantFairness,
    "tiresias": Tiresias,
    "optimus": Optimus,
    "optimus-online": OnlineOptimus,
    "gavel": Gavel,
    "pollux": Goodput,
    "traincast": Elastic,
    "traincast-batch": lambda: Elastic(name="traincast-batch", adapts_batch=True),
}


def make_policy(name: str) -> Policy:
    """The policy of that name."""
    made = POLICIES.get(name.strip().lower())
    if made is None:
        close = difflib.get_close_matches(name, POLICIES, n=1)
        meant = f" Did you mean '{close[0]}'?" if close else ""
        raise InputError(f"There is no policy '{name}'.{meant} Choose from: {', '.join(POLICIES)}.")
    return made()
