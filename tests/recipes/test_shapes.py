"""The made-up shapes: a data set in the layout of the Visual Decathlon, and a first task where classes are few."""

import pytest
import torch

from traincast.recipes.data.load import load_dataset
from traincast.recipes.data.shapes import CLASSES, write_shapes
from traincast.recipes.transfer_learning.task import halves


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("PIL")
    return write_shapes(tmp_path_factory.mktemp("decathlon") / "shapes")


def test_the_files_lie_as_in_the_decathlon(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["train", "val"]
    assert [path.name for path in sorted((folder / "train").iterdir())] == [f"{n:04d}" for n in range(1, 11)]
    assert len(list((folder / "train" / "0001").iterdir())) == 40
    assert len(list((folder / "val" / "0010").iterdir())) == 10


def test_the_files_hold_the_images_of_the_set_by_name(folder):
    files, named = load_dataset(str(folder), image_side=16), load_dataset("shapes")
    index = torch.arange(0, 400, 40)
    assert torch.equal(files.train.images.read(index), named.train.images.read(index))
    assert files.train.labels.tolist() == named.train.labels.tolist()


def test_half_of_the_classes_is_learned_first():
    source, target = halves(load_dataset("shapes"))
    assert source.train.class_names == CLASSES[:5]
    assert target.train.class_names == CLASSES[5:]


def test_a_folder_of_two_classes_needs_no_weights_for_shapes_come_first(folder, tmp_path):
    for split in ("train", "val"):
        for name in ("0001", "0002"):
            (tmp_path / split).mkdir(exist_ok=True)
            (tmp_path / split / name).symlink_to(folder / split / name)
    source, target = halves(load_dataset(str(tmp_path), image_side=16))
    assert source.name == "shapes"
    assert source.train.image_side == 16
    assert target.train.n_classes == 2
