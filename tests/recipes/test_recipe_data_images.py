"""Labelled images, the digits, and choices that keep every class."""

from __future__ import annotations

import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError, MissingExtraError
from traincast.recipes.data.choose import split_per_class, subset_per_class
from traincast.recipes.data.images import LabeledImages, StoredImages
from traincast.recipes.data.load import load_dataset

label_lists = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(torch.tensor)


def few(labels, n_classes=3):
    pixels = torch.arange(len(labels) * 12, dtype=torch.uint8).reshape(-1, 3, 2, 2)
    names = tuple("abc"[:n_classes])
    return LabeledImages(images=StoredImages(pixels), labels=torch.tensor(labels), class_names=names)


def test_taken_samples_keep_their_order_and_may_repeat():
    data = few([0, 1, 2, 1])
    part = data.take(torch.tensor([3, 0, 3]))
    assert part.labels.tolist() == [1, 0, 1]
    assert torch.equal(part.images.read(torch.tensor([0, 2])), data.images.read(torch.tensor([3, 3])))
    again = part.take(torch.tensor([1]))
    assert (again.n_samples, again.n_classes, again.image_side) == (1, 3, 2)
    assert torch.equal(again.images.read(torch.tensor([0])), data.images.read(torch.tensor([0])))


def test_enlarged_images_repeat_every_pixel():
    pixels = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8).expand(1, 3, 2, 2)
    image = StoredImages(pixels, n_repeats=2).read(torch.tensor([0]))[0, 0]
    assert image.tolist() == [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (torch.tensor([0, 1]), "4 images do not match 2 labels"),
        (torch.tensor([0, 1, 2, 3]), "from 0 to 3 are not class numbers"),
        (torch.tensor([0, 1, -1, 2]), "from -1 to 2"),
        (torch.tensor([0.0, 1, 1, 2]), "int64"),
        (torch.ones(4, 2), "2 columns do not match 3 classes"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, words):
    images = StoredImages(torch.zeros(4, 3, 2, 2, dtype=torch.uint8))
    with pytest.raises(InputError, match=words):
        LabeledImages(images=images, labels=labels, class_names=("a", "b", "c"))


@pytest.mark.parametrize("pixels", [torch.zeros(4, 3, 2, 2), torch.zeros(4, 1, 2, 2, dtype=torch.uint8)])
def test_stored_images_are_bytes_of_three_channels(pixels):
    with pytest.raises(InputError, match="uint8 of shape n x 3 x side x side"):
        StoredImages(pixels)


def test_digits_are_split_four_to_one_with_every_digit_in_both():
    data = load_dataset("digits")
    assert (data.train.n_samples, data.test.n_samples) == (1438, 359)
    assert data.train.class_names == tuple("0123456789")
    for part, least in ((data.train, 139), (data.test, 34)):
        assert int(part.labels.bincount(minlength=10).min()) >= least
    pixels = data.train.images.read(torch.arange(50))
    assert pixels.shape == (50, 3, 16, 16)
    assert torch.equal(pixels[:, 0], pixels[:, 2])
    assert torch.equal(pixels[:, :, ::2, ::2], pixels[:, :, 1::2, 1::2])
    assert int(pixels.max()) == 255


def test_digits_have_mean_zero_and_deviation_one_once_normalised():
    data = load_dataset("digits")
    pixels = data.train.images.read(torch.arange(data.train.n_samples)).double() / 255
    assert float(pixels.mean()) == pytest.approx(data.mean[0])
    assert float(pixels.std()) == pytest.approx(data.std[0], rel=1e-4)


def test_digits_are_the_same_every_time_and_of_the_side_asked_for():
    once, again = load_dataset("digits", image_side=8), load_dataset("digits", image_side=32)
    assert torch.equal(once.test.labels, again.test.labels)
    index = torch.arange(20)
    assert torch.equal(once.test.images.read(index), again.test.images.read(index)[:, :, ::4, ::4])


@pytest.mark.parametrize("side", [0, 7, 20])
def test_digits_of_an_odd_side_are_refused(side):
    with pytest.raises(InputError, match="multiple of 8"):
        load_dataset("digits", image_side=side)


@given(label_lists, st.floats(0.01, 1), st.integers(0, 2**32))
def test_a_share_of_every_class_leaves_at_least_one_of_each(labels, share, seed):
    chosen = subset_per_class(labels, share=share, seed=seed)
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    counts, chosen_counts = labels.bincount(minlength=5), labels[chosen].bincount(minlength=5)
    for count, n_chosen in zip(counts.tolist(), chosen_counts.tolist(), strict=True):
        assert n_chosen == (max(1, round(share * count)) if count else 0)
    assert torch.equal(chosen, subset_per_class(labels, share=share, seed=seed))


def test_another_seed_chooses_others():
    labels = torch.zeros(100).long()
    assert subset_per_class(labels, share=0.1, seed=0).tolist() != subset_per_class(labels, share=0.1, seed=1).tolist()


@pytest.mark.parametrize("share", [0, 1.1])
def test_shares_of_nothing_or_too_much_are_refused(share):
    with pytest.raises(InputError, match="not above 0 and at most 1"):
        subset_per_class(torch.tensor([0, 1]), seed=0, share=share)


@given(label_lists, st.integers(0, 100))
def test_a_split_has_every_sample_once_and_every_class_twice(labels, seed):
    labels = torch.cat([labels, labels])
    train, test = split_per_class(labels, test_share=0.2, seed=seed)
    assert sorted(train.tolist() + test.tolist()) == list(range(len(labels)))
    assert set(labels[train].tolist()) == set(labels[test].tolist()) == set(labels.tolist())


def test_a_class_of_one_cannot_be_split():
    with pytest.raises(InputError, match="Class 1 has only one image"):
        split_per_class(torch.tensor([0, 0, 1]), test_share=0.2, seed=0)


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match=r"traincast\[recipes\]"):
        load_dataset("digits")
