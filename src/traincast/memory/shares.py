"""What one device has of the storages of a step, where others hold the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.trace.graph import Floats, Graph, Ints, Phase, StorageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Fractions by kind. Of what the update makes for itself a device has as much as of what it updates.

    A run that accumulates gradients over several passes has them all while the later passes go forward.
    """

    weights: float = 1.0
    gradients: float = 1.0
    optimizer_state: float = 1.0
    accumulates: bool = False

    @property
    def is_whole(self) -> bool:
        return self.weights == self.gradients == self.optimizer_state == 1

    def of(self, graph: Graph) -> Floats:
        """One figure a storage."""
        by_kind = np.ones(len(StorageKind))
        by_kind[StorageKind.WEIGHT] = self.weights
        by_kind[StorageKind.GRADIENT] = self.gradients
        by_kind[StorageKind.OPTIMIZER_STATE] = self.optimizer_state
        found: Floats = by_kind[graph.storage_kind]
        if graph.n_ops:
            in_update = (graph.storage_alloc >= 0) & (graph.op_phase[graph.storage_alloc] == Phase.OPTIMIZER)
            found = np.where(in_update, self.optimizer_state, found)
        return found

    def alloc(self, graph: Graph) -> Ints:
        """When each storage begins to be: gradients before the pass where earlier ones left theirs."""
        if not self.accumulates:
            return graph.storage_alloc
        return np.where(graph.storage_kind == StorageKind.GRADIENT, -1, graph.storage_alloc)


ALL_OF_IT = Shares()
