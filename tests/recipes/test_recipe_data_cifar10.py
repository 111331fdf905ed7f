"""CIFAR-10 from its Python files: read whole, checked first, and never run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import tarfile

import numpy as np
import pytest
import torch
from cifar_archive import FILES, INNER, batch, batches, write_archive, write_folder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincast.errors import FileFormatError, InputError
from traincast.recipes.data.cifar10 import CHECKSUMS, read_cifar10
from traincast.recipes.data.load import load_dataset
from traincast.recipes.data.plain_pickle import read_plain_pickle


def checksums_of(files):
    return {name: hashlib.md5(data).hexdigest() for name, data in files.items()}


@pytest.mark.parametrize("place", ["folder", "outer folder", "archive"])
def test_the_same_images_come_from_a_folder_or_an_archive(tmp_path, place):
    if place == "archive":
        path = write_archive(tmp_path / "cifar-10-python.tar.gz")
    else:
        inner = write_folder(tmp_path / INNER)
        path = inner if place == "folder" else tmp_path
    data = read_cifar10(path, checksums=checksums_of(batches()))
    assert (data.train.n_samples, data.test.n_samples) == (100, 20)
    assert data.train.class_names[:3] == ("airplane", "automobile", "bird")
    expected = np.concatenate([batch(number)[b"data"] for number in range(5)]).reshape(-1, 3, 32, 32)
    pixels = data.train.images.read(torch.arange(100))
    assert torch.equal(pixels, torch.from_numpy(expected))
    assert torch.equal(data.train.labels, pixels[:, 0, 0, 0].long() % 10)
    assert int(data.test.images.read(torch.tensor([0]))[0, 0, 0, 0]) % 10 == int(data.test.labels[0])


def test_images_are_enlarged_by_whole_numbers(tmp_path):
    data = read_cifar10(write_folder(tmp_path), image_side=64, checksums=None)
    assert data.test.images.read(torch.tensor([0])).shape == (1, 3, 64, 64)
    with pytest.raises(InputError, match="multiple of 32"):
        read_cifar10(tmp_path, image_side=48, checksums=None)


def test_files_written_by_either_python_are_read(tmp_path):
    """Text keys, as Python 3 writes them, beside byte keys, as the published files have them."""
    files = batches()
    content = {key.decode(): value for key, value in batch(0).items()}
    files["data_batch_1"] = pickle.dumps(content, protocol=2)
    assert read_cifar10(write_folder(tmp_path, files), checksums=None).train.n_samples == 100


def test_a_pickle_of_python_2_is_read():
    """As numpy of 2009 wrote it: short strings for bytes, and a module that has since moved."""
    pickled = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85"
        b"U\x01b\x87Rq\x05(K\x01K\x01K\x03\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNN"
        b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x03\x01\xff\x80tbU\x06labels]q\x08K\x06au."
    )
    content = read_plain_pickle(pickled, name="old")
    assert content["data"].tolist() == [[1, 255, 128]]
    assert content["labels"] == [6]


def test_load_dataset_checks_against_the_published_checksums(tmp_path):
    with pytest.raises(FileFormatError, match=rf"'data_batch_1' in .* instead of {CHECKSUMS['data_batch_1']}"):
        load_dataset(str(write_folder(tmp_path / "folder")))
    with pytest.raises(FileFormatError, match="the file is damaged, or not the published one"):
        load_dataset(str(write_archive(tmp_path / "cifar-10-python.tar.gz")))


def test_one_changed_byte_is_found(tmp_path):
    files = batches()
    checksums = checksums_of(files)
    files["test_batch"] = files["test_batch"][:-9] + b"#" + files["test_batch"][-8:]
    with pytest.raises(FileFormatError, match=r"'test_batch' .* MD5"):
        read_cifar10(write_folder(tmp_path, files), checksums=checksums)


@pytest.mark.parametrize("missing", FILES)
def test_missing_files_are_named(tmp_path, missing):
    files = batches(n_rows=1)
    del files[missing]
    with pytest.raises(FileFormatError, match=f"no file '{missing}'"):
        read_cifar10(write_folder(tmp_path / "folder", files), checksums=None)
    with pytest.raises(FileFormatError, match=f"no file '{missing}'"):
        read_cifar10(write_archive(tmp_path / "a.tar.gz", files), checksums=None)


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_with_code_is_refused_and_not_run(tmp_path, protocol):
    trap = tmp_path / "trap"
    files = batches()
    files["data_batch_3"] = pickle.dumps({b"data": Harmful(trap), b"labels": []}, protocol=protocol)
    with pytest.raises(FileFormatError, match=r"data_batch_3' asks for '\w+.mkdir', .* it was not run") as raised:
        read_cifar10(write_folder(tmp_path / "folder", files), checksums=None)
    assert not trap.exists()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    ["builtins\neval", "numpy\nload", "numpy.core.multiarray\nfromfile", "_codecs\ndecode", "numpy\nndarray.tofile"],
)
def test_names_near_the_allowed_ones_are_refused(name):
    with pytest.raises(FileFormatError, match="was not run"):
        read_plain_pickle(f"c{name}\n(tR.".encode(), name="trap")


@pytest.mark.parametrize("data", [np.zeros((1, 3072)), np.array([None] * 3), np.array([("a", 1)], dtype="S1,i4")])
def test_arrays_of_anything_but_bytes_are_refused(data):
    with pytest.raises(FileFormatError, match="not a pickle of plain data"):
        read_plain_pickle(pickle.dumps(data, protocol=2), name="other")


@pytest.mark.parametrize(
    "call",
    [
        b"cnumpy\nndarray\n(J\xff\xff\xff\x7ftR.",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(J\xff\xff\xff\x7ftU\x01OtR.",
    ],
)
def test_an_array_that_would_fill_the_memory_is_refused(call):
    with pytest.raises(FileFormatError, match="not a pickle of plain data"):
        read_plain_pickle(call, name="trap")


def test_no_other_codec_is_looked_up():
    with pytest.raises(FileFormatError, match="not a pickle of plain data"):
        read_plain_pickle(b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x04\x00\x00\x00zliptR.", name="trap")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_pickles_give_one_sentence_or_plain_data(data):
    good = pickle.dumps(batch(0, n_rows=1), protocol=2)
    place = data.draw(st.integers(0, 400))
    damaged = good[:place] + data.draw(st.binary(max_size=6)) + good[place + data.draw(st.integers(0, 6)) :]
    with contextlib.suppress(FileFormatError):  # anything else fails the test
        read_plain_pickle(damaged, name="damaged")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({b"data": np.zeros((20, 3071), np.uint8)}, "rows of 3,072 bytes"),
        ({b"data": [1, 2]}, "rows of 3,072 bytes"),
        ({b"labels": [1] * 19}, "one number from 0 to 9 a row"),
        ({b"labels": [10] * 20}, "one number from 0 to 9 a row"),
        ({b"labels": None}, "one number from 0 to 9 a row"),
    ],
)
def test_batches_of_another_shape_are_refused(tmp_path, change, words):
    files = batches() | {"data_batch_2": pickle.dumps(batch(1) | change, protocol=2)}
    with pytest.raises(FileFormatError, match=f"data_batch_2' is not a batch of CIFAR-10: .*{words}"):
        read_cifar10(write_folder(tmp_path, files), checksums=None)


def test_a_pickle_that_is_no_dictionary_is_refused(tmp_path):
    files = batches() | {"test_batch": pickle.dumps([1, 2], protocol=2)}
    with pytest.raises(FileFormatError, match="has no dictionary"):
        read_cifar10(write_folder(tmp_path, files), checksums=None)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 3000))
def test_archives_cut_short_give_one_sentence(tmp_path, n_bytes):
    path = tmp_path / "cut.tar.gz"
    path.write_bytes(write_archive(tmp_path / "whole.tar.gz", batches(n_rows=1)).read_bytes()[:n_bytes])
    with pytest.raises(FileFormatError):
        read_cifar10(path, checksums=None)


def test_a_file_that_is_no_archive_gives_one_sentence(tmp_path):
    path = tmp_path / "cifar.tar.gz"
    path.write_bytes(b"not an archive")
    with pytest.raises(FileFormatError, match="not an archive that can be read"):
        load_dataset(str(path))


def test_an_archive_writes_nothing_anywhere(tmp_path):
    """Members with paths that lead out of the folder are never touched."""
    outside, link = tarfile.TarInfo("../outside"), tarfile.TarInfo("link")
    outside.size = 3
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    folder = tmp_path / "inner"
    folder.mkdir()
    path = write_archive(folder / "cifar.tar.gz", extra=(outside, link))
    assert read_cifar10(path, checksums=None).train.n_samples == 100
    assert sorted(place.name for place in tmp_path.rglob("*")) == ["cifar.tar.gz", "inner"]


def test_a_link_in_the_place_of_a_batch_is_not_followed(tmp_path):
    link = tarfile.TarInfo(f"{INNER}/test_batch")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    files = {name: data for name, data in batches().items() if name != "test_batch"}
    with pytest.raises(FileFormatError, match=r"'cifar-10-batches-py/test_batch' in .* is not a file of at most"):
        read_cifar10(write_archive(tmp_path / "a.tar.gz", files, extra=(link,)), checksums=None)
