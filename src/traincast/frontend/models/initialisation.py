"""How weights start, for the networks that do not keep PyTorch's defaults."""

from __future__ import annotations

import torch
from torch import nn


def kaiming_convolutions(network: nn.Module) -> None:
    """Scale convolutions so that gradients keep their variance through ReLUs (He et al., arXiv 1502.01852).

    Batch norms need nothing: PyTorch starts them at the identity.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def normal_linears(network: nn.Module, *, std: float) -> None:
    """Draw the weights of all linear layers from a narrow normal distribution, with biases at zero."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def normal_embeddings(network: nn.Module, *, std: float) -> None:
    """Draw all embedding tables from a narrow normal distribution; the row of a padding token stays zero."""
    for module in network.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=std)
            if module.padding_idx is not None:
                with torch.no_grad():
                    module.weight[module.padding_idx].zero_()
