"""Four small convolution networks with published training times: the measurements that seeded this project.

They were written in Keras: convolutions with a ReLU, max pools, dense layers, Glorot-uniform weights (Keras's
default). The originals end in a softmax or a sigmoid; these return logits and leave it to the loss, which is
the usual way in PyTorch and gives the same gradients.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    n_channels: int
    convolutions: tuple[int, ...]
    padding: int
    dense: tuple[int, ...]

    def map_size(self, image_size: int) -> int:
        """Side of the last feature map: a pool that halves, rounding down, follows each 3x3 convolution."""
        for _ in self.convolutions:
            image_size = (image_size - 2 + 2 * self.padding) // 2
        return image_size


class PlainCnn(nn.Module):
    def __init__(self, layers: Layers, *, n_classes: int, image_size: int) -> None:
        super().__init__()
        features: OrderedDict[str, nn.Module] = OrderedDict()
        n_in = layers.n_channels
        for i, n_out in enumerate(layers.convolutions, start=1):
            features[f"conv{i}"] = nn.Conv2d(n_in, n_out, kernel_size=3, padding=layers.padding)
            features[f"relu{i}"] = nn.ReLU(inplace=True)
            features[f"pool{i}"] = nn.MaxPool2d(kernel_size=2, stride=2)
            n_in = n_out
        self.features = nn.Sequential(features)
        classifier: OrderedDict[str, nn.Module] = OrderedDict()
        n_in *= layers.map_size(image_size) ** 2
        for i, n_out in enumerate(layers.dense, start=1):
            classifier[f"dense{i}"] = nn.Linear(n_in, n_out)
            classifier[f"relu{i}"] = nn.ReLU(inplace=True)
            n_in = n_out
        classifier["output"] = nn.Linear(n_in, n_classes)
        self.classifier = nn.Sequential(classifier)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.features(images), 1))


def mnist_cnn(*, n_classes: int, image_size: int) -> PlainCnn:
    layers = Layers(n_channels=1, convolutions=(32, 32, 32), padding=0, dense=(128,))
    return PlainCnn(layers, n_classes=n_classes, image_size=image_size)


def mnist_cnn_2conv(*, n_classes: int, image_size: int) -> PlainCnn:
    layers = Layers(n_channels=1, convolutions=(32, 32), padding=0, dense=(128,))
    return PlainCnn(layers, n_classes=n_classes, image_size=image_size)


def cifar10_cnn(*, n_classes: int, image_size: int) -> PlainCnn:
    layers = Layers(n_channels=3, convolutions=(64, 64, 32), padding=0, dense=(512, 256, 128))
    return PlainCnn(layers, n_classes=n_classes, image_size=image_size)


def patchcamelyon_cnn(*, n_classes: int, image_size: int) -> PlainCnn:
    """Tumour or not, from 96 x 96 patches; dense1 has 1,028 units in the original, not 1,024."""
    widths = (256, 256, 512, 512, 1024, 1024)
    layers = Layers(n_channels=3, convolutions=widths, padding=1, dense=(1028, 512, 128))
    return PlainCnn(layers, n_classes=n_classes, image_size=image_size)
