"""Pickles of plain data: dictionaries, lists, text, numbers and arrays of bytes. Anything else is refused, not run."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import numpy as np

from traincast.errors import FileFormatError

_ARRAY = "numpy.ndarray"  # stands for the class, which a pickle could otherwise call to fill the memory


def _empty_array(kind: Any, shape: Any, _code: Any) -> Any:
    """How numpy begins an array in a pickle: always empty; shape and content follow, and must fit each other."""
    if kind != _ARRAY or shape != (0,):
        raise pickle.UnpicklingError(f"an array of shape {shape}")
    return np.ndarray((0,), np.uint8)


def _byte_type(code: Any, *_: Any) -> Any:
    """The type of an array's items: images are bytes, and nothing else is needed."""
    if code != "u1":
        raise pickle.UnpicklingError(f"an array of '{code}'")
    return np.dtype(np.uint8)


def _encode(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes into a pickle that Python 2 can read. No other codec is looked up."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"the codec '{encoding}'")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): _ARRAY,
    ("numpy", "dtype"): _byte_type,
    ("_codecs", "encode"): _encode,
}
# What a damaged pickle raises while it is read: the documentation of pickle names some and leaves the list open.
_DAMAGED = (
    pickle.UnpicklingError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    struct.error,
)


class _PlainUnpickler(pickle.Unpickler):
    """Looks names up in a short list instead of importing them."""

    refused: str | None = None

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the pickle stands for."""
        if (module, name) not in _ALLOWED:
            self.refused = f"{module}.{name}"
            raise pickle.UnpicklingError(self.refused)
        return _ALLOWED[module, name]


def read_plain_pickle(data: bytes, *, name: str) -> Any:
    """What a pickle holds, if that is plain data; `name` is what messages call it."""
    unpickler = _PlainUnpickler(io.BytesIO(data), encoding="latin1")  # as Python 2 wrote its text
    try:
        return unpickler.load()
    except _DAMAGED:
        if unpickler.refused is not None:
            raise FileFormatError(
                f"'{name}' asks for {unpickler.refused!r}, which plain data does not need: it was not run."
            ) from None
        raise FileFormatError(f"'{name}' is not a pickle of plain data, or it is damaged.") from None
