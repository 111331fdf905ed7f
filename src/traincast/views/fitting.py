"""What `traincast memory --largest` and `--smallest-gpu` show: one sentence first, then what was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.document import Document
from traincast.report.table import Table, columns_of
from traincast.units import show_bytes, show_things
from traincast.views.forecast_parts import settings_of_run

if TYPE_CHECKING:
    from traincast.forecasting.largest import Largest, Tried
    from traincast.forecasting.question import Question
    from traincast.forecasting.smallest_gpu import Holder, SmallestGpu

_MOST_ROWS = 10
_THINGS = {"batch": "sample", "seqlen": "token"}


def largest_document(found: Largest) -> Document:
    """The end of the search, and the doublings on the way to it."""
    question = found.question
    columns = columns_of("value: batch, peak_memory_bytes: memory, fits as name")
    if found.what == "seqlen":
        columns = columns_of("value: sequence length, peak_memory_bytes: memory, fits as name")
    return Document(
        title=f"Largest {'batch' if found.what == 'batch' else 'sequence'} of {question.trace.name} on "
        f"{question.place}",
        subtitle=", ".join(settings_of_run(question)),
        verdict=_largest_sentence(found),
        tables=(
            Table(
                title="Memory on the way there",
                columns=columns,
                rows=tuple((f"{one.value:,}", one.peak_memory_bytes, _yes(one.fits)) for one in _shown(found)),
            ),
        ),
    )


def _largest_sentence(found: Largest) -> str:
    question, best = found.question, found.best
    usable = show_bytes(question.device.usable_memory_bytes)
    if best is None:
        least = found.tried[0]
        needed, fit = show_bytes(least.peak_memory_bytes), "fit" if least.value > 1 else "fits"
        return f"Not even {_amount(found, least)} {fit}: {needed} needed, but only {usable} are usable."
    end = ""
    if best.value == found.limit and found.what == "seqlen":
        end = f", all positions of {question.trace.name}"
    return (
        f"The {'largest batch' if found.what == 'batch' else 'longest sequence'} that fits has {_amount(found, best)}"
        f"{end}: {show_bytes(best.peak_memory_bytes)} of {usable} usable."
    )


def _amount(found: Largest, one: Tried) -> str:
    """'41,213 tokens (batch 8)', '96 samples (12 on each of 8 devices)'."""
    question, words = one.question, show_things(one.value, _THINGS[found.what])
    if found.what == "seqlen":
        return f"{words} (batch {question.batch_size:,})"
    length = question.trace.tokens_per_sample
    of_length = "" if length is None else f" of {length:,} tokens"
    each = question.micro_batch_size
    devices = "" if question.n_devices == 1 else f" ({each:,} on each of {question.n_devices:,} devices)"
    return f"{words}{of_length}{devices}"


def _shown(found: Largest) -> list[Tried]:
    """Doublings up to the largest that fits, that one, and the first that does not."""
    first = found.tried[0].value
    doublings = [one for one in found.tried if _is_doubling(one.value, first) and one.fits]
    last = [one for one in (found.best, found.first_too_large) if one is not None and one not in doublings]
    return [*doublings, *last][-_MOST_ROWS:]


def _is_doubling(value: int, first: int) -> bool:
    times, rest = divmod(value, first)
    return not rest and times & (times - 1) == 0


def smallest_document(found: SmallestGpu) -> Document:
    """The first that fits, the largest that does not, and what else would do."""
    question = found.question
    fitting = [one for one in found.gpus if one.fits]
    too_small = [one for one in found.gpus if not one.fits][-2:]
    shown = [*too_small, *fitting][:_MOST_ROWS]
    notes = [] if len(fitting) <= _MOST_ROWS - len(too_small) else [f"{len(fitting)} GPUs hold it; --json lists all."]
    if found.without_units:
        n_lacking = len(found.without_units)
        notes.append(
            f"{show_things(n_lacking, 'GPU')} without {question.settings.precision} units, or of an unknown rate, "
            f"{'is' if n_lacking == 1 else 'are'} left out."
        )
    return Document(
        title=f"Smallest GPU for {question.trace.name}, batch {question.batch_size:,}",
        subtitle=", ".join(settings_of_run(question)),
        verdict=_smallest_sentence(found),
        tables=(
            Table(
                title="GPUs, smallest memory first",
                columns=columns_of("name: GPU as name, usable_bytes: usable, peak_memory_bytes: needed, fits as name"),
                rows=tuple(_gpu_row(one) for one in shown),
            ),
        ),
        notes=tuple(notes),
    )


def _gpu_row(one: Holder) -> tuple[str, int, int, str]:
    return one.device.name, one.device.usable_memory_bytes, one.peak_memory_bytes, _yes(one.fits)


def _smallest_sentence(found: SmallestGpu) -> str:
    question, smallest = found.question, found.smallest
    what = _words_of(question)
    if smallest is None:
        largest = found.gpus[-1]
        needed, usable = show_bytes(largest.peak_memory_bytes), show_bytes(largest.device.usable_memory_bytes)
        return f"No GPU of the table holds {what}: {needed} needed, and {largest.device.name} has {usable} usable."
    return (
        f"The smallest GPU that holds {what} is {smallest.device.name}: {show_bytes(smallest.peak_memory_bytes)} of "
        f"{show_bytes(smallest.device.usable_memory_bytes)} usable."
    )


def _words_of(question: Question) -> str:
    length = question.trace.tokens_per_sample
    return f"batch {question.batch_size:,}" + ("" if length is None else f" of {length:,} tokens")


def _yes(fits: bool) -> str:
    return "yes" if fits else "NO"
