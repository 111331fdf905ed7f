"""A small problem with labels, and what an optimizer makes of it: loss and accuracy, epoch by epoch."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy, interpolate

from traincast.measurement.failures import users_code
from traincast.measurement.runnable import Runnable
from traincast.measurement.training import make_optimizer

N_CLASSES, _SIDE, _N_TEST = 10, 8, 360
_N_SYNTHETIC = 1797  # as many as there are digits
# What each optimizer is usually begun with; no search. torch's own default where that is sensible.
LEARNING_RATES = {
    "sgd": 0.1,
    "momentum": 0.02,
    "nesterov": 0.02,
    "adagrad": 0.01,
    "adadelta": 1.0,
    "rmsprop": 0.001,
    "adam": 0.001,
    "adamw": 0.001,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Images of one channel with labels, normalised; the last ones are for testing."""

    name: str
    images: Any
    labels: Any
    n_test: int = _N_TEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A module that maps the problem's images, made to fit it, to one score a class."""

    name: str
    module: Any
    problem: Problem
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochScore:
    """After one pass over the training images: mean loss during it, accuracy on the test images afterwards."""

    loss: float
    accuracy_fraction: float
    epoch_s: float


def find_problem() -> Problem:
    """scikit-learn's digits (1,797 images of 8 x 8); without it, as many made by a fixed seed."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        return synthetic_problem()
    digits = load_digits()
    order = torch.randperm(len(digits.target), generator=_seeded())
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1)[order]
    return Problem(name="scikit-learn's digits", images=_normal(images), labels=torch.tensor(digits.target)[order])


def synthetic_problem() -> Problem:
    """Ten fixed patterns under noise: separable, but not at a glance."""
    seed = _seeded()
    patterns = torch.randn(N_CLASSES, 1, _SIDE, _SIDE, generator=seed)
    labels = torch.randint(N_CLASSES, (_N_SYNTHETIC,), generator=seed)
    images = patterns[labels] + 1.5 * torch.randn(_N_SYNTHETIC, 1, _SIDE, _SIDE, generator=seed)
    return Problem(name="synthetic patterns (no scikit-learn here)", images=_normal(images), labels=labels)


def find_learner(runnable: Runnable, problem: Problem) -> Learner:
    """The model itself where it maps one image to scores for ten classes or more; else a small CNN of our own."""
    with users_code(f"Asking {runnable.name} for the scores of 2 images"):
        size = _image_size(runnable)
        n_scores = 0 if size is None else _n_scores(runnable)
    if size is not None and n_scores >= N_CLASSES:
        resized = _resized(problem, size)
        shape = " x ".join(str(length) for length in size)
        return Learner(
            name=runnable.name,
            module=runnable.module,
            problem=resized,
            remark=f"{runnable.name} learns {problem.name}, brought to its {shape}.",
        )
    return Learner(
        name="a small CNN",
        module=small_cnn(),
        problem=problem,
        remark=f"{runnable.name} does not map an image to at least {N_CLASSES} classes: a small CNN learns "
        f"{problem.name} in its place; step times are of {runnable.name}.",
    )


def learn(
    learner: Learner, optimizer: str, *, n_epochs: int, batch_size: int, device: str = "cpu"
) -> Iterator[EpochScore]:
    """Trains a copy from the same weights, on the same batches in the same order, whatever the optimizer.

    A last batch of a single image is left out: batch norm cannot train on one.
    """
    module = copy.deepcopy(learner.module).to(device).train()
    update = make_optimizer(optimizer, module.parameters(), learning_rate=LEARNING_RATES[optimizer])
    images, labels = learner.problem.images.to(device), learner.problem.labels.to(device)
    n_train, order = len(labels) - learner.problem.n_test, _seeded()
    for _ in range(n_epochs):
        start, losses, n_seen = time.perf_counter(), 0.0, 0
        for chosen in torch.randperm(n_train, generator=order).split(batch_size):
            if len(chosen) == 1 < batch_size:
                continue
            loss = cross_entropy(module(images[chosen]), labels[chosen])
            loss.backward()
            if update is not None:
                update.step()
            module.zero_grad(set_to_none=True)
            losses += loss.item() * len(chosen)  # .item() waits for the device
            n_seen += len(chosen)
        epoch_s = time.perf_counter() - start
        accuracy = _accuracy(module, images[n_train:], labels[n_train:], batch_size)
        yield EpochScore(loss=losses / n_seen, accuracy_fraction=accuracy, epoch_s=epoch_s)


def small_cnn() -> Any:
    """Two convolutions and a linear layer: 97 % on the digits within a few epochs."""
    with _fixed_weights():
        return nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 4, N_CLASSES),
        )


def _image_size(runnable: Runnable) -> tuple[int, ...] | None:
    """Channels, height and width of what the model takes, if that is one image."""
    inputs = runnable.make_inputs(2)
    tensors = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    if len(tensors) != 1 or not isinstance(tensors[0], torch.Tensor):
        return None
    image = tensors[0]
    return tuple(image.shape[1:]) if image.dim() == 4 and image.is_floating_point() else None


def _n_scores(runnable: Runnable) -> int:
    module = copy.deepcopy(runnable.module).eval()
    with torch.no_grad():
        output = runnable.forward(module, runnable.make_inputs(2))
    return output.shape[1] if isinstance(output, torch.Tensor) and output.dim() == 2 else 0


def _resized(problem: Problem, size: tuple[int, ...]) -> Problem:
    images = interpolate(problem.images, size=size[1:], mode="nearest").expand(-1, size[0], -1, -1)
    return replace(problem, images=images)


def _accuracy(module: Any, images: Any, labels: Any, batch_size: int) -> float:
    module.eval()
    with torch.no_grad():
        right = [
            (module(part).argmax(dim=1) == own).sum().item()
            for part, own in zip(images.split(batch_size), labels.split(batch_size), strict=True)
        ]
    module.train()
    return float(sum(right)) / len(labels)


def _normal(images: Any) -> Any:
    return (images - images.mean()) / images.std()


def _seeded() -> Any:
    return torch.Generator().manual_seed(0)


@contextmanager
def _fixed_weights() -> Iterator[None]:
    """The same first weights every time, without touching the user's random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
