"""CIFAR-10 as its authors publish it for Python: six pickled batches, in a folder or in the archive they came in.

https://www.cs.toronto.edu/~kriz/cifar.html
"""

from __future__ import annotations

import hashlib
import tarfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from traincast.errors import FileFormatError, InputError
from traincast.recipes.data.images import ImageDataset, LabeledImages, StoredImages
from traincast.recipes.data.plain_pickle import read_plain_pickle

CIFAR10_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
INNER_FOLDER = "cifar-10-batches-py"
TRAIN_FILES = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_FILE = "test_batch"
CHECKSUMS: Mapping[str, str] = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
_CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SIDE = 32
_MOST_BYTES = 64 * 2**20  # a real batch has 30 MiB; an archive that claims more is not unpacked
# Over all pixels of the 50,000 training images.
_MEAN = (0.4914, 0.4822, 0.4465)
_STD = (0.2470, 0.2435, 0.2616)

_Open = Callable[[str], bytes]


def is_cifar10(path: Path) -> bool:
    """Whether a path looks like CIFAR-10: its archive, or a folder with a batch in it or one level deeper."""
    if path.is_dir():
        return any((folder / name).is_file() for folder in (path, path / INNER_FOLDER) for name in CHECKSUMS)
    return path.name.endswith((".tar.gz", ".tgz", ".tar"))


def read_cifar10(
    path: Path, *, image_side: int | None = None, checksums: Mapping[str, str] | None = CHECKSUMS
) -> ImageDataset:
    """CIFAR-10 from a folder or an archive; `checksums` are the MD5 of its batches, None to read them as they are."""
    side = _SIDE if image_side is None else image_side
    if side < _SIDE or side % _SIDE:
        raise InputError(
            f"CIFAR-10 images of {side} x {side} pixels are not possible: the side should be a multiple of {_SIDE}."
        )
    parts = {name: _batch(data, f"{path}: {name}") for name, data in _files(path, checksums).items()}
    train = [parts[name] for name in TRAIN_FILES]
    return ImageDataset(
        name="cifar10",
        train=_labeled(train, n_repeats=side // _SIDE),
        test=_labeled([parts[TEST_FILE]], n_repeats=side // _SIDE),
        mean=_MEAN,
        std=_STD,
    )


def _files(path: Path, checksums: Mapping[str, str] | None) -> dict[str, bytes]:
    """The bytes of the six batches, each checked before anything in it is looked at."""
    try:
        if path.is_dir():
            return _checked(lambda name: _from_folder(path, name), path, checksums)
        with tarfile.open(path) as archive:
            return _checked(lambda name: _from_archive(archive, path, name), path, checksums)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise FileFormatError(f"'{path}' is not an archive that can be read: {error}.") from None
    except OSError as error:
        raise FileFormatError(f"'{path}' cannot be read: {error.strerror or error}.") from None


def _checked(open_file: _Open, path: Path, checksums: Mapping[str, str] | None) -> dict[str, bytes]:
    files = {}
    for name in (*TRAIN_FILES, TEST_FILE):
        files[name] = open_file(name)
        found = hashlib.md5(files[name], usedforsecurity=False).hexdigest()
        if checksums is not None and found != checksums.get(name):
            raise FileFormatError(
                f"'{name}' in '{path}' has the MD5 checksum {found} instead of {checksums.get(name)}: "
                "the file is damaged, or not the published one."
            )
    return files


def _from_folder(folder: Path, name: str) -> bytes:
    for place in (folder, folder / INNER_FOLDER):
        if (place / name).is_file():
            return (place / name).read_bytes()
    raise _missing(name, folder)


def _from_archive(archive: tarfile.TarFile, path: Path, name: str) -> bytes:
    """One named member, read into memory: nothing is ever unpacked to where an archive says."""
    for member_name in (f"{INNER_FOLDER}/{name}", f"./{INNER_FOLDER}/{name}", name):
        try:
            member = archive.getmember(member_name)
        except KeyError:
            continue
        file = archive.extractfile(member) if member.isreg() and member.size <= _MOST_BYTES else None
        if file is None:
            raise FileFormatError(f"'{member_name}' in '{path}' is not a file of at most {_MOST_BYTES // 2**20} MiB.")
        return file.read()
    raise _missing(name, path)


def _missing(name: str, path: Path) -> FileFormatError:
    return FileFormatError(
        f"'{path}' has no file '{name}': CIFAR-10 for Python is {', '.join(TRAIN_FILES)} and {TEST_FILE}."
    )


def _batch(data: bytes, name: str) -> tuple[Any, Any]:
    """Pixels and labels of one batch; rows are 1,024 red, then 1,024 green, then 1,024 blue pixels."""
    content = read_plain_pickle(data, name=name)
    if not isinstance(content, dict):
        raise FileFormatError(f"'{name}' is not a batch of CIFAR-10: it has no dictionary.")
    found = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in content.items()}
    pixels, labels = found.get("data"), found.get("labels")
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (3 * _SIDE * _SIDE,):
        raise FileFormatError(f"'{name}' is not a batch of CIFAR-10: its 'data' are not rows of 3,072 bytes.")
    if (
        not isinstance(labels, list)
        or len(labels) != len(pixels)
        or not all(isinstance(label, int) and 0 <= label < len(_CLASS_NAMES) for label in labels)
    ):
        raise FileFormatError(
            f"'{name}' is not a batch of CIFAR-10: its 'labels' are not one number from 0 to 9 a row."
        )
    return pixels.reshape(-1, 3, _SIDE, _SIDE), np.array(labels, dtype=np.int64)


def _labeled(parts: list[tuple[Any, Any]], *, n_repeats: int) -> LabeledImages:
    pixels = torch.from_numpy(np.concatenate([part[0] for part in parts]))
    labels = torch.from_numpy(np.concatenate([part[1] for part in parts]))
    return LabeledImages(images=StoredImages(pixels, n_repeats=n_repeats), labels=labels, class_names=_CLASS_NAMES)
