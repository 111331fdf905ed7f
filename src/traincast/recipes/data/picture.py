"""What a data set looks like: how many images each class has, and some of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from traincast.errors import InputError
from traincast.recipes.data.folder_images import pillow
from traincast.recipes.data.images import LabeledImages

Tensor = Any
_TILE, _GAP, _MARGIN = 64, 4, 12  # pixels
_NAME_WIDTH, _TITLE_HEIGHT = 180, 34
_INK, _FAINT, _BAR, _PAPER = (20, 24, 32), (96, 104, 116), (76, 120, 168), (255, 255, 255)


def sample_picture(data: LabeledImages, *, n_classes: int = 20, n_each: int = 10, seed: int = 0) -> Any:
    """A Pillow image with one row per class: its name, its number of images (also as a bar) and a random few of them.

    Of more than `n_classes` classes a random choice is shown, in their order.
    """
    if n_classes < 1 or n_each < 1:
        raise InputError(f"A picture of {n_classes} classes with {n_each} images each is empty.")
    image_module, draw_module = pillow(), pillow("ImageDraw")
    counts = class_counts(data)
    generator = torch.Generator().manual_seed(seed)
    shown = torch.randperm(data.n_classes, generator=generator)[:n_classes].sort().values.tolist()
    width = 2 * _MARGIN + _NAME_WIDTH + n_each * (_TILE + _GAP)
    height = 2 * _MARGIN + _TITLE_HEIGHT + len(shown) * (_TILE + _GAP)
    picture = image_module.new("RGB", (width, height), _PAPER)
    draw = draw_module.Draw(picture)
    _text(draw, (_MARGIN, _MARGIN), _title(data, counts, n_shown=len(shown)), width - 2 * _MARGIN, size=15)
    for row, label in enumerate(shown):
        top = _MARGIN + _TITLE_HEIGHT + row * (_TILE + _GAP)
        _draw_class(draw, top, data.class_names[label], int(counts[label]), int(counts.max()))
        members = (data.labels == label).nonzero().flatten()
        chosen = members[torch.randperm(len(members), generator=generator)[:n_each]]
        for place, pixels in enumerate(data.images.read(chosen) if len(chosen) else ()):
            left = _MARGIN + _NAME_WIDTH + place * (_TILE + _GAP)
            picture.paste(_tile(image_module, pixels), (left, top))
    return picture


def write_sample_picture(
    path: Path, data: LabeledImages, *, n_classes: int = 20, n_each: int = 10, seed: int = 0
) -> None:
    """The picture as a PNG file."""
    if path.suffix.lower() != ".png":
        raise InputError(f"The picture '{path}' should have a name that ends in .png.")
    picture = sample_picture(data, n_classes=n_classes, n_each=n_each, seed=seed)
    try:
        picture.save(path, format="PNG")
    except OSError as error:
        raise InputError(f"The picture '{path}' cannot be written: {error.strerror or error}.") from None


def class_counts(data: LabeledImages) -> Tensor:
    """Images per class, in the order of the classes."""
    if data.labels.ndim != 1:
        raise InputError("Images are counted by class where each has one label, not a share of every class.")
    return data.labels.bincount(minlength=data.n_classes)


def _title(data: LabeledImages, counts: Tensor, *, n_shown: int) -> str:
    least, most = int(counts.min()), int(counts.max())
    each = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    part = "" if n_shown == data.n_classes else f" ({n_shown} shown)"
    side = data.image_side
    return f"{data.n_samples:,} images of {side} x {side} pixels, {data.n_classes:,} classes{part}, {each} images each"


def _draw_class(draw: Any, top: int, name: str, count: int, most: int) -> None:
    """The left end of a row: name, count, and a bar that compares it with the largest class."""
    room = _NAME_WIDTH - 3 * _GAP
    _text(draw, (_MARGIN, top + 6), name, room, size=15)
    _text(draw, (_MARGIN, top + 27), f"{count:,} images", room, size=12, ink=_FAINT)
    length = round(room * count / most) if count else 0
    if length:
        draw.rectangle((_MARGIN, top + 47, _MARGIN + length - 1, top + 53), fill=_BAR)


def _text(
    draw: Any, place: tuple[int, int], text: str, room: int, *, size: int, ink: tuple[int, int, int] = _INK
) -> None:
    """One line, cut with an ellipsis where it does not fit."""
    font = pillow("ImageFont").load_default(size=size)
    line = re.sub(r"\s+", " ", text)
    cut = line
    while cut and draw.textlength(cut if cut == line else f"{cut}...", font=font) > room:
        cut = cut[:-1]
    draw.text(place, cut if cut == line else f"{cut}...", font=font, fill=ink)


def _tile(image_module: Any, pixels: Tensor) -> Any:
    """One image at the size of a tile; small ones keep their hard pixels, so that one sees what the network sees."""
    image = image_module.fromarray(np.ascontiguousarray(pixels.permute(1, 2, 0).numpy()))
    filter_ = image_module.Resampling.NEAREST if image.width <= _TILE else image_module.Resampling.BILINEAR
    return image.resize((_TILE, _TILE), filter_)
