"""The convolution blocks that several families share."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class ConvNormActivation(nn.Sequential):
    """Convolution without bias, batch norm, activation: layers 0, 1 and 2, as in torchvision.

    The padding keeps the size of the image, up to the stride.
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        kernel_size: int = 3,
        *,
        activation: type[Any] | None,
        **convolution: int,
    ) -> None:
        padding = (kernel_size - 1) // 2
        convolved = nn.Conv2d(n_in, n_out, kernel_size, padding=padding, bias=False, **convolution)
        layers = [convolved, nn.BatchNorm2d(n_out)]
        if activation is not None:
            layers.append(activation(inplace=True))
        super().__init__(*layers)


class BasicConv2d(nn.Module):
    """Convolution without bias, batch norm with the Inception papers' epsilon, ReLU."""

    def __init__(self, n_in: int, n_out: int, kernel_size: int | tuple[int, int], **convolution: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel_size, bias=False, **convolution)
        self.bn = nn.BatchNorm2d(n_out, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.bn(self.conv(x)), inplace=True)
