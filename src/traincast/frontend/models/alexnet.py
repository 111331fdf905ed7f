"""AlexNet as torchvision defines it: the single-column network of Krizhevsky 2014.

"One weird trick for parallelizing convolutional neural networks" (arXiv 1404.5997), not the two-column
network of 2012. Weights start from PyTorch's defaults, as in torchvision.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AlexNet(nn.Module):
    def __init__(self, *, n_classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, kernel_size=11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(64, 192, kernel_size=5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
            nn.Conv2d(192, 384, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(0.5),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, n_classes),
        )

    def forward(self, images: Tensor) -> Tensor:
        x = self.avgpool(self.features(images))
        return self.classifier(torch.flatten(x, 1))


def alexnet(*, n_classes: int) -> AlexNet:
    return AlexNet(n_classes=n_classes)
