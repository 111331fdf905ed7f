"""Image folders: classes by name, decoded when read, and every flaw named."""

from __future__ import annotations

import contextlib
import io
import re
import resource
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from traincast.errors import FileFormatError, InputError, MissingExtraError
from traincast.recipes.data.augmentation import Augmentation
from traincast.recipes.data.batches import Batches
from traincast.recipes.data.folder_images import FolderImages, decode
from traincast.recipes.data.load import load_dataset

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def write_image(path, color=RED, size=(20, 14), **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).save(path, **options)
    return path


def write_decathlon(root, n_train=3, n_val=2):
    for part, n_images in (("train", n_train), ("val", n_val)):
        for name, color in (("0002", GREEN), ("0001", RED)):
            for number in range(n_images):
                write_image(root / part / name / f"{number}.{'jpg' if number % 2 else 'png'}", color)
    return root


def load(root, side=8):
    return load_dataset(str(root), image_side=side)


def colors(part):
    return part.images.read(torch.arange(part.n_samples))[:, :, 4, 4]


def test_the_decathlon_layout_gives_sorted_classes_with_their_images(tmp_path):
    data = load(write_decathlon(tmp_path / "flowers"))
    assert data.name == "flowers"
    assert data.train.class_names == data.test.class_names == ("0001", "0002")
    assert data.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.test.labels.tolist() == [0, 0, 1, 1]
    assert data.notes == ()
    expected = torch.tensor([RED] * 2 + [GREEN] * 2)
    assert torch.allclose(colors(data.test).float(), expected.float(), atol=3)  # JPEG is near, not exact


def test_images_go_through_batches(tmp_path):
    data = load(write_decathlon(tmp_path))
    batches = Batches(
        data.train, batch_size=4, seed=0, mean=data.mean, std=data.std, augmentation=Augmentation(crop_padding=0)
    )
    for images, labels in batches.epoch(0):
        is_green = images[:, 1, 4, 4] > images[:, 0, 4, 4]
        assert torch.equal(is_green.long(), labels)


def test_hidden_files_and_other_files_are_left_out(tmp_path):
    root = write_decathlon(tmp_path)
    (root / "train" / "0001" / ".DS_Store").write_bytes(b"x")
    (root / "train" / "0001" / "._0.png").write_bytes(b"x")
    (root / "train" / "0001" / "notes.txt").write_text("x")
    (root / "train" / ".cache").mkdir()
    (root / "train" / "list.txt").write_text("x")
    assert load(root).train.n_samples == 6


def test_what_is_not_read_is_counted(tmp_path):
    root = write_decathlon(tmp_path)
    (root / "train" / "0001" / "0.webp").write_bytes(b"x")
    (root / "train" / "0002" / "more").mkdir()
    (root / "val" / "0002" / "0.bmp").write_bytes(b"x")
    of_train, of_val = load(root).notes
    assert of_train.startswith("2 other files or folders are in the class folders of")
    assert of_val.startswith("1 other file or folder is in the class folders of")
    assert "only .jpg, .jpeg, .png directly in a class folder are read" in of_val


def test_an_unlabelled_test_folder_is_left_alone(tmp_path):
    root = write_decathlon(tmp_path)
    write_image(root / "test" / "0001.jpg")
    assert load(root).test.n_samples == 4


def test_a_labelled_test_folder_stands_in_for_val(tmp_path):
    root = write_decathlon(tmp_path)
    (root / "val").rename(root / "test")
    data = load(root)
    assert (data.train.n_samples, data.test.n_samples, data.notes) == (6, 4, ())


@pytest.mark.parametrize("inner", ["", "train"])
def test_without_val_a_fifth_of_every_class_is_the_test_and_it_is_said(tmp_path, inner):
    for name in ("cat", "dog"):
        for number in range(10):
            write_image(tmp_path / inner / name / f"{number}.png")
    data = load(tmp_path)
    assert data.train.labels.tolist() == [0] * 8 + [1] * 8
    assert data.test.labels.tolist() == [0] * 2 + [1] * 2
    assert len(data.notes) == 1
    assert "no folder 'val': 4 of its 20 images" in data.notes[0]


