"""A folded trace as one file: the short trace's own file, then what the length changes, and the stacks."""

from __future__ import annotations

import json
import lzma
import struct
from typing import Any

import numpy as np

from traincast.errors import FileFormatError
from traincast.trace.file import pack_arrays, parse_trace, trace_bytes, unpack_arrays
from traincast.trace.folding.folded import FoldedTrace
from traincast.trace.folding.lengths import N_TERMS, LengthTerms
from traincast.trace.folding.units import Stack

MAGIC = b"traincast-folded 1\n"
SUFFIX = ".folded"
_SIZES = ("dim_base", "dim_slope", "stride_base", "stride_slope")


def folded_bytes(folded: FoldedTrace) -> bytes:
    """The content of its file."""
    terms = folded.terms
    arrays: dict[str, Any] = {}
    for name in _SIZES:
        values = getattr(terms, name)
        kinds, which = np.unique(values, axis=1, return_inverse=True)
        arrays |= {f"{name}.kinds": kinds.ravel(), f"{name}.which": which.ravel()}
    packed, rows = pack_arrays(arrays)
    header = {
        "stacks": [[stack.path, stack.start, stack.period] for stack in folded.stacks],
        "copies": folded.copies,
        "attributes": terms.attributes,
        "arrays": rows,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    short = trace_bytes(folded.short)
    body = struct.pack("<QQ", len(text), len(short)) + text + short + packed
    return MAGIC + lzma.compress(body, preset=9)


def parse_folded(content: bytes, *, where: str) -> FoldedTrace:
    """The folded trace in the bytes of a file of this package."""
    if not content.startswith(MAGIC):
        raise FileFormatError(f"{where} is not a folded trace.")
    body = lzma.decompress(content[len(MAGIC) :])
    n_text, n_short = struct.unpack_from("<QQ", body)
    header = json.loads(body[16 : 16 + n_text])
    short = parse_trace(body[16 + n_text : 16 + n_text + n_short], where=where, is_shipped=True)
    arrays = unpack_arrays(header["arrays"], body, 16 + n_text + n_short, where=where)
    sizes = {
        name: arrays[f"{name}.kinds"].reshape(N_TERMS, -1)[:, arrays[f"{name}.which"]]
        if len(arrays[f"{name}.which"])
        else np.zeros((N_TERMS, 0), dtype=np.int64)
        for name in _SIZES
    }
    return FoldedTrace(
        short,
        LengthTerms(**sizes, attributes=tuple(header["attributes"])),
        tuple(Stack(*row) for row in header["stacks"]),
        tuple(header["copies"]),
    )
