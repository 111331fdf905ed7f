"""ResNets for ImageNet (He et al. 2016, arXiv 1512.03385), with torchvision's layer names.

The bottleneck carries its stride in the 3x3 convolution ("v1.5"), as torchvision's does; the paper has it in
the first 1x1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from traincast.frontend.models.initialisation import kaiming_convolutions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def projection(n_in: int, n_out: int, *, stride: int) -> nn.Sequential | None:
    """The shortcut where the block changes the shape, None where it is the identity."""
    if stride == 1 and n_in == n_out:
        return None
    return nn.Sequential(nn.Conv2d(n_in, n_out, kernel_size=1, stride=stride, bias=False), nn.BatchNorm2d(n_out))


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, n_in: int, width: int, *, stride: int, shortcut: Callable[..., Any] = projection) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, width, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, kernel_size=3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(n_in, width, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        residual = self.relu(self.bn1(self.conv1(x)))
        residual = self.bn2(self.conv2(residual))
        shortcut = x if self.downsample is None else self.downsample(x)
        residual += shortcut
        return self.relu(residual)


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1. With groups, `group_width` is how many channels each has in the stage of width 64."""

    expansion = 4

    def __init__(self, n_in: int, width: int, *, stride: int, n_groups: int = 1, group_width: int = 64) -> None:
        super().__init__()
        n_out = width * self.expansion
        inner = width * group_width // 64 * n_groups
        self.conv1 = nn.Conv2d(n_in, inner, kernel_size=1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, kernel_size=3, stride=stride, padding=1, groups=n_groups, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, n_out, kernel_size=1, bias=False)
        self.bn3 = nn.BatchNorm2d(n_out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = projection(n_in, n_out, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        residual = self.relu(self.bn1(self.conv1(x)))
        residual = self.relu(self.bn2(self.conv2(residual)))
        residual = self.bn3(self.conv3(residual))
        shortcut = x if self.downsample is None else self.downsample(x)
        residual += shortcut
        return self.relu(residual)


def stage(block: type[Any], n_in: int, width: int, *, n_blocks: int, stride: int, **options: Any) -> nn.Sequential:
    """Blocks of one width; the first may halve the image and change the number of channels."""
    blocks = [block(n_in, width, stride=stride, **options)]
    blocks += [block(width * block.expansion, width, stride=1, **options) for _ in range(n_blocks - 1)]
    return nn.Sequential(*blocks)


class ResNet(nn.Module):
    def __init__(self, block: type[Any], n_blocks: Sequence[int], *, n_classes: int, **options: Any) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        widened = block.expansion
        self.layer1 = stage(block, 64, 64, n_blocks=n_blocks[0], stride=1, **options)
        self.layer2 = stage(block, 64 * widened, 128, n_blocks=n_blocks[1], stride=2, **options)
        self.layer3 = stage(block, 128 * widened, 256, n_blocks=n_blocks[2], stride=2, **options)
        self.layer4 = stage(block, 256 * widened, 512, n_blocks=n_blocks[3], stride=2, **options)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512 * widened, n_classes)
        kaiming_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def resnet18(*, n_classes: int) -> ResNet:
    return ResNet(BasicBlock, (2, 2, 2, 2), n_classes=n_classes)


def resnet34(*, n_classes: int) -> ResNet:
    return ResNet(BasicBlock, (3, 4, 6, 3), n_classes=n_classes)


def resnet50(*, n_classes: int) -> ResNet:
    return ResNet(Bottleneck, (3, 4, 6, 3), n_classes=n_classes)


def resnet101(*, n_classes: int) -> ResNet:
    return ResNet(Bottleneck, (3, 4, 23, 3), n_classes=n_classes)


def resnet152(*, n_classes: int) -> ResNet:
    return ResNet(Bottleneck, (3, 8, 36, 3), n_classes=n_classes)
