"""A Keras step under MirroredStrategy as we predict it: shared by the scripts beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import keras_runs
from traincast.hardware.catalog import find_device
from traincast.hardware.cluster_text import find_cluster
from traincast.hardware.host import Host, find_host
from traincast.kernels.predictor import Traincast
from traincast.kernels.timeline import step_timeline
from traincast.scaling.hierarchy import Network
from traincast.scaling.local_step import LocalStep, ParallelStep
from traincast.scaling.strategy import find_strategy, network_of, parallel_step
from traincast.trace.graph import Floats

PLACE = f"2x{keras_runs.DEVICE}"
PAIR = network_of(find_cluster(PLACE))
HOST = find_host("tf2-keras")


def slower_host(host: Host, *, call: float, dispatch: float) -> Host:
    """The host with its calls and its dispatches times a factor each."""
    return replace(
        host,
        forward_dispatch_s=dispatch * host.forward_dispatch_s,
        backward_dispatch_s=dispatch * host.backward_dispatch_s,
        optimizer_dispatch_s=dispatch * host.optimizer_dispatch_s,
        view_dispatch_s=dispatch * host.view_dispatch_s,
        call_s=call * host.call_s,
    )


def step_of(model: str, optimizer: str, batches: Sequence[int], host: Host, network: Network = PAIR) -> ParallelStep:
    """With one entry a batch size of one replica. Updates are one fused op a variable, as TensorFlow has them."""
    graph, sizes = keras_runs.keras_graph(model, optimizer), np.array(batches)
    times = Traincast().op_times(graph, find_device(keras_runs.DEVICE), sizes, precision="fp32")
    local = LocalStep(graph=graph, timeline=step_timeline(graph, times, host), host=host, batch_sizes=sizes)
    return parallel_step(find_strategy("mirrored"), local, network)


def errors(predicted_s: Floats, measured_s: Floats) -> Floats:
    return predicted_s / measured_s - 1


def error_cell(predicted_s: float, measured_s: float) -> str:
    """Milliseconds with the error behind them; empty where there is no figure."""
    if np.isnan(predicted_s):
        return ""
    n_digits = 2 if predicted_s < 0.01 else 1
    return f"{1e3 * predicted_s:.{n_digits}f} ({round(100 * (predicted_s / measured_s - 1)):+d} %)"
