"""Batches follow from seed, epoch and step alone, and augmentation only moves pixels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.recipes.data.augmentation import Augmentation, augment
from traincast.recipes.data.batches import Batches, _check_weights
from traincast.recipes.data.images import LabeledImages, StoredImages

ZERO_ONE = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
N_CLASSES = 256


def numbered_images(n_samples, side=4):
    """Image i is filled with the value i, and so is its label."""
    numbers = torch.arange(n_samples)
    pixels = numbers.to(torch.uint8)[:, None, None, None].expand(n_samples, 3, side, side).contiguous()
    names = tuple(str(number) for number in range(N_CLASSES))
    return LabeledImages(images=StoredImages(pixels), labels=numbers, class_names=names)


def random_pixels(n_images, side, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, 256, (n_images, 3, side, side), generator=generator, dtype=torch.uint8)


sizes = st.tuples(st.integers(1, 40), st.integers(1, 12))
seeds = st.integers(0, 2**40)


@given(sizes, seeds, st.integers(0, 1000), st.booleans())
def test_every_sample_comes_once_an_epoch(size, seed, epoch, is_shuffled):
    n_samples, batch_size = size
    batches = Batches(numbered_images(n_samples), batch_size=batch_size, seed=seed, is_shuffled=is_shuffled, **ZERO_ONE)
    epoch_batches = list(batches.epoch(epoch))
    seen = torch.cat([labels for _, labels in epoch_batches])
    assert sorted(seen.tolist()) == list(range(n_samples))
    assert len(epoch_batches) == batches.n_steps
    assert [len(labels) for _, labels in epoch_batches[:-1]] == [batch_size] * (batches.n_steps - 1)


@given(sizes, seeds, st.integers(0, 5))
def test_images_stay_with_their_labels(size, seed, epoch):
    batches = Batches(numbered_images(size[0]), batch_size=size[1], seed=seed, **ZERO_ONE)
    for images, labels in batches.epoch(epoch):
        assert torch.equal((images[:, 0, 0, 0] * 255).round().long(), labels)


@settings(deadline=None)
@given(sizes, seeds, st.integers(0, 5), st.data(), st.booleans())
def test_an_epoch_entered_at_any_step_goes_on_the_same(size, seed, epoch, data, is_weighted):
    n_samples, batch_size = size
    batches = Batches(
        numbered_images(n_samples),
        batch_size=batch_size,
        seed=seed,
        augmentation=Augmentation(crop_padding=2),
        weights=torch.arange(1.0, n_samples + 1) if is_weighted else None,
        **ZERO_ONE,
    )
    first_step = data.draw(st.integers(0, batches.n_steps))
    whole, rest = list(batches.epoch(epoch)), list(batches.epoch(epoch, first_step=first_step))
    assert len(rest) == batches.n_steps - first_step
    for (images, labels), (same_images, same_labels) in zip(whole[first_step:], rest, strict=True):
        assert torch.equal(images, same_images)
        assert torch.equal(labels, same_labels)


def order(seed, epoch, **options):
    batches = Batches(numbered_images(200), batch_size=7, seed=seed, **ZERO_ONE, **options)
    return torch.cat([labels for _, labels in batches.epoch(epoch)]).tolist()


def test_order_changes_with_the_epoch_and_with_the_seed():
    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)
    assert order(0, 1) != order(1, 0)
    assert order(5, 3, is_shuffled=False) == list(range(200))


def test_order_does_not_depend_on_the_global_random_state():
    torch.manual_seed(1)
    first = order(0, 0)
    torch.rand(5)
    assert order(0, 0) == first


def test_augmentation_differs_from_epoch_to_epoch_and_from_step_to_step():
    pixels = random_pixels(1, 8, seed=0).repeat(40, 1, 1, 1)
    data = LabeledImages(images=StoredImages(pixels), labels=torch.zeros(40).long(), class_names=("one",))
    batches = Batches(data, batch_size=20, seed=0, augmentation=Augmentation(), **ZERO_ONE)
    (first, _), (second, _) = batches.epoch(0)
    again = next(batches.epoch(1))[0]
    assert not torch.equal(first, second)
    assert not torch.equal(first, again)


@given(st.integers(1, 6), st.integers(2, 7), st.integers(0, 4), st.floats(0, 1), seeds)
def test_augmentation_only_moves_pixels(n_images, side, padding, flip_probability, seed):
    pixels = random_pixels(n_images, side, seed % 1000)
    rule = Augmentation(crop_padding=padding, flip_probability=flip_probability)
    moved = augment(pixels, rule, torch.Generator().manual_seed(seed))
    assert moved.shape == pixels.shape
    for before, after in zip(pixels, moved, strict=True):
        assert is_a_move_of(before, after, padding)


def is_a_move_of(before, after, padding):
    """Whether a shift within the padding, mirrored or not, explains the image."""
    padded = torch.nn.functional.pad(before, (padding,) * 4)
    side = before.shape[-1]
    for top in range(2 * padding + 1):
        for left in range(2 * padding + 1):
            window = padded[:, top : top + side, left : left + side]
            if torch.equal(after, window) or torch.equal(after, window.flip(-1)):
                return True
    return False


def test_flip_probability_is_a_probability_and_crops_reach_every_corner():
    pixels = random_pixels(1, 6, seed=3).repeat(2000, 1, 1, 1)
    generator = torch.Generator().manual_seed(0)
    mirrored = augment(pixels, Augmentation(crop_padding=0, flip_probability=0.25), generator)
    n_mirrored = sum(not torch.equal(image, pixels[0]) for image in mirrored)
    assert 400 < n_mirrored < 600
    shifted = augment(pixels, Augmentation(crop_padding=1, flip_probability=0.0), generator)
    assert len({tuple(image.flatten().tolist()) for image in shifted}) == 9


def test_pixels_are_normalised_by_channel():
    pixels = torch.tensor([0, 51, 255], dtype=torch.uint8).reshape(1, 3, 1, 1)
    data = LabeledImages(images=StoredImages(pixels), labels=torch.tensor([0]), class_names=("one",))
    batches = Batches(data, batch_size=1, seed=0, mean=(0.5, 0.2, 0.0), std=(0.25, 0.1, 0.5))
    images, _ = next(batches.epoch(0))
    assert images.dtype == torch.float32
    assert images.flatten().tolist() == pytest.approx([-2.0, 0.0, 2.0], abs=1e-6)


def test_weights_say_how_often_a_sample_is_drawn():
    weights = torch.tensor([0.0, 1.0, 3.0])
    batches = Batches(numbered_images(3), batch_size=3, seed=0, weights=weights, **ZERO_ONE)
    drawn = torch.cat([labels for epoch in range(2000) for _, labels in batches.epoch(epoch)])
    shares = drawn.bincount(minlength=3) / len(drawn)
    assert shares.tolist() == pytest.approx([0.0, 0.25, 0.75], abs=0.02)


@given(st.integers(1, 30), seeds)
def test_a_weighted_epoch_draws_as_many_samples_as_there_are_and_none_of_weight_zero(n_samples, seed):
    weights = torch.ones(n_samples + 1)
    weights[0] = 0
    batches = Batches(numbered_images(n_samples + 1), batch_size=4, seed=seed, weights=weights, **ZERO_ONE)
    drawn = torch.cat([labels for _, labels in batches.epoch(0)])
    assert len(drawn) == n_samples + 1
    assert 0 not in drawn.tolist()


def test_soft_labels_come_as_rows():
    soft = torch.tensor([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
    data = LabeledImages(images=StoredImages(random_pixels(3, 2, 0)), labels=soft, class_names=("a", "b"))
    batches = Batches(data, batch_size=2, seed=0, is_shuffled=False, **ZERO_ONE)
    assert torch.equal(torch.cat([labels for _, labels in batches.epoch(0)]), soft)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch size of 0"),
        ({"seed": -1}, "seed of -1"),
        ({"weights": torch.ones(3)}, "cannot go with 5 samples"),
        ({"weights": torch.zeros(5)}, "not all 0"),
        ({"weights": torch.tensor([1.0, 1, 1, 1, float("nan")])}, "finite"),
        ({"weights": torch.tensor([1.0, 1, 1, 1, -1])}, "not below 0"),
        ({"weights": torch.ones(5), "is_shuffled": False}, "cannot keep the order"),
    ],
)
def test_batches_that_cannot_be_made_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        Batches(numbered_images(5), **{"batch_size": 2, "seed": 0, **ZERO_ONE, **options})


def test_steps_outside_the_epoch_are_refused_at_once():
    batches = Batches(numbered_images(5), batch_size=2, seed=0, **ZERO_ONE)
    with pytest.raises(InputError, match="3 steps has no step 4"):
        batches.epoch(0, first_step=4)


def test_no_images_make_no_batches():
    with pytest.raises(InputError, match="no images"):
        Batches(numbered_images(5).take(torch.tensor([], dtype=torch.int64)), batch_size=2, seed=0, **ZERO_ONE)


@pytest.mark.parametrize("options", [{"crop_padding": -1}, {"flip_probability": 1.5}])
def test_impossible_augmentations_are_refused(options):
    with pytest.raises(InputError):
        Augmentation(**options)


@given(n_all=st.integers(1, 20), n_samples=st.integers(1, 45), seed=seeds)
def test_every_sample_comes_before_any_comes_again_however_long_an_epoch_is(n_all, n_samples, seed):
    batches = Batches(numbered_images(n_all), batch_size=4, seed=seed, n_samples=n_samples, **ZERO_ONE)
    seen = []
    for epoch in range(4):
        labels = [number for _, labels in batches.epoch(epoch) for number in labels.tolist()]
        assert len(labels) == n_samples
        seen += labels
        counts = torch.tensor(seen).bincount(minlength=n_all)
        assert counts.max() - counts.min() <= 1


def test_a_short_epoch_entered_at_any_step_goes_on_the_same():
    batches = Batches(numbered_images(10), batch_size=2, seed=3, n_samples=6, **ZERO_ONE)
    whole = [labels.tolist() for _, labels in batches.epoch(2)]
    assert [labels.tolist() for _, labels in batches.epoch(2, first_step=1)] == whole[1:]


def test_more_samples_than_can_be_drawn_from_by_weight_are_refused():
    with pytest.raises(InputError, match="at most 16,777,216, not from 16,777,217"):
        _check_weights(torch.ones(2**24 + 1), n_samples=2**24 + 1, is_shuffled=True)
