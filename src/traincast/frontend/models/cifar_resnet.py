"""ResNets for 32 x 32 images.

`cifar_resnet20` to `cifar_resnet110` are those of He et al. 2016 (arXiv 1512.03385), section 4.2, with their
parameter-free shortcuts (option A). `cifar_resnet18` is the wide ImageNet ResNet-18 with a 3x3 stem and no
first pool, which kuangliu/pytorch-cifar made common; its layers keep the names of the ImageNet network.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from traincast.frontend.models.initialisation import kaiming_convolutions
from traincast.frontend.models.resnet import BasicBlock, stage


class PaddedShortcut(nn.Module):
    """Option A: every second pixel, with zeros for the channels that the block adds."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.n_before = (n_out - n_in) // 2
        self.n_after = n_out - n_in - self.n_before

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.n_before, self.n_after))


def padded_shortcut(n_in: int, n_out: int, *, stride: int) -> PaddedShortcut | None:
    return None if stride == 1 else PaddedShortcut(n_in, n_out)


class SmallResNet(nn.Module):
    """6n + 2 layers: a stem, three stages of n blocks at 16, 32 and 64 channels, and a linear layer."""

    def __init__(self, *, depth: int, n_classes: int) -> None:
        super().__init__()
        n_blocks = (depth - 2) // 6
        self.conv1 = nn.Conv2d(3, 16, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = stage(BasicBlock, 16, 16, n_blocks=n_blocks, stride=1, shortcut=padded_shortcut)
        self.layer2 = stage(BasicBlock, 16, 32, n_blocks=n_blocks, stride=2, shortcut=padded_shortcut)
        self.layer3 = stage(BasicBlock, 32, 64, n_blocks=n_blocks, stride=2, shortcut=padded_shortcut)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, n_classes)
        kaiming_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(images)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class WideResNet18(nn.Module):
    """ResNet-18 with the full ImageNet widths, for small images."""

    def __init__(self, *, n_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = stage(BasicBlock, 64, 64, n_blocks=2, stride=1)
        self.layer2 = stage(BasicBlock, 64, 128, n_blocks=2, stride=2)
        self.layer3 = stage(BasicBlock, 128, 256, n_blocks=2, stride=2)
        self.layer4 = stage(BasicBlock, 256, 512, n_blocks=2, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, n_classes)
        kaiming_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(images)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def cifar_resnet18(*, n_classes: int) -> WideResNet18:
    return WideResNet18(n_classes=n_classes)


def cifar_resnet20(*, n_classes: int) -> SmallResNet:
    return SmallResNet(depth=20, n_classes=n_classes)


def cifar_resnet32(*, n_classes: int) -> SmallResNet:
    return SmallResNet(depth=32, n_classes=n_classes)


def cifar_resnet44(*, n_classes: int) -> SmallResNet:
    return SmallResNet(depth=44, n_classes=n_classes)


def cifar_resnet56(*, n_classes: int) -> SmallResNet:
    return SmallResNet(depth=56, n_classes=n_classes)


def cifar_resnet110(*, n_classes: int) -> SmallResNet:
    return SmallResNet(depth=110, n_classes=n_classes)
