"""Element types by name, with their size. Codes are positions in DTYPES and are written to trace files: append only."""

from __future__ import annotations

import numpy as np

DTYPES = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
)
_BYTES = (4, 2, 2, 8, 8, 4, 2, 1, 1, 1, 8, 16, 1, 1)

CODE = {name: code for code, name in enumerate(DTYPES)}
ITEM_BYTES = np.array(_BYTES, dtype=np.int64)
FLOAT32, FLOAT16, BFLOAT16, FLOAT64 = (CODE[name] for name in ("float32", "float16", "bfloat16", "float64"))
TOKEN_DTYPES = frozenset({CODE["int64"], CODE["int32"]})
FLOATS = frozenset({FLOAT32, FLOAT16, BFLOAT16, FLOAT64, CODE["float8_e4m3fn"], CODE["float8_e5m2"]})


def promote(first: int, second: int) -> int:
    """The float type that an op on two float tensors computes in, as PyTorch promotes: fp16 with bf16 gives fp32."""
    if first == second or second not in FLOATS:
        return first
    if first not in FLOATS:
        return second
    if ITEM_BYTES[first] == ITEM_BYTES[second]:
        return FLOAT32
    return first if ITEM_BYTES[first] > ITEM_BYTES[second] else second
