"""What has to be saved so that a run can go on elsewhere."""

from __future__ import annotations

import numpy as np

from traincast.trace.graph import Graph, StorageKind
from traincast.trace.traffic import tensor_bytes

_SAVED = (StorageKind.WEIGHT, StorageKind.BUFFER, StorageKind.OPTIMIZER_STATE)


def checkpoint_bytes(graph: Graph) -> int:
    """Weights, buffers and the optimizer's state: none of them depends on the batch."""
    owners = graph.storage_owner[np.isin(graph.storage_kind, _SAVED)]
    return int(tensor_bytes(graph, np.array([2]))[0, owners].sum())
