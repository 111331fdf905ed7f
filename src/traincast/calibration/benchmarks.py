"""Which steps calibration runs: every kind of work, in cache and out of it, alone and in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from traincast.calibration.layers import (
    Attention,
    Block,
    Language,
    Mapped,
    Recurrent,
    Residual,
    Scaled,
    label_loss,
    mean_loss,
    repeat,
)
from traincast.measurement.runnable import Runnable

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A module and the batch sizes to time it at."""

    name: str
    make: Callable[[], nn.Module]
    make_inputs: Callable[[int], Tensor]
    batch_sizes: tuple[int, ...]
    loss: Callable[[Any, Any], Tensor] = mean_loss
    optimizers: tuple[str, ...] = ("sgd",)
    is_network: bool = False  # different layers, as in a model

    def runnable(self) -> Runnable:
        """A new one, with weights of its own."""
        return Runnable(
            name=self.name,
            module=self.make(),
            make_inputs=self.make_inputs,
            forward=lambda module, inputs: module(inputs),
            loss=self.loss,
        )


def all_benchmarks() -> list[Benchmark]:
    """In an order that spreads similar work over the run: a slow minute then spoils a little of everything."""
    groups = [list(group()) for group in (_matrices, _convolutions, _bytes, _sequences, _networks)]
    longest = max(len(group) for group in groups)
    return [group[place] for place in range(longest) for group in groups if place < len(group)]


def _vectors(*shape: int) -> Callable[[int], Tensor]:
    return lambda batch_size: torch.randn(batch_size, *shape)


def _words(length: int, n_words: int) -> Callable[[int], Tensor]:
    return lambda batch_size: torch.randint(0, n_words, (batch_size, length))


def _stack(make: Callable[[], nn.Module], n_layers: int = 3) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(*repeat(make, n_layers))


def _scaled(make: Callable[[], nn.Module], n_layers: int = 1) -> Callable[[], nn.Module]:
    return lambda: Scaled(*repeat(make, n_layers))


def _matrices() -> Iterator[Benchmark]:
    sizes = (
        (64, 64, (16, 256), ("sgd", "adam")),
        (256, 256, (8, 128, 1024), ("sgd", "adam", "momentum")),
        (1024, 1024, (8, 128), ("sgd", "adam")),
        (2048, 2048, (16,), ("sgd",)),
        (784, 300, (32, 256), ("sgd",)),
        (100, 10, (32,), ("sgd",)),
    )
    for width, out, batch_sizes, optimizers in sizes:
        make = partial(nn.Linear, width, out)
        yield Benchmark(
            name=f"linear-{width}-{out}",
            make=_stack(make) if width == out else _scaled(make),
            make_inputs=_vectors(width),
            batch_sizes=batch_sizes,
            optimizers=optimizers,
        )


def _convolutions() -> Iterator[Benchmark]:
    # channels in, channels out, window, stride, groups, image, batch sizes
    shapes = (
        (1, 32, 3, 1, 1, 28, (8, 64)),
        (3, 32, 3, 1, 1, 32, (8, 64)),
        (3, 64, 7, 2, 1, 96, (2, 16)),
        (8, 8, 3, 1, 1, 32, (4, 64)),
        (16, 16, 3, 1, 1, 32, (4, 64)),
        (24, 48, 3, 1, 1, 16, (8, 64)),
        (32, 32, 3, 1, 1, 14, (8, 64)),
        (32, 64, 5, 1, 1, 14, (16,)),
        (64, 64, 3, 1, 1, 16, (2, 32)),
        (64, 64, 3, 1, 1, 8, (8, 64)),
        (128, 128, 3, 1, 1, 14, (4, 16)),
        (256, 256, 3, 1, 1, 8, (2, 16)),
        (512, 512, 3, 1, 1, 4, (4,)),
        (32, 64, 3, 2, 1, 32, (4, 32)),
        (64, 128, 1, 2, 1, 28, (8,)),
        (3, 48, 4, 4, 1, 64, (16,)),
        (24, 144, 1, 1, 1, 28, (2, 16)),
        (192, 32, 1, 1, 1, 28, (2, 16)),
        (128, 128, 1, 1, 1, 14, (4, 32)),
        (512, 512, 1, 1, 1, 7, (4, 16)),
        (320, 1280, 1, 1, 1, 7, (2,)),
        (64, 16, 1, 1, 1, 1, (4, 16)),
        (144, 6, 1, 1, 1, 1, (4, 32)),
        (12, 20, 3, 1, 1, 16, (8, 64)),
        (64, 64, 3, 1, 8, 28, (8,)),
        (256, 256, 3, 1, 32, 14, (8,)),
        (96, 96, 3, 1, 8, 14, (8,)),
        (32, 32, 3, 1, 32, 56, (2, 16)),
        (96, 96, 3, 2, 96, 56, (2, 8)),
        (144, 144, 3, 1, 144, 28, (2, 16)),
        (576, 576, 3, 1, 576, 14, (2, 16)),
        (960, 960, 3, 1, 960, 7, (4,)),
        (144, 144, 5, 2, 144, 28, (2, 8)),
        (240, 240, 5, 1, 240, 14, (2, 8)),
        (672, 672, 5, 1, 672, 7, (4,)),
    )
    for c_in, c_out, window, stride, groups, image, batch_sizes in shapes:
        padding = 0 if stride == window else window // 2
        make = partial(nn.Conv2d, c_in, c_out, window, stride, padding, groups=groups, bias=window == 3)
        whole = Benchmark(
            name=f"conv-{c_in}-{c_out}-{window}-{stride}-{groups}-{image}",
            make=_scaled(make, 2 if c_in == c_out and stride == 1 else 1),
            make_inputs=_vectors(c_in, image, image),
            batch_sizes=batch_sizes,
        )
        yield whole
        if c_in <= 3:  # a first layer needs no gradient of its image
            yield replace(whole, name=f"{whole.name}-first", make=make)


