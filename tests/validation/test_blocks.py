"""Blocks of whole models are kept beside the traces, and made again when they are not what they were."""

from dataclasses import replace

import numpy as np
import pytest

from traincast.kernels.refit.model_rows import Step
from traincast.trace.settings import Settings
from traincast.validation import blocks
from traincast.validation.block_file import read_block, write_block


@pytest.fixture
def steps():
    one = Step(
        trace="zoo:mnist_cnn",
        settings=Settings("fp32", "sgd"),
        device="T4",
        batch_size=64,
        observed_s=1e-3,
        tags={"family": "mnist"},
    )
    return [one, replace(one, batch_size=128, settings=Settings("amp-fp16", "sgd"))]


def test_a_block_is_made_once(steps, tmp_path, monkeypatch):
    first, extra = blocks.load_model_block("a set", steps, tmp_path)
    assert first.n_rows == 2
    assert np.isfinite(extra["paleo_scaled_s"]).all()
    assert np.isfinite(extra["layerwise_s"]).tolist() == [True, False]  # fp32 only
    monkeypatch.setattr(blocks, "write_block", None)  # would raise if the block were made again
    again, _ = blocks.load_model_block("a set", steps, tmp_path)
    assert again.kernels.sizes["flop"].tolist() == first.kernels.sizes["flop"].tolist()


def test_a_stored_block_that_is_no_longer_so_is_made_again(steps, tmp_path):
    first, extra = blocks.load_model_block("a set", steps, tmp_path)
    path, key = tmp_path / "block-a-set.npz", blocks.block_key(steps, tmp_path)
    write_block(path, replace(first, count=2 * first.count), extra, key=key)
    again, _ = blocks.load_model_block("a set", steps, tmp_path)
    assert again.count.tolist() == first.count.tolist()


def test_other_rows_are_another_block(steps, tmp_path):
    blocks.load_model_block("a set", steps, tmp_path)
    other = [replace(steps[0], batch_size=32), steps[1]]
    assert read_block(tmp_path / "block-a-set.npz", key=blocks.block_key(other, tmp_path)) is None
