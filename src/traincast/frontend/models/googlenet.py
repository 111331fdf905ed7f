"""GoogLeNet (Szegedy et al. 2015, arXiv 1409.4842) as torchvision defines it, without the auxiliary heads.

torchvision adds batch norm, and its 5x5 branch has a 3x3 kernel: a slip that its weights were trained with.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from traincast.frontend.models.blocks import BasicConv2d


class Inception(nn.Module):
    """Four parallel branches over the same map: 1x1, 3x3, the "5x5", and a pool with a projection."""

    def __init__(self, n_in: int, widths: tuple[int, int, int, int, int, int]) -> None:
        super().__init__()
        ones, reduce3, threes, reduce5, fives, pooled = widths
        self.branch1 = BasicConv2d(n_in, ones, 1)
        self.branch2 = nn.Sequential(BasicConv2d(n_in, reduce3, 1), BasicConv2d(reduce3, threes, 3, padding=1))
        self.branch3 = nn.Sequential(BasicConv2d(n_in, reduce5, 1), BasicConv2d(reduce5, fives, 3, padding=1))
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True), BasicConv2d(n_in, pooled, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class GoogLeNet(nn.Module):
    def __init__(self, *, n_classes: int) -> None:
        super().__init__()
        self.conv1 = BasicConv2d(3, 64, 7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = BasicConv2d(64, 64, 1)
        self.conv3 = BasicConv2d(64, 192, 3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.inception3a = Inception(192, (64, 96, 128, 16, 32, 32))
        self.inception3b = Inception(256, (128, 128, 192, 32, 96, 64))
        self.maxpool3 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.inception4a = Inception(480, (192, 96, 208, 16, 48, 64))
        self.inception4b = Inception(512, (160, 112, 224, 24, 64, 64))
        self.inception4c = Inception(512, (128, 128, 256, 24, 64, 64))
        self.inception4d = Inception(512, (112, 144, 288, 32, 64, 64))
        self.inception4e = Inception(528, (256, 160, 320, 32, 128, 128))
        self.maxpool4 = nn.MaxPool2d(2, stride=2, ceil_mode=True)
        self.inception5a = Inception(832, (256, 160, 320, 32, 128, 128))
        self.inception5b = Inception(832, (384, 192, 384, 48, 128, 128))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(1024, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.01)

    def forward(self, images: Tensor) -> Tensor:
        x = self.maxpool1(self.conv1(images))
        x = self.maxpool2(self.conv3(self.conv2(x)))
        x = self.maxpool3(self.inception3b(self.inception3a(x)))
        x = self.inception4c(self.inception4b(self.inception4a(x)))
        x = self.maxpool4(self.inception4e(self.inception4d(x)))
        x = self.avgpool(self.inception5b(self.inception5a(x)))
        return self.fc(self.dropout(torch.flatten(x, 1)))


def googlenet(*, n_classes: int) -> GoogLeNet:
    return GoogLeNet(n_classes=n_classes)
