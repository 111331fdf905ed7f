"""Layers as columns: what one needs to know of a convolution or a fully connected layer to time it.

A row with optimizer "none" is the forward pass alone. With an optimizer it is forward, backward and update together,
because that is what was timed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from traincast.trace.graph import Floats, Ints

ACTIVATIONS = ("none", "relu", "tanh", "sigmoid")
OPTIMIZERS = ("none", "SGD", "Momentum", "Adagrad", "RMSProp", "Adam", "Adadelta")
KINDS = ("conv", "dense")
N_STATES = (0, 0, 1, 1, 2, 2, 2)  # tensors that TensorFlow's optimizers keep for each variable

_FLOAT_BYTES = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerTable:
    """What both kinds of layers have. Every field is one array, all of the same length."""

    batch: Floats
    activation: Ints  # positions in ACTIVATIONS
    optimizer: Ints  # positions in OPTIMIZERS

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def has_backward(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return self.optimizer > 0

    def take(self, rows: Ints | np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Self:
        """Some of the rows."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def with_optimizer(self, optimizer: int) -> Self:
        """The same layers, trained with another optimizer or (0) run forward only."""
        return replace(self, optimizer=np.full(len(self), optimizer))


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvLayers(LayerTable):
    """Two-dimensional convolutions of square images with square kernels."""

    input_size: Floats
    output_size: Floats
    kernel: Floats
    channels_in: Floats
    channels_out: Floats
    stride: Floats
    is_padded: Floats  # 1: TensorFlow's SAME, 0: VALID
    has_bias: Floats

    @property
    def forward_flop(self) -> Floats:
        """A multiply-add is 2."""
        return 2 * self.batch * self.output_size**2 * self.kernel**2 * self.channels_in * self.channels_out

    @property
    def forward_bytes(self) -> Floats:
        """Input, weights and output, once each, in fp32."""
        read = (
            self.batch * self.input_size**2 * self.channels_in + self.kernel**2 * self.channels_in * self.channels_out
        )
        return _FLOAT_BYTES * (read + self.batch * self.output_size**2 * self.channels_out)


@dataclass(frozen=True, eq=False, kw_only=True)
class DenseLayers(LayerTable):
    """Fully connected layers: a row of the batch is one vector."""

    dim_in: Floats
    dim_out: Floats

    @property
    def forward_flop(self) -> Floats:
        """A multiply-add is 2."""
        return 2 * self.batch * self.dim_in * self.dim_out

    @property
    def forward_bytes(self) -> Floats:
        """Input, weights and output, once each, in fp32."""
        return _FLOAT_BYTES * (self.batch * (self.dim_in + self.dim_out) + self.dim_in * self.dim_out)
