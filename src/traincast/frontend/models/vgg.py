"""VGG without batch norm (Simonyan and Zisserman 2015, arXiv 1409.1556), with torchvision's layer names."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from traincast.frontend.models.initialisation import kaiming_convolutions, normal_linears

STAGE_WIDTHS = (64, 128, 256, 512, 512)


class Vgg(nn.Module):
    """Five stages of 3x3 convolutions, each halved by a max pool, then three linear layers."""

    def __init__(self, n_convolutions: tuple[int, ...], *, n_classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        n_in = 3
        for n_layers, width in zip(n_convolutions, STAGE_WIDTHS, strict=True):
            for _ in range(n_layers):
                layers += [nn.Conv2d(n_in, width, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
                n_in = width
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(4096, n_classes),
        )
        kaiming_convolutions(self)
        normal_linears(self, std=0.01)

    def forward(self, images: Tensor) -> Tensor:
        x = self.avgpool(self.features(images))
        return self.classifier(torch.flatten(x, 1))


def vgg11(*, n_classes: int) -> Vgg:
    return Vgg((1, 1, 2, 2, 2), n_classes=n_classes)


def vgg16(*, n_classes: int) -> Vgg:
    return Vgg((2, 2, 3, 3, 3), n_classes=n_classes)


def vgg19(*, n_classes: int) -> Vgg:
    return Vgg((2, 2, 4, 4, 4), n_classes=n_classes)
