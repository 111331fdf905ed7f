"""EfficientNet-B0 (Tan and Le 2019, arXiv 1905.11946), with torchvision's layer names."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from traincast.frontend.models.blocks import ConvNormActivation
from traincast.frontend.models.initialisation import kaiming_convolutions

STAGES = (  # expansion, kernel, stride of the first block, output channels, blocks: table 1 of the paper
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
N_BLOCKS = sum(n_blocks for *_, n_blocks in STAGES)
LAST_DROP_PROBABILITY = 0.2


class SqueezeExcitation(nn.Module):
    """Scales each channel by a gate, computed from the means of all (Hu et al. 2018, arXiv 1709.01507)."""

    def __init__(self, n_channels: int, n_squeezed: int) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(n_channels, n_squeezed, kernel_size=1)
        self.fc2 = nn.Conv2d(n_squeezed, n_channels, kernel_size=1)
        self.activation = nn.SiLU(inplace=True)
        self.scale_activation = nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        gate = self.fc2(self.activation(self.fc1(self.avgpool(x))))
        return self.scale_activation(gate) * x


class StochasticDepth(nn.Module):
    """Drops a block's residual for random samples of the batch (Huang et al. 2016, arXiv 1603.09382).

    It multiplies by a random mask; skipping the block would make what runs depend on the draw.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.probability == 0.0:
            return x
        kept_fraction = 1.0 - self.probability
        mask = x.new_empty((x.shape[0], 1, 1, 1)).bernoulli_(kept_fraction).div_(kept_fraction)
        return x * mask


class MBConv(nn.Module):
    """MobileNetV2's block with gates: widen, filter each channel on its own, gate, project down."""

    def __init__(
        self, n_in: int, n_out: int, kernel_size: int, *, stride: int, expansion: int, drop_probability: float
    ) -> None:
        super().__init__()
        width = n_in * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers.append(ConvNormActivation(n_in, width, 1, activation=nn.SiLU))
        layers += [
            ConvNormActivation(width, width, kernel_size, stride=stride, groups=width, activation=nn.SiLU),
            SqueezeExcitation(width, max(1, n_in // 4)),
            ConvNormActivation(width, n_out, 1, activation=None),
        ]
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(drop_probability)
        self.has_shortcut = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        residual = self.block(x)
        if not self.has_shortcut:
            return residual
        residual = self.stochastic_depth(residual)
        residual += x
        return residual


class EfficientNet(nn.Module):
    def __init__(self, *, n_classes: int) -> None:
        super().__init__()
        features: list[nn.Module] = [ConvNormActivation(3, 32, stride=2, activation=nn.SiLU)]
        n_in, n_before = 32, 0
        for expansion, kernel_size, first_stride, n_out, n_blocks in STAGES:
            blocks = []
            for i in range(n_blocks):
                drop_probability = LAST_DROP_PROBABILITY * n_before / N_BLOCKS
                stride = first_stride if i == 0 else 1
                block = MBConv(
                    n_in,
                    n_out,
                    kernel_size,
                    stride=stride,
                    expansion=expansion,
                    drop_probability=drop_probability,
                )
                blocks.append(block)
                n_in, n_before = n_out, n_before + 1
            features.append(nn.Sequential(*blocks))
        features.append(ConvNormActivation(n_in, 1280, 1, activation=nn.SiLU))
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(0.2, inplace=True), nn.Linear(1280, n_classes))
        kaiming_convolutions(self)
        bound = n_classes**-0.5
        nn.init.uniform_(self.classifier[1].weight, -bound, bound)
        nn.init.zeros_(self.classifier[1].bias)

    def forward(self, images: Tensor) -> Tensor:
        x = self.avgpool(self.features(images))
        return self.classifier(torch.flatten(x, 1))


def efficientnet_b0(*, n_classes: int) -> EfficientNet:
    return EfficientNet(n_classes=n_classes)
