"""What Paleo and the layer-wise method say about measured steps: both read the lowered graph, not kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from traincast.api.models import load_model
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.kernels.layerwise.layerwise import Layerwise
from traincast.kernels.paleo import Paleo
from traincast.kernels.refit.model_rows import Step
from traincast.trace.graph import Floats, Graph, Phase
from traincast.trace.lowering.lower import lower
from traincast.validation.progress import tracked

_FEW = 5  # traces that take no time worth a bar
COLUMNS = ("paleo_scaled_s", "paleo_update_s", "layerwise_s")


def graph_columns(steps: Sequence[Step], traces: Path) -> dict[str, Floats]:
    """One entry a step: Paleo's seconds at the full peaks, of what PPP scales and of the update; layer-wise seconds."""
    columns = {name: np.full(len(steps), np.nan) for name in COLUMNS}
    by_trace: dict[str, list[int]] = defaultdict(list)
    for number, step in enumerate(steps):
        by_trace[step.trace].append(number)
    names = sorted(by_trace)
    for name in names if len(names) <= _FEW else tracked(names, "Asking Paleo and the layer-wise method"):
        trace = load_model(name.removeprefix("zoo:") if name.startswith("zoo:") else str(traces / f"{name}.trace"))
        for number in by_trace[name]:
            step = steps[number]
            graph = lower(trace, settings=step.settings)
            columns["paleo_scaled_s"][number], columns["paleo_update_s"][number] = _paleo(graph, step)
            columns["layerwise_s"][number] = _layerwise(graph, step)
    return columns


def _precision(step: Step) -> str:
    return "amp-fp16" if step.is_apex else step.settings.precision


def _paleo(graph: Graph, step: Step) -> tuple[float, float]:
    device, sizes = find_device(step.device), np.array([step.batch_size])
    try:
        seconds = Paleo(1.0).op_times(graph, device, sizes, precision=_precision(step)).seconds[0]
    except InputError:  # a rate of this device is not known
        return np.nan, np.nan
    is_update = graph.op_phase == Phase.OPTIMIZER
    asked = np.isin(graph.op_phase, step.phases)
    return float(seconds[asked & ~is_update].sum()), float(seconds[asked & is_update].sum())


def _layerwise(graph: Graph, step: Step) -> float:
    """Not a number where it refuses: other precisions than fp32."""
    device, sizes = find_device(step.device), np.array([step.batch_size])
    try:
        seconds = Layerwise().op_times(graph, device, sizes, precision=_precision(step)).seconds[0]
    except InputError:
        return np.nan
    return float(seconds[np.isin(graph.op_phase, step.phases)].sum())
