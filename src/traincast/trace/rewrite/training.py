"""The trace of a step as its settings have it trained: the only door to the other modules of this room."""

from __future__ import annotations

from traincast.trace.kept import Kept
from traincast.trace.rewrite.recompute import recomputed
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace
from traincast.units import MIB

_REWRITTEN: Kept[Trace, Trace] = Kept(128 * MIB, lambda trace: trace.graph.n_bytes)


def as_trained(trace: Trace, settings: Settings) -> Trace:
    """What one step does, neutral in precision and optimizer as the trace is."""
    if settings.recompute == "none":
        return trace
    how = (settings.recompute, settings.stack)
    return _REWRITTEN.get(trace, how, lambda: recomputed(trace, settings.recompute, stack=settings.stack))
