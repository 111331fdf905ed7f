"""A part of the data with every class in it."""

from __future__ import annotations

from typing import Any

import torch

from traincast.errors import InputError

Tensor = Any


def subset_per_class(labels: Tensor, *, share: float, seed: int) -> Tensor:
    """Numbers, in order, of a random share of every class; at least one sample of each class that occurs."""
    if not 0 < share <= 1:
        raise InputError(f"A share of {share} is not above 0 and at most 1.")
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([_choose(labels, int(label), share, generator) for label in labels.unique()]).sort().values


def _choose(labels: Tensor, label: int, share: float, generator: Tensor) -> Tensor:
    members = (labels == label).nonzero().flatten()
    return members[torch.randperm(len(members), generator=generator)[: max(1, round(share * len(members)))]]


def split_per_class(labels: Tensor, *, test_share: float, seed: int) -> tuple[Tensor, Tensor]:
    """Numbers of the training and of the test samples; every class is in both."""
    if not 0 < test_share <= 0.5:
        raise InputError(f"A test share of {test_share} is not above 0 and at most 0.5.")
    counts = labels.bincount()
    if bool((counts == 1).any()):
        label = int((counts == 1).nonzero()[0])
        raise InputError(f"Class {label} has only one image, but splitting into training and test data needs two.")
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    is_test[subset_per_class(labels, share=test_share, seed=seed)] = True
    return (~is_test).nonzero().flatten(), is_test.nonzero().flatten()
