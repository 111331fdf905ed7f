"""MobileNetV2 (Sandler et al. 2018, arXiv 1801.04381), with torchvision's layer names."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from traincast.frontend.models.blocks import ConvNormActivation
from traincast.frontend.models.initialisation import kaiming_convolutions, normal_linears

STAGES = (  # expansion, output channels, blocks, stride of the first block: table 2 of the paper
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class InvertedResidual(nn.Module):
    """Widen, filter each channel on its own, and project down without an activation."""

    def __init__(self, n_in: int, n_out: int, *, stride: int, expansion: int) -> None:
        super().__init__()
        width = n_in * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers.append(ConvNormActivation(n_in, width, 1, activation=nn.ReLU6))
        layers.append(ConvNormActivation(width, width, stride=stride, groups=width, activation=nn.ReLU6))
        layers += [nn.Conv2d(width, n_out, kernel_size=1, bias=False), nn.BatchNorm2d(n_out)]
        self.conv = nn.Sequential(*layers)
        self.has_shortcut = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.has_shortcut else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, *, n_classes: int) -> None:
        super().__init__()
        features: list[nn.Module] = [ConvNormActivation(3, 32, stride=2, activation=nn.ReLU6)]
        n_in = 32
        for expansion, n_out, n_blocks, first_stride in STAGES:
            for i in range(n_blocks):
                stride = first_stride if i == 0 else 1
                features.append(InvertedResidual(n_in, n_out, stride=stride, expansion=expansion))
                n_in = n_out
        features.append(ConvNormActivation(n_in, 1280, 1, activation=nn.ReLU6))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, n_classes))
        kaiming_convolutions(self)
        normal_linears(self, std=0.01)

    def forward(self, images: Tensor) -> Tensor:
        x = adaptive_avg_pool2d(self.features(images), (1, 1))
        return self.classifier(torch.flatten(x, 1))


def mobilenet_v2(*, n_classes: int) -> MobileNetV2:
    return MobileNetV2(n_classes=n_classes)
