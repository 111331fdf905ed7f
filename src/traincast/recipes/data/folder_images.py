"""Image files that are decoded when they are read."""

from __future__ import annotations

import importlib
import os
import struct
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from traincast.errors import FileFormatError, InputError, MissingExtraError

Tensor = Any
# Pillow lets go of the interpreter while it decodes, so threads help; more than this and they wait for each other.
_MOST_THREADS = 8
# What Pillow raises for a damaged file, by format; UnidentifiedImageError is an OSError.
_DAMAGED = (
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, OverflowError, struct.error, zlib.error),
    MemoryError,  # a part that says it has 4 GB
)


def pillow(module: str = "Image") -> Any:
    """A module of Pillow, imported when it is needed."""
    try:
        return importlib.import_module(f"PIL.{module}")
    except ImportError:
        raise MissingExtraError("Reading or drawing images", extra="recipes") from None


class FolderImages:
    """Files resized so that the short side is `side`, then cropped in the middle. Rotation tags are not followed."""

    def __init__(self, paths: Sequence[Path], *, side: int) -> None:
        if side < 1:
            raise InputError(f"Images of {side} x {side} pixels have no pixels.")
        pillow()  # missing is better said now than in the first batch
        self._paths = tuple(paths)
        self._side = side
        self._pool = ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1), thread_name_prefix="decode")

    @property
    def side(self) -> int:
        """Height and width of every image as it is read."""
        return self._side

    def __len__(self) -> int:
        return len(self._paths)

    def read(self, index: Tensor) -> Tensor:
        """The images of these numbers, in this order, decoded by several threads."""
        paths = [self._paths[number] for number in index.tolist()]
        pixels = np.empty((len(paths), self._side, self._side, 3), dtype=np.uint8)
        for place, image in enumerate(self._pool.map(lambda path: decode(path, side=self._side), paths)):
            pixels[place] = image
        return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def decode(path: Path, *, side: int) -> Any:
    """One image as an array of side x side x 3 bytes."""
    image_module = pillow()
    try:
        with image_module.open(path) as image:
            _check_size(image, path, most_pixels=image_module.MAX_IMAGE_PIXELS)
            image.draft(
                "RGB", (2 * side, 2 * side)
            )  # a JPEG much larger than that is decoded at a fraction of its size
            return _square(image, side=side, filter_=image_module.Resampling.BILINEAR)
    except (image_module.DecompressionBombError, image_module.DecompressionBombWarning):
        raise _too_large(path, image_module.MAX_IMAGE_PIXELS) from None
    except _DAMAGED as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged or not an image"
        raise FileFormatError(f"The image '{path}' cannot be decoded: {reason}.") from None


def _square(image: Any, *, side: int, filter_: Any) -> Any:
    """The middle square of an image, resized. Cropped first: a very long image never becomes larger than it is."""
    if image.mode.startswith(("I", "F")):
        raise FileFormatError(f"The image '{image.filename}' has pixels of more than 8 bits, which are not supported.")
    if "transparency" in image.info:
        image = image.convert("RGBA")  # or Pillow warns that a palette's transparency is lost
    image = image.convert("RGB")
    width, height = image.size
    short = min(width, height)
    left, top = (width - short) / 2, (height - short) / 2
    return np.asarray(image.resize((side, side), filter_, box=(left, top, left + short, top + short)))


def _check_size(image: Any, path: Path, *, most_pixels: int | None) -> None:
    """Before a pixel is decoded: a small file can claim an image that fills the memory."""
    if most_pixels is not None and image.size[0] * image.size[1] > most_pixels:
        raise _too_large(path, most_pixels)


def _too_large(path: Path, most_pixels: int) -> FileFormatError:
    return FileFormatError(f"The image '{path}' claims more than {most_pixels:,} pixels, so it was not decoded.")
