"""Network in Network for ImageNet: `nin_imagenet` of the Caffe model zoo, by the paper's first author.

Lin, Chen and Yan 2014 (arXiv 1312.4400) give the idea; the layer sizes for ImageNet are those of the
published prototxt (gist mavenlin/d802a5849de39225bcc6). `cccp` is its name for the 1x1 convolutions: cascaded
cross-channel pooling. Caffe rounds pooled sizes up, and the last 1x1 convolution has a ReLU as well: both are
kept.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from traincast.frontend.models.initialisation import kaiming_convolutions


def micro_network(names: tuple[str, str, str], widths: tuple[int, int, int, int], **first: int) -> nn.Sequential:
    """A convolution and two of 1x1, each with a ReLU: the paper's small network over every patch."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    for i, name in enumerate(names):
        convolution = first if i == 0 else {"kernel_size": 1}
        layers[name] = nn.Conv2d(widths[i], widths[i + 1], **convolution)
        layers[f"relu_{name}"] = nn.ReLU(inplace=True)
    return nn.Sequential(layers)


class Nin(nn.Module):
    def __init__(self, *, n_classes: int) -> None:
        super().__init__()
        self.mlpconv1 = micro_network(("conv1", "cccp1", "cccp2"), (3, 96, 96, 96), kernel_size=11, stride=4)
        self.mlpconv2 = micro_network(("conv2", "cccp3", "cccp4"), (96, 256, 256, 256), kernel_size=5, padding=2)
        self.mlpconv3 = micro_network(("conv3", "cccp5", "cccp6"), (256, 384, 384, 384), kernel_size=3, padding=1)
        self.mlpconv4 = micro_network(
            ("conv4", "cccp7", "cccp8"), (384, 1024, 1024, n_classes), kernel_size=3, padding=1
        )
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True)
        self.dropout = nn.Dropout(0.5)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        kaiming_convolutions(self)

    def forward(self, images: Tensor) -> Tensor:
        x = self.pool(self.mlpconv1(images))
        x = self.pool(self.mlpconv2(x))
        x = self.dropout(self.pool(self.mlpconv3(x)))
        return torch.flatten(self.avgpool(self.mlpconv4(x)), 1)


def nin(*, n_classes: int) -> Nin:
    return Nin(n_classes=n_classes)
