"""The questions about memory asked the other way round: what is the most that fits, and what is the least that holds
it?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from traincast.api.forecasts import forecast, questions_of
from traincast.errors import InputError
from traincast.options import catalog as o
from traincast.options.option import declared
from traincast.options.question import question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincast.forecasting.largest import Largest
    from traincast.forecasting.question import Question
    from traincast.forecasting.smallest_gpu import SmallestGpu
    from traincast.frontend.models.named import NamedModel
    from traincast.trace.trace import Trace

_SHORTEST_TRIED = 128  # tokens: shorter sequences are no training


@question
def largest_that_fits(
    model: o.Model,
    what: o.Largest,
    on: o.Place,
    *,
    batch_size: int | None = None,
    strategy: o.Strategy = "ddp",
    **options: Unpack[o.MemoryOptions],
) -> Largest:
    """The largest "batch" of one update, or the longest sequence ("seqlen") of a published model, that `on` holds.

    A sequence is asked about in a batch of `batch_size`, by default one on each device. Other options are those of
    `forecast`, whose `fits` decides.
    """
    from traincast.forecasting.largest import find_largest

    asked = {**options, "strategy": strategy}
    if what == "seqlen":
        named = _of_any_length(model, options)
        first = _question(named.name, on, batch_size, {**asked, "seqlen": min(_SHORTEST_TRIED, named.positions)})

        def at_length(length: int) -> Question:
            return replace(first, trace=_trace(named, length))

        return find_largest(what, at_length, least=min(_SHORTEST_TRIED, named.positions), limit=named.positions)
    if batch_size is not None:
        raise InputError("The largest batch is what is asked for: leave the batch out.")
    from traincast.trace.check import MAX_BATCH_SIZE

    first = _question(model, on, None, asked)
    each = first.n_replicas
    limit = MAX_BATCH_SIZE // each * each
    return find_largest(what, lambda batch: replace(first, batch_size=batch), least=each, limit=limit)


@question
def smallest_gpu(model: o.Model, batch_size: o.BatchSize = 1, **options: Unpack[o.MemoryOptions]) -> SmallestGpu:
    """The GPUs of the table that hold one step, smallest memory first; only those with units for its precision."""
    from traincast.forecasting.smallest_gpu import find_smallest
    from traincast.hardware.catalog import all_devices

    devices = all_devices(options["devices"])
    largest = max((one for one in devices if one.kind == "gpu"), key=lambda one: one.memory_bytes)
    return find_smallest(_question(model, largest.name, batch_size, dict(options)), devices)


def _trace(named: NamedModel, length: int) -> Trace:
    from traincast.frontend.named import load_named

    return load_named(named, seqlen=length)


def _of_any_length(model: object, options: Mapping[str, Any]) -> NamedModel:
    """Of a published model, whose shipped trace holds for any length: other models would be captured anew each time."""
    from traincast.frontend.models.named import find_named

    is_text = isinstance(model, (str, Path))
    named = find_named(str(model)) if is_text else None
    if named is None or named.seqlen is None:
        name = model if is_text else getattr(model, "name", model)
        raise InputError(
            f"The longest sequence can be asked of published language models by name (docs/models.md), and '{name}' "
            "is none: ask for the memory at several lengths instead."
        )
    if options["seqlen"] is not None:
        raise InputError("The longest sequence is what is asked for: leave the sequence length out.")
    return named


def _question(model: Any, on: Any, batch_size: int | None, options: Mapping[str, Any]) -> Question:
    """What is not asked here is as usual: it changes no byte. Without a batch one sample on each device."""
    from traincast.trace.check import MAX_BATCH_SIZE

    usual = {one.name: one.default for one in declared(forecast)}
    any_batch = MAX_BATCH_SIZE if batch_size is None else batch_size
    (found,) = questions_of(model, [on], any_batch, {**usual, **options})
    return replace(found, batch_size=found.n_replicas) if batch_size is None else found
