"""DenseNet-121 (Huang et al. 2017, arXiv 1608.06993: DenseNet-BC), with torchvision's layer names."""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, relu

from traincast.frontend.models.initialisation import kaiming_convolutions

GROWTH = 32
BOTTLENECK_FACTOR = 4


class DenseLayer(nn.Module):
    """Reads all maps before it and adds GROWTH new ones."""

    def __init__(self, n_in: int) -> None:
        super().__init__()
        n_inner = BOTTLENECK_FACTOR * GROWTH
        self.norm1 = nn.BatchNorm2d(n_in)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(n_in, n_inner, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(n_inner)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(n_inner, GROWTH, kernel_size=3, padding=1, bias=False)

    def forward(self, maps: list[Tensor]) -> Tensor:
        x = self.conv1(self.relu1(self.norm1(torch.cat(maps, 1))))
        return self.conv2(self.relu2(self.norm2(x)))


class DenseBlock(nn.ModuleDict):
    """Every layer concatenates all maps anew: the copies are a large part of the cost of this network."""

    def __init__(self, n_in: int, *, n_layers: int) -> None:
        super().__init__({f"denselayer{i + 1}": DenseLayer(n_in + i * GROWTH) for i in range(n_layers)})

    def forward(self, x: Tensor) -> Tensor:
        maps = [x]
        for layer in self.values():
            maps.append(layer(maps))
        return torch.cat(maps, 1)


class Transition(nn.Sequential):
    """Halves the number of maps and their size."""

    def __init__(self, n_in: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(n_in)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(n_in, n_in // 2, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    def __init__(self, n_layers: tuple[int, ...], *, n_classes: int) -> None:
        super().__init__()
        width = 2 * GROWTH
        features: OrderedDict[str, nn.Module] = OrderedDict()
        features["conv0"] = nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False)
        features["norm0"] = nn.BatchNorm2d(width)
        features["relu0"] = nn.ReLU(inplace=True)
        features["pool0"] = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, n in enumerate(n_layers, start=1):
            features[f"denseblock{i}"] = DenseBlock(width, n_layers=n)
            width += n * GROWTH
            if i < len(n_layers):
                features[f"transition{i}"] = Transition(width)
                width //= 2
        features["norm5"] = nn.BatchNorm2d(width)
        self.features = nn.Sequential(features)
        self.classifier = nn.Linear(width, n_classes)
        kaiming_convolutions(self)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, images: Tensor) -> Tensor:
        x = relu(self.features(images), inplace=True)
        return self.classifier(torch.flatten(adaptive_avg_pool2d(x, (1, 1)), 1))


def densenet121(*, n_classes: int) -> DenseNet:
    return DenseNet((6, 12, 24, 16), n_classes=n_classes)