def _bytes() -> Iterator[Benchmark]:
    norms: list[tuple[int, int, Sizes]] = [(16, 32, (4, 64)), (64, 16, (8,)), (256, 8, (8, 64)), (64, 56, (8,))]
    for channels, image, batch_sizes in norms:
        yield Benchmark(
            name=f"batch-norm-{channels}-{image}",
            make=_scaled(partial(nn.BatchNorm2d, channels), 4),
            make_inputs=_vectors(channels, image, image),
            batch_sizes=batch_sizes,
        )
    long = _vectors(16_384)
    functions: list[tuple[str, Callable[[], nn.Module], Sizes]] = [
        ("relu", nn.ReLU, (2, 16, 128)),
        ("gelu", nn.GELU, (8, 64)),
        ("silu", nn.SiLU, (8, 64)),
        ("tanh", nn.Tanh, (8, 64)),
        ("sigmoid", nn.Sigmoid, (8, 64)),
        ("dropout", partial(nn.Dropout, 0.1), (4, 32)),
    ]
    for name, make_layer, batch_sizes in functions:
        yield Benchmark(name=name, make=_scaled(make_layer, 4), make_inputs=long, batch_sizes=batch_sizes)
    mapped: list[tuple[str, Callable[[Tensor, Tensor], Tensor], Sizes]] = [
        ("add", lambda y, x: y + x, (2, 16, 128, 640)),
        ("multiply", lambda y, x: y * x, (16, 128)),
        ("divide", lambda y, x: y / 1.5, (16, 64)),
        ("join", lambda y, x: torch.cat([y, x], 1)[:, : x.shape[1]], (16, 64)),
    ]
    for name, function, batch_sizes in mapped:
        yield Benchmark(name=name, make=partial(Mapped, function, 6), make_inputs=long, batch_sizes=batch_sizes)
    yield Benchmark(
        name="transpose",
        make=partial(Mapped, lambda y, x: y.transpose(1, 2).contiguous(), 4),
        make_inputs=_vectors(128, 128),
        batch_sizes=(8, 64),
    )
    for width, few, many in ((128, 4, 64), (768, 4, 32)):
        yield Benchmark(
            name=f"layer-norm-{width}",
            make=_scaled(partial(nn.LayerNorm, width), 4),
            make_inputs=_vectors(64, width),
            batch_sizes=(few, many),
        )
    yield Benchmark(
        name="softmax", make=_scaled(partial(nn.Softmax, -1), 4), make_inputs=_vectors(64, 256), batch_sizes=(8, 64)
    )
    for name, make_pool in (
        ("max-pool-2", partial(nn.MaxPool2d, 2)),
        ("max-pool-3", partial(nn.MaxPool2d, 3, 2, 1)),
        ("mean-pool-2", partial(nn.AvgPool2d, 2)),
        ("mean-pool-3", partial(nn.AvgPool2d, 3, 1, 1)),
        ("mean-pool-all", partial(nn.AdaptiveAvgPool2d, 1)),
    ):
        yield Benchmark(name=name, make=_scaled(make_pool), make_inputs=_vectors(32, 32, 32), batch_sizes=(4, 48))


