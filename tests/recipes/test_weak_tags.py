"""Noisy tags made from true labels, and how often images are drawn by them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.recipes.weak_labels.resampling import square_root_weights
from traincast.recipes.weak_labels.tags import Tagging, add_noise, long_tail, tag_images, targets_of

MANY = torch.arange(10).repeat(500)


def test_a_tenth_of_the_true_tags_is_missing_and_three_tenths_have_a_further_one():
    tags = tag_images(MANY, n_classes=10, tagging=Tagging(dropped_fraction=0.1, added_fraction=0.3), seed=1)
    has_own = tags[torch.arange(len(MANY)), MANY].float().mean().item()
    n_others = (tags.sum(1).float() - tags[torch.arange(len(MANY)), MANY].float()).mean().item()
    assert has_own == pytest.approx(0.9, abs=0.02)
    assert n_others == pytest.approx(0.3, abs=0.02)


def test_people_who_make_no_mistakes_write_the_labels():
    tags = tag_images(MANY, n_classes=10, tagging=Tagging(dropped_fraction=0, added_fraction=0), seed=1)
    assert torch.equal(tags, torch.nn.functional.one_hot(MANY, 10).bool())


@given(st.floats(0, 1), st.integers(0, 5))
def test_noise_leaves_every_image_at_least_one_and_at_most_as_many_tags(fraction, seed):
    tags = tag_images(torch.arange(4).repeat(10), n_classes=4, tagging=Tagging(), seed=seed)
    noisy = add_noise(tags, fraction, seed=seed)
    assert torch.equal(noisy.any(1), tags.any(1))
    assert bool((noisy.sum(1) <= tags.sum(1)).all())


def test_no_noise_changes_nothing_and_half_of_it_replaces_half_of_the_tags():
    tags = torch.nn.functional.one_hot(MANY, 10).bool()
    assert torch.equal(add_noise(tags, 0.0, seed=3), tags)
    kept = (add_noise(tags, 0.5, seed=3) & tags).any(1).float().mean().item()
    assert kept == pytest.approx(0.5 + 0.5 / 10, abs=0.03)  # a tenth of what is drawn is the tag that was there


def test_noise_follows_how_often_tags_are_used():
    labels = torch.tensor([0] * 3000 + [1] * 1000)
    noisy = add_noise(torch.nn.functional.one_hot(labels, 2).bool(), 1.0, seed=0)
    assert noisy[:, 0].float().mean().item() == pytest.approx(0.75, abs=0.03)


def test_an_image_of_k_tags_is_trained_towards_one_kth_of_each():
    assert targets_of(torch.tensor([[True, False, True], [False, True, False]])).tolist() == [[0.5, 0, 0.5], [0, 1, 0]]


def test_an_image_without_a_tag_has_no_target():
    with pytest.raises(InputError, match="1 images have no tag"):
        targets_of(torch.tensor([[True, False], [False, False]]))


def test_the_commonest_class_has_ten_times_the_images_of_the_rarest():
    sizes = torch.bincount(MANY[long_tail(MANY, n_classes=10, imbalance=10, seed=0)]).sort().values.tolist()
    assert (sizes[0], sizes[-1]) == (50, 500)
    assert sizes[5] / sizes[4] == pytest.approx(10 ** (1 / 9), rel=0.02)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.floats(1, 50), st.integers(0, 5))
def test_a_long_tail_takes_images_once_and_some_of_every_class_there_is(labels, imbalance, seed):
    given_labels = torch.tensor(labels)
    kept = long_tail(given_labels, n_classes=4, imbalance=imbalance, seed=seed)
    assert kept.unique().numel() == len(kept)
    assert set(given_labels[kept].tolist()) == set(labels)


def test_a_tag_used_four_times_as_often_is_drawn_twice_as_often_in_all():
    tags = torch.nn.functional.one_hot(torch.tensor([0] * 4 + [1]), 2).bool()
    weights = square_root_weights(tags)
    assert weights[4].item() == pytest.approx(2 * weights[0].item())
    assert weights[:4].sum().item() == pytest.approx(2 * weights[4].item())
    assert weights.mean().item() == pytest.approx(1)


def test_an_image_is_drawn_by_its_rarest_tag():
    tags = torch.tensor([[True, False], [True, False], [True, False], [True, True]])
    weights = square_root_weights(tags)
    assert weights[3].item() == pytest.approx(2 * weights[0].item())


@pytest.mark.parametrize("fraction", [-0.1, 1.5])
def test_a_share_of_noise_that_cannot_be_is_said(fraction):
    with pytest.raises(InputError, match=f"between 0 and 1, not {fraction}"):
        add_noise(torch.ones(1, 1, dtype=torch.bool), fraction, seed=0)


def test_a_share_of_tags_that_cannot_be_is_said():
    with pytest.raises(InputError, match="tags that are dropped should be at least 0 and below 1, not 1"):
        Tagging(dropped_fraction=1.0)
