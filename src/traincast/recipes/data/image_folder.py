"""Image folders in the layout of the Visual Decathlon: train/<class>/<image> and val/<class>/<image>.

https://www.robots.ox.ac.uk/~vgg/decathlon/ . Its test/ has no labels, so accuracy is taken on val/.
"""

from __future__ import annotations

from pathlib import Path

import torch

from traincast.errors import InputError
from traincast.recipes.data.choose import split_per_class
from traincast.recipes.data.folder_images import FolderImages
from traincast.recipes.data.images import ImageDataset, LabeledImages

_SUFFIXES = (".jpg", ".jpeg", ".png")
_USUAL_SIDE = 64  # the decathlon's images have a short side of 72 pixels, and its baselines crop 64
_TEST_SHARE = 0.2
_SPLIT_SEED = 0
# Over ImageNet's training images: what pretrained networks were normalised by.
_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)

_Files = dict[str, list[Path]]  # images by class


def read_image_folder(root: Path, *, image_side: int | None = None) -> ImageDataset:
    """An image folder with train/ and val/ (or a test/ with classes); without these, its class folders are split."""
    data = _read(root, side=_USUAL_SIDE if image_side is None else image_side)
    if data.train.n_classes < 2:
        raise InputError(f"'{root}' has only one class, '{data.train.class_names[0]}': classification needs two.")
    return data


def _read(root: Path, *, side: int) -> ImageDataset:
    train_folder = root / "train"
    if not train_folder.is_dir():
        if (root / "val").is_dir():
            raise InputError(f"'{root}' has a folder 'val' but no folder 'train'.")
        return _split(root, root, side=side)
    train = _files(train_folder)
    names = tuple(train)
    test_folder = _test_folder(root)
    if test_folder is None:
        return _split(root, train_folder, side=side)
    test = _files(test_folder, may_be_empty=True)
    unknown = [name for name in test if name not in train]
    if unknown:
        raise InputError(f"'{test_folder}' has the class '{unknown[0]}', which '{train_folder}' lacks.")
    if not any(test.values()):
        raise InputError(f"'{test_folder}' has no image in any of its class folders.")
    return ImageDataset(
        name=root.resolve().name,
        train=_labeled(train, names, side=side),
        test=_labeled(test, names, side=side),
        mean=_MEAN,
        std=_STD,
        notes=(
            *_unseen(test_folder, [name for name in names if not test.get(name)]),
            *_passed_over(train_folder),
            *_passed_over(test_folder),
        ),
    )


def _test_folder(root: Path) -> Path | None:
    """What accuracy is taken on: val/, or a test/ whose images are in class folders."""
    if (root / "val").is_dir():
        return root / "val"
    test = root / "test"
    return test if test.is_dir() and _class_folders(test) else None


def _split(root: Path, folder: Path, *, side: int) -> ImageDataset:
    files = _files(folder)
    names = tuple(files)
    lone = [name for name, paths in files.items() if len(paths) == 1]
    if lone:
        raise InputError(
            f"The class '{lone[0]}' in '{root}' has only one image, but splitting into training and test data "
            "needs two."
        )
    whole = _labeled(files, names, side=side)
    train, test = split_per_class(whole.labels, test_share=_TEST_SHARE, seed=_SPLIT_SEED)
    return ImageDataset(
        name=root.resolve().name,
        train=whole.take(train),
        test=whole.take(test),
        mean=_MEAN,
        std=_STD,
        notes=(
            f"'{root}' has no folder 'val': {len(test):,} of its {whole.n_samples:,} images, a fifth of every class "
            "chosen at random, are the test data.",
            *_passed_over(folder),
        ),
    )


def _unseen(folder: Path, names: list[str]) -> tuple[str, ...]:
    if not names:
        return ()
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return (f"'{folder}' has no image of {len(names)} classes ({shown}): the test accuracy does not cover them.",)


def _passed_over(folder: Path) -> tuple[str, ...]:
    """What is in class folders and is not read."""
    n = sum(place.suffix.lower() not in _SUFFIXES for each in _class_folders(folder) for place in _entries(each))
    what = f"{n:,} other file or folder is" if n == 1 else f"{n:,} other files or folders are"
    where = f"in the class folders of '{folder}'"
    return (f"{what} {where}: only {', '.join(_SUFFIXES)} directly in a class folder are read.",) if n else ()


def _files(folder: Path, *, may_be_empty: bool = False) -> _Files:
    """Every class folder's images, both sorted by name, hidden ones left out."""
    classes = _class_folders(folder)
    if not classes:
        raise InputError(
            f"'{folder}' has no class folders: images belong in '{folder}/<class>/', one folder per class."
        )
    files = {place.name: _images(place) for place in classes}
    empty = [name for name, paths in files.items() if not paths]
    if empty and not may_be_empty:
        raise InputError(f"The class folder '{folder / empty[0]}' has no image ({', '.join(_SUFFIXES)}).")
    return files


def _class_folders(folder: Path) -> list[Path]:
    return sorted(place for place in _entries(folder) if place.is_dir())


def _images(folder: Path) -> list[Path]:
    return sorted(place for place in _entries(folder) if place.suffix.lower() in _SUFFIXES and place.is_file())


def _entries(folder: Path) -> list[Path]:
    try:
        return [place for place in folder.iterdir() if not place.name.startswith(".")]
    except OSError as error:
        raise InputError(f"The folder '{folder}' cannot be read: {error.strerror}.") from None


def _labeled(files: _Files, names: tuple[str, ...], *, side: int) -> LabeledImages:
    paths = [path for name in names for path in files.get(name, [])]
    labels = [number for number, name in enumerate(names) for _ in files.get(name, [])]
    return LabeledImages(
        images=FolderImages(paths, side=side), labels=torch.tensor(labels, dtype=torch.int64), class_names=names
    )
