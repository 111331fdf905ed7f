"""A data set by the text that a user types: a name, an archive or a folder."""

from __future__ import annotations

from pathlib import Path

from traincast.errors import InputError, close_names
from traincast.recipes.data.cifar10 import CIFAR10_MD5, CIFAR10_URL, is_cifar10, read_cifar10
from traincast.recipes.data.digits import read_digits
from traincast.recipes.data.download import OnProgress, cache_folder
from traincast.recipes.data.download import download as fetch
from traincast.recipes.data.image_folder import read_image_folder
from traincast.recipes.data.images import ImageDataset
from traincast.recipes.data.shapes_set import read_shapes

_NAMES = ("digits", "shapes", "cifar10")
_MOST_SIDE = 8192  # pixels: one image is then 768 MiB as the step takes it
_KINDS = "'digits', 'shapes', 'cifar10' (or the path of its archive or folder), or the path of an image folder"


def load_dataset(
    text: str, *, image_side: int | None = None, download: bool = False, on_progress: OnProgress | None = None
) -> ImageDataset:
    """'digits', 'cifar10' or a path; without `image_side` the images keep the side that is usual for the data.

    'cifar10' is read from the cache; `download` fetches it there first where it is missing.
    """
    if image_side is not None and image_side > _MOST_SIDE:
        raise InputError(f"The side of an image should be at most {_MOST_SIDE:,} pixels, not {image_side:,}.")
    if text == "digits":
        return read_digits(image_side=image_side)
    if text == "shapes":
        return read_shapes(image_side=image_side)
    path = _downloaded(download, on_progress) if text == "cifar10" else Path(text).expanduser()
    if not path.exists():
        raise InputError(f"No data '{text}': give {_KINDS}.{close_names(text, _NAMES)}")
    if is_cifar10(path):
        return read_cifar10(path, image_side=image_side)
    if not path.is_dir():
        raise InputError(f"'{text}' is a file but not the archive of CIFAR-10 (.tar.gz): give {_KINDS}.")
    return read_image_folder(path, image_side=image_side)


def _downloaded(may_download: bool, on_progress: OnProgress | None) -> Path:
    path = cache_folder() / CIFAR10_URL.rsplit("/", 1)[-1]
    if not path.exists():
        if not may_download:
            raise InputError(
                f"CIFAR-10 is not in '{path.parent}': allow its download (170 MB from {CIFAR10_URL}), "
                "or give the path of its archive or folder."
            )
        fetch(CIFAR10_URL, path, md5=CIFAR10_MD5, on_progress=on_progress)
    return path
