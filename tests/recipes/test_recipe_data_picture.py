"""The picture of a data set and its table of images per class."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from traincast.errors import InputError
from traincast.recipes.data.images import ImageDataset, LabeledImages, StoredImages
from traincast.recipes.data.load import load_dataset
from traincast.recipes.data.picture import sample_picture, write_sample_picture
from traincast.views.train_transfer import class_table


def plain(labels, names, side=8):
    """Every image is of one colour that tells its label."""
    values = 10 * torch.tensor(labels, dtype=torch.uint8) + 100
    pixels = values[:, None, None, None].repeat(1, 3, side, side)
    return LabeledImages(images=StoredImages(pixels), labels=torch.tensor(labels), class_names=tuple(names))


def test_the_table_counts_images_of_every_class():
    data = ImageDataset(
        name="few",
        train=plain([0, 0, 2], "abc"),
        test=plain([1, 2], "abc"),
        mean=(0.5, 0.5, 0.5),
        std=(1.0, 1.0, 1.0),
        notes=("A remark.",),
    )
    table = class_table(data)
    assert table.rows == (("a", 2, 0), ("b", 0, 1), ("c", 1, 1))
    assert table.notes == ("A remark.",)


def grey_values(picture):
    """The values of pixels that are grey and neither paper nor ink."""
    pixels = np.asarray(picture)
    is_grey = (pixels == pixels[:, :, :1]).all(axis=2)
    values, counts = np.unique(pixels[is_grey][:, 0], return_counts=True)
    return {int(value): int(count) for value, count in zip(values, counts, strict=True)}


def test_every_class_is_shown_with_as_many_tiles_as_it_has_images():
    picture = sample_picture(plain([0, 0, 0, 1], "abc"), n_classes=3, n_each=2)
    seen = grey_values(picture)
    assert seen[100] >= 2 * 64 * 64  # two of the three
    assert 64 * 64 <= seen[110] < 2 * 64 * 64
    assert seen.get(120, 0) < 64


def test_the_same_seed_gives_the_same_picture_and_another_seed_another():
    data = load_dataset("digits").train
    first, same, other = (np.asarray(sample_picture(data, n_each=3, seed=seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_many_classes_are_a_choice_and_long_names_are_cut():
    names = [f"a class with quite a long name\nof two lines, number {number}" for number in range(50)]
    picture = sample_picture(plain(list(range(50)), names), n_classes=5, n_each=2)
    full = sample_picture(plain(list(range(5)), names[:5]), n_classes=5, n_each=2)
    assert picture.size == full.size


def test_a_picture_is_written_as_png(tmp_path):
    path = tmp_path / "samples.png"
    write_sample_picture(path, plain([0, 1], "ab", side=200), n_each=1)
    with Image.open(path) as picture:
        assert picture.format == "PNG"


@pytest.mark.parametrize("path", ["samples.jpg", "no/such/folder/samples.png"])
def test_a_picture_that_cannot_be_written_is_refused(tmp_path, path):
    with pytest.raises(InputError, match="The picture"):
        write_sample_picture(tmp_path / path, plain([0, 1], "ab"))


def test_a_picture_of_nothing_is_refused():
    with pytest.raises(InputError, match="is empty"):
        sample_picture(plain([0, 1], "ab"), n_classes=0)


def test_soft_labels_cannot_be_counted():
    images = StoredImages(torch.zeros(2, 3, 4, 4, dtype=torch.uint8))
    data = LabeledImages(images=images, labels=torch.full((2, 2), 0.5), class_names=("a", "b"))
    with pytest.raises(InputError, match="one label"):
        sample_picture(data)


def test_of_very_many_classes_the_table_shows_the_first():
    names = tuple(f"{number:03d}" for number in range(25))
    part = plain([*range(25), 0], names)
    data = ImageDataset(name="many", train=part, test=part, mean=(0.5, 0.5, 0.5), std=(1.0, 1.0, 1.0))
    table = class_table(data)
    assert len(table.rows) == 20
    assert table.notes == ("5 more classes; all have 1 to 2 training images.",)
