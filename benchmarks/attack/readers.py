"""Who reads the files that only a training reads, after minutes of work or a download."""

from __future__ import annotations

from pathlib import Path


def weights(path: Path) -> object:
    from traincast.recipes.transfer_learning.weights import read_weights

    return read_weights(path)


def checkpoint(path: Path) -> object:
    from traincast.recipes.engine.checkpoint import load_checkpoint

    return load_checkpoint(path)


def picture(path: Path) -> object:
    from traincast.recipes.data.folder_images import decode

    return decode(path, side=16)


def pickle(path: Path) -> object:
    from traincast.recipes.data.plain_pickle import read_plain_pickle

    return read_plain_pickle(path.read_bytes(), name=path.name)


def live_jobs(path: Path) -> object:
    from traincast.launch.elastic_job import read_elastic_jobs

    return read_elastic_jobs(path)