def test_classes_that_val_lacks_are_said(tmp_path):
    root = write_decathlon(tmp_path)
    write_image(root / "train" / "0003" / "0.png", BLUE)
    data = load(root)
    assert data.test.class_names == ("0001", "0002", "0003")
    assert "no image of 1 classes (0003)" in data.notes[0]


def folder_without_classes(root):
    write_image(root / "train" / "0.png")
    return rf"'{re.escape(str(root))}/train' has no class folders"


def root_without_anything(root):
    root.mkdir(exist_ok=True)
    return "has no class folders: images belong in"


def class_that_train_lacks(root):
    write_image(write_decathlon(root) / "val" / "0009" / "0.png")
    return "/val' has the class '0009', which .*/train' lacks"


def empty_class(root):
    (write_decathlon(root) / "train" / "0003").mkdir()
    return r"The class folder '.*/train/0003' has no image \(.jpg, .jpeg, .png\)"


def val_without_train(root):
    write_image(root / "val" / "0001" / "0.png")
    return "has a folder 'val' but no folder 'train'"


def empty_val(root):
    write_image(root / "train" / "0001" / "0.png")
    (root / "val" / "0001").mkdir(parents=True)
    return "/val' has no image in any of its class folders"


def one_class_alone(root):
    for number in range(4):
        write_image(root / "lone" / f"{number}.png")
    return "has only one class, 'lone': classification needs two"


def class_of_one_to_split(root):
    write_image(root / "lone" / "0.png")
    return "The class 'lone' in .* has only one image"


