"""ResNeXt (Xie et al. 2017, arXiv 1611.05431): ResNets whose bottlenecks have a 3x3 convolution in 32 groups.

In a name such as 32x16d the second number is the channels of a group in the first stage; later stages have twice as
many each. Layer names are torchvision's.
"""

from __future__ import annotations

from traincast.frontend.models.resnet import Bottleneck, ResNet

_OF_50 = (3, 4, 6, 3)
_OF_101 = (3, 4, 23, 3)


def resnext50_32x4d(*, n_classes: int) -> ResNet:
    return ResNet(Bottleneck, _OF_50, n_classes=n_classes, n_groups=32, group_width=4)


def resnext101_32x4d(*, n_classes: int) -> ResNet:
    return ResNet(Bottleneck, _OF_101, n_classes=n_classes, n_groups=32, group_width=4)


def resnext101_32x8d(*, n_classes: int) -> ResNet:
    return ResNet(Bottleneck, _OF_101, n_classes=n_classes, n_groups=32, group_width=8)


def resnext101_32x16d(*, n_classes: int) -> ResNet:
    return ResNet(Bottleneck, _OF_101, n_classes=n_classes, n_groups=32, group_width=16)