def _sequences() -> Iterator[Benchmark]:
    for n_words, width, many in ((1000, 64, 64), (8000, 256, 24)):
        yield Benchmark(
            name=f"language-{n_words}",
            make=partial(Language, n_words, width),
            make_inputs=_words(32, n_words),
            batch_sizes=(4, many),
            loss=label_loss,
            optimizers=("sgd", "adam") if n_words == 8000 else ("sgd",),
        )
    layers: list[tuple[str, Any, int, int, Sizes]] = [
        ("lstm", nn.LSTM, 64, 32, (4, 64)),
        ("lstm", nn.LSTM, 256, 24, (4, 64)),
        ("lstm", nn.LSTM, 650, 16, (4, 16)),
        ("gru", nn.GRU, 64, 24, (4, 64)),
        ("gru", nn.GRU, 256, 12, (4, 32)),
        ("rnn", nn.RNN, 128, 24, (8,)),
    ]
    for name, kind, width, length, batch_sizes in layers:
        yield Benchmark(
            name=f"{name}-{width}",
            make=partial(_recurrent_layer, kind, width),
            make_inputs=_vectors(length, width),
            batch_sizes=batch_sizes,
        )
    for width, length, few, many in ((64, 32, 8, 64), (256, 64, 4, 16)):
        for fused in (True, False):
            yield Benchmark(
                name=f"attention-{'fused' if fused else 'plain'}-{width}",
                make=_stack(partial(Attention, width, 4, fused=fused), 2),
                make_inputs=_vectors(length, width),
                batch_sizes=(few, many),
            )


def _recurrent_layer(kind: Any, width: int) -> nn.Module:
    return Recurrent(kind(width, width, batch_first=True))


def _networks() -> Iterator[Benchmark]:
    for benchmark in (*_blocks(), *_small_networks()):
        yield replace(benchmark, is_network=True)


def _small_networks() -> Iterator[Benchmark]:
    def plain() -> nn.Module:
        first = (nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2))
        return nn.Sequential(*first, nn.Flatten(), nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10))

    def grey() -> nn.Module:
        first = (nn.Conv2d(1, 24, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(24, 40, 3), nn.ReLU(), nn.MaxPool2d(2))
        return nn.Sequential(*first, nn.Flatten(), nn.Linear(640, 10))

    def inverted() -> nn.Module:
        wide = (nn.Conv2d(32, 128, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU6(inplace=True))
        deep = (nn.Conv2d(128, 128, 3, padding=1, groups=128, bias=False), nn.BatchNorm2d(128), nn.ReLU6(inplace=True))
        return Scaled(*wide, *deep, nn.Conv2d(128, 32, 1, bias=False), nn.BatchNorm2d(32))

    def tagger(kind: Any) -> nn.Module:
        return nn.Sequential(nn.Embedding(1000, 96), _recurrent_layer(kind, 96), nn.Dropout(0.1), nn.Linear(96, 20))

    texts = _words(24, 1000)
    yield Benchmark(name="plain", make=plain, make_inputs=_vectors(3, 28, 28), batch_sizes=(4, 48), loss=label_loss)
    yield Benchmark(name="grey", make=grey, make_inputs=_vectors(1, 24, 24), batch_sizes=(8, 64), loss=label_loss)
    yield Benchmark(name="inverted", make=inverted, make_inputs=_vectors(32, 28, 28), batch_sizes=(2, 16))
    for name, kind in (("tagger-lstm", nn.LSTM), ("tagger-gru", nn.GRU)):
        yield Benchmark(name=name, make=partial(tagger, kind), make_inputs=texts, batch_sizes=(4, 48), loss=label_loss)


def _blocks() -> Iterator[Benchmark]:
    images: list[tuple[int, int, Sizes]] = [(16, 32, (4, 64)), (48, 16, (4, 64)), (128, 8, (16,))]
    for width, image, batch_sizes in images:
        yield Benchmark(
            name=f"residual-{width}",
            make=_stack(partial(Residual, width), 2),
            make_inputs=_vectors(width, image, image),
            batch_sizes=batch_sizes,
            optimizers=("sgd", "adam"),
        )
    texts: list[tuple[int, int, Sizes]] = [(64, 32, (4, 64)), (256, 64, (4, 16)), (512, 96, (4,))]
    for width, length, batch_sizes in texts:
        yield Benchmark(
            name=f"block-{width}",
            make=_stack(partial(Block, width, 4), 2),
            make_inputs=_vectors(length, width),
            batch_sizes=batch_sizes,
            optimizers=("sgd", "adam"),
        )
    yield Benchmark(
        name="many-small",
        make=_stack(lambda: nn.Sequential(nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU()), 12),
        make_inputs=_vectors(32),
        batch_sizes=(8, 64),
        optimizers=("sgd", "momentum", "adam"),
    )
