"""Random realistic layers to be timed alone, after Justus et al. 2018 (arXiv:1811.11880).

Dense, convolution, pooling and LSTM layers with an activation and an optimizer. Ranges are near those of the paper's
data where it has them; sizes are drawn evenly in their logarithm, so that small layers are not left out.
"""

from __future__ import annotations

import math
import random

from traincast.microbenchmarks.random_tasks import FLOAT_BYTES, Population, size
from traincast.records.record import Scalar, Settings
from traincast.records.work_list import Task

KIND = "layer"
ACTIVATIONS = ("none", "relu", "tanh", "sigmoid")
OPTIMIZERS = ("sgd", "momentum", "adagrad", "rmsprop", "adam", "adadelta")


def layer_tasks(n: int, seed: int = 0, *, device: str = "cpu") -> list[Task]:
    """`n` different layers, a quarter of each kind; the same for the same seed and kind of device."""
    return _LAYERS.tasks(n, seed, device)


def work_of(layer: Settings) -> tuple[float, float]:
    """Flop of the forward pass (a multiply-add is 2) and bytes of input, weights and output, once each, in fp32."""
    kind, values = layer["layer"], {name: value for name, value in layer.items() if isinstance(value, int)}
    batch = values["batch"]
    if kind == "dense":
        dim_in, dim_out = values["dim_in"], values["dim_out"]
        return 2.0 * batch * dim_in * dim_out, FLOAT_BYTES * (batch * (dim_in + dim_out) + dim_in * dim_out)
    if kind == "lstm":
        seqlen, dim_in, hidden = values["seqlen"], values["dim_in"], values["dim_out"]
        weights = 4 * hidden * (dim_in + hidden)
        return 2.0 * batch * seqlen * weights, FLOAT_BYTES * (batch * seqlen * (dim_in + hidden) + weights)
    in_pixels, out_pixels = batch * values["input_size"] ** 2, batch * output_size(layer) ** 2
    if kind == "pool":
        return 0.0, FLOAT_BYTES * values["channels_in"] * (in_pixels + out_pixels)
    weights = values["kernel"] ** 2 * values["channels_in"] * values["channels_out"]
    moved = in_pixels * values["channels_in"] + weights + out_pixels * values["channels_out"]
    return 2.0 * out_pixels * weights, FLOAT_BYTES * moved


def padding_of(layer: Settings) -> int:
    """Zeros on each side, so that SAME gives TensorFlow's output size: the input's over the stride, rounded up."""
    if layer["padding"] == "VALID":
        return 0
    side, kernel, stride = _geometry(layer)
    return math.ceil(max((math.ceil(side / stride) - 1) * stride + kernel - side, 0) / 2)


def output_size(layer: Settings) -> int:
    """Side of the output image."""
    side, kernel, stride = _geometry(layer)
    return math.ceil(side / stride) if layer["padding"] == "SAME" else (side - kernel) // stride + 1


def _geometry(layer: Settings) -> tuple[int, int, int]:
    side, kernel, stride = (int(layer[name] or 0) for name in ("input_size", "kernel", "stride"))
    return side, kernel, stride


def _choices(source: random.Random) -> dict[str, Scalar]:
    return {"activation": source.choice(ACTIVATIONS), "optimizer": source.choice(OPTIMIZERS)}


def _dense(source: random.Random) -> dict[str, Scalar]:
    sizes = {"batch": size(source, 1, 256), "dim_in": size(source, 8, 4096), "dim_out": size(source, 8, 4096)}
    return {"layer": "dense", **sizes, **_choices(source)}


def _image(source: random.Random, *, largest_kernel: int, smallest_kernel: int) -> dict[str, Scalar]:
    """Batch, image, kernel and stride. An even kernel cannot be centred at stride 1, and networks do not try."""
    side = size(source, 1, 512)
    kernel = source.randint(smallest_kernel, largest_kernel)
    stride = source.randint(1, 4)
    is_valid = source.random() < 0.5 or (kernel % 2 == 0 and stride == 1)
    return {
        "batch": size(source, 1, 64),
        "input_size": max(side, kernel),
        "kernel": kernel,
        "channels_in": size(source, 1, max(10_000 // side, 4)),
        "stride": stride,
        "padding": "VALID" if is_valid else "SAME",
    }


def _conv(source: random.Random) -> dict[str, Scalar]:
    image = _image(source, smallest_kernel=1, largest_kernel=7)
    channels_out = size(source, 1, max(10_000 // int(image["input_size"] or 1), 4))
    own = {"channels_out": channels_out, "bias": source.randint(0, 1)}
    return {"layer": "conv", **image, **own, **_choices(source)}


def _pool(source: random.Random) -> dict[str, Scalar]:
    image = _image(source, smallest_kernel=2, largest_kernel=5)
    # Nothing is trained, so there is nothing to update.
    return {"layer": "pool", **image, "pooling": source.choice(("max", "average")), "optimizer": "none"}


def _lstm(source: random.Random) -> dict[str, Scalar]:
    sizes = {"batch": size(source, 1, 128), "seqlen": size(source, 2, 128)}
    dims = {"dim_in": size(source, 8, 1024), "dim_out": size(source, 8, 1024)}
    return {"layer": "lstm", **sizes, **dims, "optimizer": source.choice(OPTIMIZERS)}


_LAYERS = Population(
    kind=KIND,
    draws=(_dense, _conv, _pool, _lstm),
    work=work_of,
    # A forward pass of more flop takes seconds on a CPU, and thousands of rows would take days.
    most_flop={"cpu": 5e9, "cuda": 1e12},
    same_in_all={},
)
