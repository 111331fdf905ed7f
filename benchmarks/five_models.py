"""Five models that calibration never saw: a CNN, an MLP, a transformer, an LSTM and a mixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

Example = Callable[[int], Tensor]
Model = tuple[nn.Module, Example, Callable[[Any, Any], Tensor]]


def _images(side: int) -> Example:
    return lambda batch_size: torch.randn(batch_size, 3, side, side)


def _words(length: int, n_words: int) -> Example:
    return lambda batch_size: torch.randint(0, n_words, (batch_size, length))


def _label_loss(logits: Tensor, inputs: object) -> Tensor:
    scores = logits.flatten(0, -2)
    return cross_entropy(scores, scores.new_zeros(len(scores), dtype=torch.long))


def cnn() -> Model:
    layers = nn.Sequential(
        nn.Conv2d(3, 24, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(48, 96, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(384, 100),
    )
    return layers, _images(32), _label_loss


def mlp() -> Model:
    layers = nn.Sequential(
        nn.Linear(784, 512),
        nn.BatchNorm1d(512),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(512, 300),
        nn.ReLU(),
        nn.Linear(300, 10),
    )
    return layers, lambda batch_size: torch.randn(batch_size, 784), _label_loss


class _Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(192, 6, 512, batch_first=True, norm_first=True, activation="gelu")
        self.words, self.places = nn.Embedding(2000, 192), nn.Parameter(torch.zeros(48, 192))
        self.layers, self.output = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(192, 2000)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.layers(self.words(x) + self.places))


def transformer() -> Model:
    return _Transformer(), _words(48, 2000), _label_loss


class _Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.layers = nn.Embedding(3000, 128), nn.LSTM(128, 192, 2, batch_first=True)
        self.output = nn.Linear(192, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.layers(self.words(x))[0][:, -1])


def lstm() -> Model:
    return _Lstm(), _words(40, 3000), _label_loss


class _Mixed(nn.Module):
    """Convolutions cut an image into patches, one block of attention mixes them, a GRU reads them in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Sequential(nn.Conv2d(3, 32, 4, 4), nn.BatchNorm2d(32), nn.GELU(), nn.Conv2d(32, 128, 2, 2))
        self.norm, self.attention = nn.LayerNorm(128), nn.MultiheadAttention(128, 4, batch_first=True)
        self.reader, self.output = nn.GRU(128, 96, batch_first=True), nn.Linear(96, 20)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        normed = self.norm(patches)
        mixed = patches + self.attention(normed, normed, normed, need_weights=False)[0]
        return self.output(self.reader(mixed)[0].mean(1))


def mixed() -> Model:
    return _Mixed(), _images(64), _label_loss
