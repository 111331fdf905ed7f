"""OverFeat's fast model (Sermanet et al. 2014, arXiv 1312.6229, table 1), as it is trained to classify.

The paper leaves the padding open; this follows soumith/convnet-benchmarks (231 x 231 images, no padding in
the first two convolutions), which gives the paper's 6 x 6 map before the linear layers and its 145 million
parameters. The benchmark leaves out the dropout of 0.5 before linear layers 6 and 7; it is the paper's and
kept here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from traincast.frontend.models.initialisation import kaiming_convolutions, normal_linears


def map_size(image_size: int) -> int:
    """Side of the last feature map, for which the first linear layer is sized: nothing pools adaptively."""
    after_conv1 = (image_size - 11) // 4 + 1
    after_conv2 = after_conv1 // 2 - 4
    return after_conv2 // 2 // 2


class OverFeat(nn.Module):
    def __init__(self, *, n_classes: int, image_size: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 96, kernel_size=11, stride=4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=2, stride=2),
            nn.Conv2d(96, 256, kernel_size=5),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=2, stride=2),
            nn.Conv2d(256, 512, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(512, 1024, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(1024, 1024, kernel_size=3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=2, stride=2),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.5),
            nn.Linear(1024 * map_size(image_size) ** 2, 3072),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(3072, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, n_classes),
        )
        kaiming_convolutions(self)
        normal_linears(self, std=0.01)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(torch.flatten(self.features(images), 1))


def overfeat(*, n_classes: int, image_size: int) -> OverFeat:
    return OverFeat(n_classes=n_classes, image_size=image_size)
