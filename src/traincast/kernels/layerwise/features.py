"""Features of a layer on a device: its shape, its work, the device's rates, and how long the work takes at those rates.

Everything that spans powers of ten enters as a natural logarithm, so that a few tens of units are enough.
"""

from __future__ import annotations

import numpy as np

from traincast.errors import InputError
from traincast.hardware.device import Device
from traincast.kernels.layerwise.layer_tables import ACTIVATIONS, OPTIMIZERS, ConvLayers, DenseLayers
from traincast.trace.graph import Floats, Ints

DEVICE_FEATURES = ("log_fp32_flop_per_s", "log_memory_bytes_per_s", "log_n_sm", "log_boost_clock_hz")
_WORK_FEATURES = ("log_flop", "log_bytes", "log_compute_s", "log_memory_s")
_CHOICES = tuple(f"activation_{name}" for name in ACTIVATIONS) + tuple(f"optimizer_{name}" for name in OPTIMIZERS)
_SHAPE_FEATURES = {
    "conv": (
        "log_batch", "log_input_size", "log_output_size", "log_channels_in", "log_channels_out",
        "kernel", "stride", "is_padded", "has_bias",
    ),
    "dense": ("log_batch", "log_dim_in", "log_dim_out"),
}  # fmt: skip


def feature_names(kind: str) -> tuple[str, ...]:
    """The columns of `feature_matrix` for "conv" or "dense"."""
    return _SHAPE_FEATURES[kind] + _WORK_FEATURES + DEVICE_FEATURES + _CHOICES


def device_features(device: Device) -> Floats:
    """Logarithms of the device's rates. The size of its memory is left out: it does not change the speed of a layer."""
    if device.kind != "gpu":
        raise InputError(f"Method 'layerwise' learnt from GPUs and cannot say anything about '{device.name}'.")
    if device.n_sm is None or device.boost_clock_hz is None:
        missing = "n_sm" if device.n_sm is None else "boost_clock_mhz"
        raise InputError(
            f"Method 'layerwise' needs {missing} of '{device.name}', which the device table does not give."
        )
    rates = (device.peak_flop_per_s("fp32"), device.memory_bytes_per_s, device.n_sm, device.boost_clock_hz)
    return np.log(np.array(rates, dtype=float))


def feature_matrix(layers: ConvLayers | DenseLayers, devices: Floats) -> Floats:
    """One row a layer. `devices` holds the device's features: one row for all layers, or one row a layer."""
    devices = np.broadcast_to(devices, (len(layers), len(DEVICE_FEATURES)))
    log_flop, log_bytes = np.log(layers.forward_flop), np.log(layers.forward_bytes)
    work = (log_flop, log_bytes, log_flop - devices[:, 0], log_bytes - devices[:, 1])
    return np.concatenate(
        [
            np.stack([*_shape(layers), *work], axis=1),
            devices,
            _one_hot(layers.activation, len(ACTIVATIONS)),
            _one_hot(layers.optimizer, len(OPTIMIZERS)),
        ],
        axis=1,
    )


def _shape(layers: ConvLayers | DenseLayers) -> tuple[Floats, ...]:
    if isinstance(layers, DenseLayers):
        return tuple(np.log(values) for values in (layers.batch, layers.dim_in, layers.dim_out))
    sizes = (layers.batch, layers.input_size, layers.output_size, layers.channels_in, layers.channels_out)
    logs = tuple(np.log(values) for values in sizes)
    return (*logs, layers.kernel, layers.stride, layers.is_padded, layers.has_bias)


def _one_hot(codes: Ints, n_choices: int) -> Floats:
    return (codes[:, None] == np.arange(n_choices)).astype(float)
