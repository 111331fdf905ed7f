"""What a file of torch.save holds, read by torch's restricted unpickler: nothing in the file is run."""

from __future__ import annotations

import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch

# What torch was seen to raise on a torn or foreign file depends on where it notices. An UnpicklingError is left out:
# such a file asks for more than tensors and plain values.
TORN = (
    RuntimeError,
    EOFError,
    OSError,  # a seek beyond the end
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    OverflowError,
    zipfile.BadZipFile,
    struct.error,  # a length that is cut in its middle
)


def load_plain(path: Path) -> Any:
    """Tensors, on the CPU, and plain values; raises what torch raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's advice to its developers on a foreign pickle
        return torch.load(path, map_location="cpu", weights_only=True)
