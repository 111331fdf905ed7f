"""Small archives in the format of CIFAR-10 for Python: pickles as Python 2 wrote them."""

from __future__ import annotations

import io
import pickle
import tarfile

import numpy as np

FILES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
INNER = "cifar-10-batches-py"


def batch(number, n_rows=20):
    """Rows whose label is their first pixel modulo ten; every file's pixels are its own."""
    random = np.random.default_rng(number)
    data = random.integers(0, 256, (n_rows, 3072), dtype=np.uint8)
    return {
        b"batch_label": b"a batch",
        b"labels": [int(row[0]) % 10 for row in data],
        b"data": data,
        b"filenames": [b"an_image.png"] * n_rows,
    }


def batches(n_rows=20):
    return {name: pickle.dumps(batch(number, n_rows), protocol=2) for number, name in enumerate(FILES)}


def write_folder(folder, files=None):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (batches() if files is None else files).items():
        (folder / name).write_bytes(data)
    return folder


def write_archive(path, files=None, *, extra=()):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in (batches() if files is None else files).items():
            member = tarfile.TarInfo(f"{INNER}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in extra:
            archive.addfile(member, io.BytesIO(b"x" * member.size))
    return path
