"""A made-up data set of ten shapes in the layout of the Visual Decathlon: train/0001/000001.png, val/0001/...

For who has no images at hand, and as a first task for a network that has no weights: colours, places and sizes vary,
shapes tell the classes apart. The same images every time.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASSES = (
    "disc", "ring", "square", "frame", "diamond", "cross", "plus", "stripes", "columns", "triangle",
)  # fmt: skip
N_TRAIN, N_TEST = 40, 10  # of each class
Pixels = NDArray[np.uint8]


def shape_images(*, side: int, n_each: int, seed: int) -> tuple[Pixels, NDArray[np.int64]]:
    """Images (n x 3 x side x side) and labels, class by class."""
    rng = np.random.default_rng(seed)
    images = np.stack([_image(name, side, rng) for name in CLASSES for _ in range(n_each)])
    return images, np.repeat(np.arange(len(CLASSES)), n_each)


def write_shapes(folder: Path, *, side: int = 16) -> Path:
    """The set as files, with classes numbered from 0001 as in the Decathlon."""
    for split, n_each, seed in (("train", N_TRAIN, 0), ("val", N_TEST, 1)):
        images, labels = shape_images(side=side, n_each=n_each, seed=seed)
        for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True), start=1):
            path = folder / split / f"{label + 1:04d}" / f"{number:06d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_png(image.transpose(1, 2, 0)))
    return folder


def _image(name: str, side: int, rng: Any) -> Pixels:
    """A shape in one colour on another, with noise."""
    place = (np.arange(side) + 0.5) / side * 2 - 1
    size, (dy, dx) = rng.uniform(0.55, 0.85), rng.uniform(-0.15, 0.15, 2)
    y, x = np.meshgrid((place - dy) / size, (place - dx) / size, indexing="ij")
    front, back = rng.uniform(120, 255, 3), rng.uniform(0, 110, 3)
    picture = np.where(_is_inside(name, x, y)[None], front[:, None, None], back[:, None, None])
    return np.clip(picture + rng.normal(0, 12, picture.shape), 0, 255).astype(np.uint8)


def _is_inside(name: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    radius, span, steps = np.hypot(x, y), np.maximum(abs(x), abs(y)), abs(x) + abs(y)
    inside: dict[str, NDArray[np.bool_]] = {
        "disc": radius < 0.9,
        "ring": (radius < 1) & (radius > 0.55),
        "square": span < 0.8,
        "frame": (span < 0.95) & (span > 0.55),
        "diamond": steps < 1.1,
        "cross": (abs(abs(x) - abs(y)) < 0.3) & (span < 1),
        "plus": (np.minimum(abs(x), abs(y)) < 0.25) & (span < 1),
        "stripes": (np.floor(y * 2.5) % 2 == 0) & (span < 1),
        "columns": (np.floor(x * 2.5) % 2 == 0) & (span < 1),
        "triangle": (y < 0.8) & (abs(x) < (y + 1) / 2),
    }
    return inside[name]


def _png(pixels: Pixels) -> bytes:
    """Height x width x 3 as a PNG: eight bits, no filter."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunks(chunks))


def _chunks(chunks: tuple[tuple[bytes, bytes], ...]) -> Iterator[bytes]:
    for kind, data in chunks:
        yield struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
