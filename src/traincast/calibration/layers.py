"""Small modules whose steps tell the prices of single kinds of work: a few layers of one kind, at two sizes or more.

Layers come in short stacks, as in a network: what one writes the next reads, and memory is asked for and given back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, relu, scaled_dot_product_attention


class Scaled(nn.Module):
    """Multiplies its input by a weight first, so that the layers behind must find the gradient of their input."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.weight, self.layers = nn.Parameter(torch.ones(1)), nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        scaled: Tensor = self.layers(x * self.weight)
        return scaled


class Mapped(nn.Module):
    """A function again and again."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], n_times: int) -> None:
        super().__init__()
        self.function, self.n_times, self.weight = function, n_times, nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.weight
        for _ in range(self.n_times):
            y = self.function(y, x)
        return y


class Recurrent(nn.Module):
    """The outputs of a recurrent layer, without its last state."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.layer(x)[0]
        return outputs


class Language(nn.Module):
    """Embedding and output layer of a language model, with nothing between."""

    def __init__(self, n_words: int, width: int) -> None:
        super().__init__()
        self.embedding, self.output = nn.Embedding(n_words, width), nn.Linear(width, n_words)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.output(self.embedding(x))
        return logits


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.second, self.second_norm = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.second_norm(self.second(relu(self.first_norm(self.first(x)))))
        return relu(x + y)


class Attention(nn.Module):
    """Self-attention, fused or step by step."""

    def __init__(self, width: int, n_heads: int, *, fused: bool) -> None:
        super().__init__()
        self.n_heads, self.fused = n_heads, fused
        self.heads, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        heads = self.heads(x).view(n, length, 3, self.n_heads, width // self.n_heads).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind(0)
        if self.fused:
            mixed = scaled_dot_product_attention(query, key, value)
        else:
            mixed = torch.softmax(query @ key.transpose(-1, -2) * 0.1, -1) @ value
        joined: Tensor = self.output(mixed.transpose(1, 2).reshape(n, length, width))
        return joined


class Block(nn.Module):
    """A block of a transformer."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, n_heads, fused=True)
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first_norm(x))
        fed: Tensor = x + self.narrow(gelu(self.wide(self.second_norm(x))))
        return fed


def mean_loss(output: Tensor, inputs: Any) -> Tensor:
    return output.float().mean()


def label_loss(output: Tensor, inputs: Any) -> Tensor:
    scores = output.flatten(0, -2)
    return cross_entropy(scores, scores.new_zeros(len(scores), dtype=torch.long))


def repeat(make: Callable[[], nn.Module], n_times: int) -> Iterator[nn.Module]:
    for _ in range(n_times):
        yield make()
