"""A part of the data with every class in it."""

from __future__ import annotations

from typing import Any

import torch

from traincast.errors import InputError

Tensor = Any


def subset_per_class(labels: Tensor, *, share: float | None = None, n_each: int | None = None, seed: int) -> Tensor:
    """Numbers, in order, of a random choice that keeps the classes' shares: `share` or `n_each` of every class.

    A share leaves at least one sample of each class that occurs.
    """
    if (share is None) == (n_each is None):
        raise InputError("Give a share of every class or a number of samples of each, and not both.")
    if share is not None and not 0 < share <= 1:
        raise InputError(f"A share of {share} is not above 0 and at most 1.")
    if n_each is not None and n_each < 1:
        raise InputError(f"{n_each} samples of each class are fewer than 1.")
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([_choose(labels, int(label), share, n_each, generator) for label in labels.unique()]).sort().values


def _choose(labels: Tensor, label: int, share: float | None, n_each: int | None, generator: Tensor) -> Tensor:
    members = (labels == label).nonzero().flatten()
    n_chosen = n_each if share is None else max(1, round(share * len(members)))
    if n_chosen is None or n_chosen > len(members):
        raise InputError(
            f"Class {label} has {len(members)} samples, fewer than the {n_chosen} asked for of each class."
        )
    return members[torch.randperm(len(members), generator=generator)[:n_chosen]]


def split_per_class(labels: Tensor, *, test_share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Numbers of the training and of the test samples; every class is in both."""
    if not 0 < test_share <= 0.5:
        raise InputError(f"A test share of {test_share} is not above 0 and at most 0.5.")
    counts = labels.bincount()
    if bool((counts == 1).any()):
        label = int((counts == 1).nonzero()[0])
        raise InputError(f"Class {label} has one image, and a split into training and test data needs two.")
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    is_test[subset_per_class(labels, share=test_share, seed=seed)] = True
    return (~is_test).nonzero().flatten(), is_test.nonzero().flatten()
