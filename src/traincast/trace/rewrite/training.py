"""The trace of a step as its settings have it trained: the only door to the other modules of this room."""

from __future__ import annotations

from traincast.trace.adapter_text import find_adapter
from traincast.trace.kept import Kept
from traincast.trace.rewrite.adapter import adapted
from traincast.trace.rewrite.recompute import recomputed
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace
from traincast.units import MIB

_REWRITTEN: Kept[Trace, Trace] = Kept(128 * MIB, lambda trace: trace.graph.n_bytes)


def as_trained(trace: Trace, settings: Settings) -> Trace:
    """What one step does, neutral in precision and optimizer as the trace is."""
    model = with_adapter(trace, settings)
    if settings.recompute == "none":
        return model
    how = (settings.recompute, settings.stack)
    return _REWRITTEN.get(model, how, lambda: recomputed(model, settings.recompute, stack=settings.stack))


def with_adapter(trace: Trace, settings: Settings) -> Trace:
    """The model that is trained: with adapters its parameters are others."""
    if settings.adapter is None:
        return trace
    adapter = find_adapter(settings.adapter)
    return _REWRITTEN.get(trace, adapter, lambda: adapted(trace, adapter))
