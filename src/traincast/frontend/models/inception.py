"""Inception-v3 (Szegedy et al. 2016, arXiv 1512.00567) as torchvision defines it, without the auxiliary head.

Blocks A, C and E are the paper's figures 5, 6 and 7, B and D its grid reductions (figure 10). The names of
layers are those of the TensorFlow original, which torchvision kept.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, max_pool2d

from traincast.frontend.models.blocks import BasicConv2d


def wide(n_in: int, n_out: int, *, length: int) -> BasicConv2d:
    """A 1 x length convolution that keeps the size of the map."""
    return BasicConv2d(n_in, n_out, (1, length), padding=(0, length // 2))


def tall(n_in: int, n_out: int, *, length: int) -> BasicConv2d:
    """A length x 1 convolution that keeps the size of the map."""
    return BasicConv2d(n_in, n_out, (length, 1), padding=(length // 2, 0))


def smooth(x: Tensor) -> Tensor:
    return avg_pool2d(x, kernel_size=3, stride=1, padding=1)


class InceptionA(nn.Module):
    """A 5x5 branch beside two 3x3 in a row."""

    def __init__(self, n_in: int, *, n_pooled: int) -> None:
        super().__init__()
        self.branch1x1 = BasicConv2d(n_in, 64, 1)
        self.branch5x5_1 = BasicConv2d(n_in, 48, 1)
        self.branch5x5_2 = BasicConv2d(48, 64, 5, padding=2)
        self.branch3x3dbl_1 = BasicConv2d(n_in, 64, 1)
        self.branch3x3dbl_2 = BasicConv2d(64, 96, 3, padding=1)
        self.branch3x3dbl_3 = BasicConv2d(96, 96, 3, padding=1)
        self.branch_pool = BasicConv2d(n_in, n_pooled, 1)

    def forward(self, x: Tensor) -> Tensor:
        five = self.branch5x5_2(self.branch5x5_1(x))
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return torch.cat([self.branch1x1(x), five, double, self.branch_pool(smooth(x))], 1)


class InceptionB(nn.Module):
    """Halves the map: strided convolutions beside a pool."""

    def __init__(self, n_in: int) -> None:
        super().__init__()
        self.branch3x3 = BasicConv2d(n_in, 384, 3, stride=2)
        self.branch3x3dbl_1 = BasicConv2d(n_in, 64, 1)
        self.branch3x3dbl_2 = BasicConv2d(64, 96, 3, padding=1)
        self.branch3x3dbl_3 = BasicConv2d(96, 96, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return torch.cat([self.branch3x3(x), double, max_pool2d(x, kernel_size=3, stride=2)], 1)


class InceptionC(nn.Module):
    """7x7 factored into 1x7 and 7x1."""

    def __init__(self, n_in: int, *, n_inner: int) -> None:
        super().__init__()
        self.branch1x1 = BasicConv2d(n_in, 192, 1)
        self.branch7x7_1 = BasicConv2d(n_in, n_inner, 1)
        self.branch7x7_2 = wide(n_inner, n_inner, length=7)
        self.branch7x7_3 = tall(n_inner, 192, length=7)
        self.branch7x7dbl_1 = BasicConv2d(n_in, n_inner, 1)
        self.branch7x7dbl_2 = tall(n_inner, n_inner, length=7)
        self.branch7x7dbl_3 = wide(n_inner, n_inner, length=7)
        self.branch7x7dbl_4 = tall(n_inner, n_inner, length=7)
        self.branch7x7dbl_5 = wide(n_inner, 192, length=7)
        self.branch_pool = BasicConv2d(n_in, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        seven = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        double = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        double = self.branch7x7dbl_5(self.branch7x7dbl_4(double))
        return torch.cat([self.branch1x1(x), seven, double, self.branch_pool(smooth(x))], 1)


class InceptionD(nn.Module):
    """Halves the map again, with a factored 7x7 before one of the strided convolutions."""

    def __init__(self, n_in: int) -> None:
        super().__init__()
        self.branch3x3_1 = BasicConv2d(n_in, 192, 1)
        self.branch3x3_2 = BasicConv2d(192, 320, 3, stride=2)
        self.branch7x7x3_1 = BasicConv2d(n_in, 192, 1)
        self.branch7x7x3_2 = wide(192, 192, length=7)
        self.branch7x7x3_3 = tall(192, 192, length=7)
        self.branch7x7x3_4 = BasicConv2d(192, 192, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        three = self.branch3x3_2(self.branch3x3_1(x))
        seven = self.branch7x7x3_3(self.branch7x7x3_2(self.branch7x7x3_1(x)))
        return torch.cat([three, self.branch7x7x3_4(seven), max_pool2d(x, kernel_size=3, stride=2)], 1)


class InceptionE(nn.Module):
    """1x3 and 3x1 side by side, for the widest maps."""

    def __init__(self, n_in: int) -> None:
        super().__init__()
        self.branch1x1 = BasicConv2d(n_in, 320, 1)
        self.branch3x3_1 = BasicConv2d(n_in, 384, 1)
        self.branch3x3_2a = wide(384, 384, length=3)
        self.branch3x3_2b = tall(384, 384, length=3)
        self.branch3x3dbl_1 = BasicConv2d(n_in, 448, 1)
        self.branch3x3dbl_2 = BasicConv2d(448, 384, 3, padding=1)
        self.branch3x3dbl_3a = wide(384, 384, length=3)
        self.branch3x3dbl_3b = tall(384, 384, length=3)
        self.branch_pool = BasicConv2d(n_in, 192, 1)

    def forward(self, x: Tensor) -> Tensor:
        three = self.branch3x3_1(x)
        three = torch.cat([self.branch3x3_2a(three), self.branch3x3_2b(three)], 1)
        double = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        double = torch.cat([self.branch3x3dbl_3a(double), self.branch3x3dbl_3b(double)], 1)
        return torch.cat([self.branch1x1(x), three, double, self.branch_pool(smooth(x))], 1)


class InceptionV3(nn.Module):
    def __init__(self, *, n_classes: int) -> None:
        super().__init__()
        self.Conv2d_1a_3x3 = BasicConv2d(3, 32, 3, stride=2)
        self.Conv2d_2a_3x3 = BasicConv2d(32, 32, 3)
        self.Conv2d_2b_3x3 = BasicConv2d(32, 64, 3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = BasicConv2d(64, 80, 1)
        self.Conv2d_4a_3x3 = BasicConv2d(80, 192, 3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Mixed_5b = InceptionA(192, n_pooled=32)
        self.Mixed_5c = InceptionA(256, n_pooled=64)
        self.Mixed_5d = InceptionA(288, n_pooled=64)
        self.Mixed_6a = InceptionB(288)
        self.Mixed_6b = InceptionC(768, n_inner=128)
        self.Mixed_6c = InceptionC(768, n_inner=160)
        self.Mixed_6d = InceptionC(768, n_inner=160)
        self.Mixed_6e = InceptionC(768, n_inner=192)
        self.Mixed_7a = InceptionD(768)
        self.Mixed_7b = InceptionE(1280)
        self.Mixed_7c = InceptionE(2048)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(2048, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.1)

    def forward(self, images: Tensor) -> Tensor:
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(images)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(self.maxpool1(x)))
        x = self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(self.maxpool2(x))))
        x = self.Mixed_6c(self.Mixed_6b(self.Mixed_6a(x)))
        x = self.Mixed_7a(self.Mixed_6e(self.Mixed_6d(x)))
        x = self.avgpool(self.Mixed_7c(self.Mixed_7b(x)))
        return self.fc(torch.flatten(self.dropout(x), 1))


def inception_v3(*, n_classes: int) -> InceptionV3:
    return InceptionV3(n_classes=n_classes)
