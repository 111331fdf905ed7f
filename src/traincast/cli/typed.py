"""The command line as it was typed, for pages that say how they were made."""

from collections.abc import Sequence
from contextvars import ContextVar

TYPED: ContextVar[Sequence[str]] = ContextVar("TYPED", default=())
