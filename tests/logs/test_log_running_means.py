"""Means since the start of the epoch are recognised; ordinary noise is left alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_logs import batches, means_since_start, table

import traincast as tc
from traincast.logs.running_mean import is_running_mean

shapes = st.tuples(st.integers(3, 12), st.integers(60, 400))
seeds = st.integers(0, 10**6)


def judged(rows_by_epoch, stride=1):
    thinned = rows_by_epoch[:, stride - 1 :: stride]
    n_epochs, n_rows = thinned.shape
    steps = np.arange(1.0, rows_by_epoch.size + 1).reshape(rows_by_epoch.shape)[:, stride - 1 :: stride]
    epochs = np.repeat(np.arange(float(n_epochs)), n_rows)
    return is_running_mean(thinned.ravel(), steps.ravel(), epochs, rows_by_epoch.shape[1])


@settings(max_examples=60)
@given(shapes, seeds, st.floats(0.02, 0.5), st.integers(3, 8))
def test_running_means_are_recognised(shape, seed, noise, digits):
    losses = batches(np.random.default_rng(seed), *shape, noise=noise)
    assert judged(np.round(means_since_start(losses), digits))


@settings(max_examples=60)
@given(shapes, seeds, st.floats(0.005, 0.5), st.integers(2, 8), st.integers(1, 5))
def test_losses_of_single_batches_are_not_running_means(shape, seed, noise, digits, stride):
    losses = batches(np.random.default_rng(seed), *shape, noise=noise)
    assert not judged(np.round(losses, digits), stride)


@settings(max_examples=30)
@given(shapes, seeds)
def test_accuracies_of_batches_are_told_from_their_running_means(shape, seed):
    rng = np.random.default_rng(seed)
    n_epochs, n_steps = shape
    chance = np.clip(0.9 - 0.8 / (1 + np.arange(n_epochs * n_steps) / n_steps), 0.1, 0.9).reshape(shape)
    right = rng.binomial(128, chance) / 128
    assert judged(np.round(means_since_start(right), 4))
    assert not judged(np.round(right, 4))


@settings(max_examples=30)
@given(shapes, seeds)
def test_a_smoothed_loss_is_not_a_running_mean(shape, seed):
    losses = batches(np.random.default_rng(seed), *shape).ravel()
    for at in range(1, len(losses)):
        losses[at] = 0.95 * losses[at - 1] + 0.05 * losses[at]
    assert not judged(losses.reshape(shape))


def test_a_noiseless_curve_is_not_a_running_mean():
    assert not judged(batches(np.random.default_rng(0), 5, 100, noise=0.0))


def test_of_a_running_mean_only_the_ends_of_finished_epochs_are_kept(tmp_path):
    rng = np.random.default_rng(3)
    right = means_since_start(rng.binomial(128, 0.7, (4, 100)) / 128)
    losses = batches(rng, 4, 100)
    rows = [(e, s + 1, losses[e, s], right[e, s]) for e in range(4) for s in range(100)][:-60]
    log = tc.read_log(table(tmp_path / "log.csv", "epoch, step, loss, acc", rows))
    accuracy = log.find("accuracy")
    assert accuracy.kind == "running_mean"
    assert accuracy.steps.tolist() == [100, 200, 300]
    assert accuracy.values == pytest.approx(right[:3, -1], rel=1e-5)
    assert log.find("loss").kind == "point"
    assert len(log.find("loss")) == 340
    assert any("mean since the start of its epoch" in remark for remark in log.remarks)
