"""One thing that was measured: what was asked, what came out, where and when."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traincast.records.environment import Environment
from traincast.report.json_ import plain

Scalar = str | int | float | bool | None
Settings = Mapping[str, Scalar]
Values = Mapping[str, Any]  # what JSON knows


def canonical(value: Any) -> str:
    """The same text for the same value, whatever the order of its keys."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def task_key(kind: str, task: Settings) -> str:
    """The same for the same question on every machine, so that it is asked once."""
    return hashlib.sha256(canonical([kind, task]).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """`task` is all that decides what is run; `values` is what came out, in base units.

    A task that cannot be done is a result as well: its only value is `error`, a sentence.
    """

    kind: str
    task: Settings
    values: Values
    environment: Environment
    created_s: float

    @property
    def key(self) -> str:
        return task_key(self.kind, self.task)

    @property
    def error(self) -> str | None:
        """Why it could not be done."""
        return self.values.get("error")
