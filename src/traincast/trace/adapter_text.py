"""Adapters by the words that users write for them: "lora:16", "lora:16:q,v", "qlora:16"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from traincast.errors import InputError

_FORM = re.compile(r"(?P<kind>q?lora):(?P<rank>[0-9]{1,6})(?::(?P<layers>[A-Za-z0-9_.,]+))?")
# Letters that people write for the projections of attention, and what models call these.
_CALLED = {"q": ("query", "wq"), "k": ("key", "wk"), "v": ("value", "wv"), "o": ("out", "dense", "wo")}


@dataclass(frozen=True, slots=True)
class Adapter:
    """Thin matrices of this rank beside these layers; none named: beside all linear layers of the blocks."""

    text: str
    rank: int
    layers: tuple[str, ...] = ()
    is_quantized: bool = False


def find_adapter(text: str) -> Adapter:
    match = _FORM.fullmatch(text.strip().lower())
    if match is None:
        raise InputError(
            f"adapter '{text}' is not known: write lora:16 (rank), lora:16:q,v (rank and layers) or qlora:16."
        )
    rank = int(match["rank"])
    if rank < 1:
        raise InputError(f"adapter '{text}' has rank {rank}, which trains nothing: choose at least 1, such as lora:16.")
    layers = tuple(name for name in (match["layers"] or "").split(",") if name)
    return Adapter(text.strip().lower(), rank, layers, match["kind"] == "qlora")


def fits_name(layer: str, name: str) -> bool:
    """Whether people mean this layer by this name: q is q_proj, query or wq."""
    own = layer.lower()
    return own == name or own.startswith(f"{name}_") or own in _CALLED.get(name, ())
