"""The layer-wise method: the time of a step is the sum of its layers, each timed alone (after Justus et al. 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.hardware.device import Device
from traincast.kernels.layerwise.features import feature_matrix
from traincast.kernels.layerwise.graph_layers import GraphLayers, find_layers, graph_optimizer
from traincast.kernels.layerwise.layer_tables import OPTIMIZERS
from traincast.kernels.layerwise.network import Network, shipped_network
from traincast.kernels.layerwise.own import network_device_features
from traincast.kernels.layerwise.rows import DEVICES
from traincast.kernels.method import OpTimes
from traincast.trace.flop import FORMULAS
from traincast.trace.graph import Floats, Graph, Ints
from traincast.trace.kinds import OpKind, op_kinds


@dataclass(frozen=True, slots=True)
class Layerwise:
    """Convolutions and fully connected layers of fp32 training on GPUs; everything else takes no time.

    The forward op of a layer takes what the layer alone took forward. Its backward ops share the rest of what
    forward, backward and update took together, so optimizer ops take nothing of their own, and neither do
    activations and biases. Pooling and normalisation take nothing because nobody timed them. They carry no flop by
    our count, and are covered; products that the data never held (attention, grouped convolutions) are not.

    Every figure holds the call of a session, 0.1 to 0.3 ms, and gradients of the input that a first layer does not
    need: sums are too long, most of all for small layers. A project found a factor of 1.5 and divided by it:
    `correction=1.5` does the same.
    """

    correction: float = 1.0
    own: tuple[tuple[str, Network], ...] = ()  # networks of one's own by kind; none: those that ship
    name: str = field(default="layerwise", init=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.correction) and self.correction > 0):
            raise InputError(f"The correction divides the sum of the layers: a number above 0, not {self.correction}.")

    def op_times(self, graph: Graph, device: Device, batch_sizes: Ints, *, precision: str) -> OpTimes:
        _check_precision(device, precision)
        sizes = np.asarray(batch_sizes, dtype=np.int64)
        answer = _Answer(graph, len(sizes))
        optimizer = graph_optimizer(graph) or OPTIMIZERS.index("SGD")
        for layers in find_layers(graph):
            if len(layers.ops):
                network = self._network(layers.kind)
                predicted = _predict(network, graph, layers, device, sizes, optimizer)
                answer.add(layers, network, predicted, is_known=_is_known(device, network))
        return OpTimes(
            seconds=answer.seconds / self.correction,
            compute_s=answer.compute_s / self.correction,
            log_sd=answer.log_sd,
            error_group=np.zeros(graph.n_ops, dtype=np.int64),  # one network: all its layers are off together
            is_covered=_is_covered(graph, answer.is_predicted),
            warnings=answer.warnings(device, self.own),
        )

    def _network(self, kind: str) -> Network:
        if not self.own:
            return shipped_network(kind)
        networks = dict(self.own)
        if kind not in networks:
            raise InputError(
                f"These weights learnt from {' and '.join(networks)} layers, and the model has {kind} ones: benchmark "
                "and train these, too."
            )
        return networks[kind]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Prediction:
    """Of the layers of one kind: one row a batch size, one column a layer."""

    forward_s: Floats
    backward_s: Floats  # with the update
    is_compute_bound: NDArray[np.bool_]
    is_limited: NDArray[np.bool_]  # the network wanted it faster than its work allows
    distance_outside: Floats


def _predict(
    network: Network, graph: Graph, layers: GraphLayers, device: Device, batch_sizes: Ints, optimizer: int
) -> _Prediction:
    """What the network says, but outside its rows no faster than the work allows: it promised 20 times the peak."""
    rates = network_device_features(network, device)
    fastest = network.provenance["fastest_over_roofline"]
    table = layers.table(graph, batch_sizes)
    features = feature_matrix(table, rates)
    compute_s, memory_s = (
        np.exp(features[:, network.features.index(f"log_{name}_s")]) for name in ("compute", "memory")
    )
    distance_outside = network.distance_outside(features)
    limit_s = np.where(distance_outside > 0, np.maximum(compute_s, memory_s), 0.0)
    free_s = network.predict_s(features)
    forward_s = np.maximum(free_s, fastest["forward"] * limit_s)
    is_limited, backward_s = free_s < forward_s, np.zeros(len(table))
    if len(layers.backward_ops):
        free_s = network.predict_s(feature_matrix(table.with_optimizer(optimizer), rates))
        whole_s = np.maximum(free_s, fastest["with_backward"] * limit_s)
        is_limited |= free_s < whole_s
        backward_s = np.maximum(whole_s - forward_s, 0.0)
    shape = (len(batch_sizes), len(layers.ops))
    return _Prediction(
        forward_s=forward_s.reshape(shape),
        backward_s=backward_s.reshape(shape),
        is_compute_bound=(compute_s > memory_s).reshape(shape),
        is_limited=is_limited.reshape(shape),
        distance_outside=distance_outside.reshape(shape),
    )


class _Answer:
    """Times of all ops, filled in one kind of layer after the other."""

    def __init__(self, graph: Graph, n_batch_sizes: int) -> None:
        self.seconds, self.compute_s = np.zeros((2, n_batch_sizes, graph.n_ops))
        self.log_sd = np.zeros(graph.n_ops)
        self.is_predicted = np.zeros(graph.n_ops, dtype=bool)
        self.n_layers = self.n_outside = self.n_limited = 0

    def add(self, layers: GraphLayers, network: Network, predicted: _Prediction, *, is_known: bool) -> None:
        owner = layers.backward_layer
        self._put(layers.ops, predicted.forward_s, predicted.is_compute_bound)
        share_s = predicted.backward_s[:, owner] * layers.backward_share
        self._put(layers.backward_ops, share_s, predicted.is_compute_bound[:, owner])
        outside = predicted.distance_outside.max(axis=0)
        held_out = network.provenance["log_sd"]
        log_sd = np.hypot(held_out["known_gpu" if is_known else "unseen_gpu"], held_out["per_unit_outside"] * outside)
        self.log_sd[layers.ops] = log_sd
        self.log_sd[layers.backward_ops] = log_sd[owner]
        self.n_layers += len(layers.ops)
        self.n_outside += int((outside > 0).sum())
        self.n_limited += int(predicted.is_limited.any(axis=0).sum())

    def _put(self, ops: Ints, seconds: Floats, is_compute_bound: NDArray[np.bool_]) -> None:
        self.seconds[:, ops] = seconds
        self.compute_s[:, ops] = np.where(is_compute_bound, seconds, 0.0)
        self.is_predicted[ops] = True

    def warnings(self, device: Device, own: tuple[tuple[str, Network], ...]) -> tuple[str, ...]:
        """What the reader should know before trusting the sum."""
        found = []
        if own:
            found.append(_about_own(own[0][1], device))
        elif not _is_known(device, None):
            known = ", ".join(DEVICES.values())
            found.append(f"No layers were timed on {device.name}: the network only saw {known}.")
        if self.n_outside:
            found.append(
                f"{self.n_outside} of {self.n_layers} layers lie outside the sizes and rates that were timed, at some "
                "batch size asked for: their times are extrapolated."
            )
        if self.n_limited:
            found.append(
                f"{self.n_limited} of them would come out faster than the device's peaks allow and take the roofline's "
                "time instead."
            )
        return tuple(found)


def _about_own(network: Network, device: Device) -> str:
    names = ", ".join(network.provenance["devices"])
    if network.provenance.get("has_no_figures"):
        return (
            f"These weights learnt from layers on {names} and know no other machine: they say nothing of {device.name}."
        )
    return f"These weights learnt from layers on {names}."


def _is_known(device: Device, network: Network | None) -> bool:
    """Whether layers were timed on it; what was learnt of a V100 with 16 GB holds for one with 32."""
    own = None if network is None else network.provenance.get("devices")
    return any(_chip(device.name) == _chip(name) for name in (DEVICES.values() if own is None else own))


def _chip(name: str) -> str:
    return name.removesuffix("-16GB").removesuffix("-32GB")


def _check_precision(device: Device, precision: str) -> None:
    if precision != "fp32" and not (precision == "tf32" and device.peak(precision).is_fallback):
        raise InputError(f"Method 'layerwise' learnt from fp32 runs and cannot predict {precision} on {device.name}.")


def _is_covered(graph: Graph, is_predicted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    carries_flop = np.array([name in FORMULAS for name in graph.names], dtype=bool)[graph.op_name]
    is_uncosted = np.array([kind == OpKind.UNCOSTED for kind in op_kinds(graph)], dtype=bool)
    return ~is_uncosted & (is_predicted | ~carries_flop)
