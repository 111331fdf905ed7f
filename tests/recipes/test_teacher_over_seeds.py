"""Means over seeds, and epochs of one length."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.recipes.data.images import ImageDataset, LabeledImages, StoredImages
from traincast.recipes.over_seeds import over_seeds, paired
from traincast.recipes.passes import exact_name, lengthened, passes_over, samples_an_epoch


def test_two_runs_have_the_interval_of_students_table():
    found = over_seeds([0.9, 1.1])  # t of one degree of freedom is 12.706; the standard error is 0.1
    assert found.mean == pytest.approx(1.0)
    assert found.high - found.mean == pytest.approx(1.2706, rel=1e-4)


def test_one_run_has_no_interval():
    assert (over_seeds([0.5]).low, over_seeds([0.5]).high) == (None, None)


def test_what_a_seed_does_to_both_runs_cancels():
    found = paired([0.6, 0.8, 0.7], [0.5, 0.7, 0.6])
    assert (found.low, found.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_runs_without_a_partner_are_refused():
    with pytest.raises(InputError, match="2 cannot be paired with 1"):
        paired([0.1, 0.2], [0.1])


@given(st.integers(1, 20), st.integers(1, 70), st.integers(0, 3))
def test_every_image_comes_equally_often_but_for_one_pass(n_images, n_samples, seed):
    found = passes_over(n_images, n_samples, seed=seed)
    assert len(found) == max(n_samples, n_images)
    counts = torch.bincount(found, minlength=n_images)
    assert counts.max() - counts.min() <= 1


def test_an_epoch_over_nothing_is_refused():
    with pytest.raises(InputError, match="No image was selected"):
        passes_over(0, 10, seed=0)


@pytest.mark.parametrize(("n_images", "n_samples"), [(1437, 1408), (64, 64), (10, 64)])
def test_an_epoch_is_whole_batches(n_images, n_samples):
    assert samples_an_epoch(n_images, 64) == n_samples


def test_images_keep_their_own_labels_however_often_they_come():
    pixels = torch.arange(5, dtype=torch.uint8).reshape(5, 1, 1, 1).repeat(1, 3, 8, 8)
    train = LabeledImages(images=StoredImages(pixels), labels=torch.zeros(5).long(), class_names=("a", "b"))
    data = ImageDataset(name="grey", train=train, test=train, mean=(0, 0, 0), std=(1, 1, 1))
    longer = lengthened(data, torch.tensor([4, 2]), torch.tensor([1, 0]), n_samples=7, seed=0)
    shown = longer.train.images.read(torch.arange(7))[:, 0, 0, 0]
    assert sorted(set(zip(shown.tolist(), longer.train.labels.tolist(), strict=True))) == [(2, 0), (4, 1)]
    assert longer.test is data.test


def test_numbers_in_the_names_of_folders_are_short_and_never_those_of_others():
    assert [exact_name(value) for value in (0.1, 1.0, 0.0)] == ["0.1", "1", "0"]
    assert exact_name(0.10000001) == "0.10000001"
