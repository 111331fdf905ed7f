"""What a language model is asked about with where nobody says more: a batch that its devices hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast
    from traincast.trace.trace import Trace

# Tokens of one pass of a device: more rarely make a step of a language model faster, and take memory.
_TOKENS_OF_A_PASS = 16_384


def tokens_of(trace: Trace) -> int:
    """Tokens of a sample; one sentence for a model that has none and for which no batch was given."""
    length = trace.tokens_per_sample
    if length is None:
        raise InputError(f"{trace.name} is no language model and has no usual batch: give one (--batch 256).")
    return length


def at_usual_batch(trace: Trace, n_devices: int, ask: Callable[[int], Forecast]) -> tuple[Forecast, str]:
    """The forecast with as many sequences a device as fit, up to some 16,000 tokens, and a sentence about them."""
    length = tokens_of(trace)
    each = 2 ** max((_TOKENS_OF_A_PASS // length).bit_length() - 1, 0)
    found = ask(each * n_devices)
    while each > 1 and not found.fits:
        each //= 2
        found = ask(each * n_devices)
    on_each = "" if n_devices == 1 else f", {each:,} on each device"
    fits = "as many as fit" if found.fits else "not even these fit"
    return found, (
        f"No batch was given: {each * n_devices:,} sequence{'s' * (each * n_devices > 1)} of {length:,} tokens per "
        f"update{on_each} ({fits}, up to {_TOKENS_OF_A_PASS:,} tokens a pass)."
    )