@pytest.mark.parametrize(
    "make",
    [
        folder_without_classes,
        root_without_anything,
        class_that_train_lacks,
        empty_class,
        val_without_train,
        empty_val,
        class_of_one_to_split,
        one_class_alone,
    ],
)
def test_folders_that_cannot_be_trained_on_are_refused_in_one_sentence(tmp_path, make):
    words = make(tmp_path)
    with pytest.raises(InputError, match=words) as raised:
        load(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_path_that_leads_nowhere_names_what_is_accepted(tmp_path):
    with pytest.raises(InputError, match=r"'digits', 'shapes', 'cifar10' .*, or the path of an image folder"):
        load_dataset(str(tmp_path / "nothing"))
    with pytest.raises(InputError, match="Close names: digits"):
        load_dataset("digit")


def test_a_file_that_is_no_archive_names_what_is_accepted(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("x")
    with pytest.raises(InputError, match="is a file but not the archive of CIFAR-10"):
        load_dataset(str(path))


@pytest.mark.parametrize(("size", "resized"), [((40, 20), (12, 6)), ((20, 40), (6, 12)), ((20, 20), (6, 6))])
def test_the_short_side_is_resized_and_the_middle_is_kept(tmp_path, size, resized):
    random = np.random.default_rng(0)
    picture = Image.fromarray(random.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
    picture.save(tmp_path / "a.png")
    left, top = (resized[0] - 6) // 2, (resized[1] - 6) // 2
    expected = picture.resize(resized, Image.Resampling.BILINEAR).crop((left, top, left + 6, top + 6))
    assert np.allclose(decode(tmp_path / "a.png", side=6), np.asarray(expected, dtype=int), atol=1)


@pytest.mark.parametrize("size", [(1, 20_000), (20_000, 1), (1, 1)])
def test_a_very_long_image_is_no_trouble(tmp_path, size):
    path = write_image(tmp_path / "a.png", GREEN, size)
    assert (decode(path, side=64) == GREEN).all()


def test_large_photos_keep_their_content(tmp_path):
    """A JPEG is decoded at a fraction of its size: halves stay where they are."""
    picture = Image.new("RGB", (1600, 1200), RED)
    picture.paste(BLUE, (800, 0, 1600, 1200))
    picture.save(tmp_path / "a.jpg", quality=95)
    pixels = decode(tmp_path / "a.jpg", side=16)
    assert (pixels[:, :7, 0] > 240).all()
    assert (pixels[:, 9:, 2] > 240).all()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK"])
def test_every_usual_kind_of_pixel_becomes_red_green_blue(tmp_path, mode):
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    options = {"transparency": b"\x00\x80"} if mode == "P" else {}
    Image.new("RGB", (9, 9), (255, 255, 255)).convert(mode).save(path, **options)
    assert (decode(path, side=4) > 250).all()


@pytest.mark.parametrize("mode", ["I;16", "F"])
def test_deep_pixels_are_refused_and_not_clipped(tmp_path, mode):
    path = tmp_path / ("a.png" if mode == "I;16" else "a.tiff")
    Image.new(mode, (9, 9)).save(path)
    with pytest.raises(FileFormatError, match="more than 8 bits"):
        decode(path, side=4)


@pytest.mark.parametrize("content", [b"", b"no image", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0"])
def test_an_image_that_cannot_be_decoded_is_named(tmp_path, content):
    root = write_decathlon(tmp_path)
    (root / "train" / "0001" / "broken.jpg").write_bytes(content)
    with pytest.raises(
        FileFormatError, match=r"train/0001/broken.jpg' cannot be decoded: it is damaged or not an image"
    ):
        colors(load(root).train)


def test_an_image_that_went_missing_is_named(tmp_path):
    data = load(write_decathlon(tmp_path))
    (tmp_path / "val" / "0001" / "0.png").unlink()
    with pytest.raises(FileFormatError, match=r"val/0001/0.png' cannot be decoded: No such file"):
        colors(data.test)


def test_a_truncated_photo_is_named(tmp_path):
    path = write_image(tmp_path / "a.jpg", size=(64, 64))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FileFormatError, match="cannot be decoded"):
        decode(path, side=4)


def png_that_claims(width, height):
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_000, 60_000])
def test_an_image_that_claims_to_be_huge_is_not_decoded(tmp_path, side):
    path = tmp_path / "bomb.png"
    path.write_bytes(png_that_claims(side, side))
    with pytest.raises(FileFormatError, match=r"bomb.png' claims more than [\d,]+ pixels"):
        decode(path, side=4)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="nothing tells how much memory is mapped")
def test_a_part_that_claims_more_bytes_than_there_is_memory_is_damage(tmp_path):
    path = tmp_path / "claims.png"
    content = png_that_claims(8, 8)
    place = content.index(b"IDAT")
    path.write_bytes(content[: place - 4] + b"\xff\xff\xff\xf0" + content[place:])
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 10**9, before[1]))
    try:
        with pytest.raises(FileFormatError, match=r"claims\.png' cannot be decoded: it is damaged"):
            decode(path, side=4)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["PNG", "JPEG"]), st.data())
def test_damaged_images_give_pixels_or_one_sentence(tmp_path, kind, data):
    random = np.random.default_rng(0)
    file = io.BytesIO()
    Image.fromarray(random.integers(0, 256, (12, 12, 3), dtype=np.uint8)).save(file, format=kind)
    good = file.getvalue()
    place = data.draw(st.integers(0, len(good)))
    path = tmp_path / "damaged"
    path.write_bytes(good[:place] + data.draw(st.binary(max_size=4)) + good[place + data.draw(st.integers(0, 4)) :])
    with contextlib.suppress(FileFormatError):  # anything else fails the test
        assert decode(path, side=4).shape == (4, 4, 3)


def test_a_side_of_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="0 x 0 pixels"):
        load(write_decathlon(tmp_path), side=0)


def test_without_pillow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r"traincast\[recipes\]"):
        FolderImages([], side=4)
