"""Asks the room of scaling what a measured collective takes, as a step on many devices does."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from lab.accuracy.modern.collective_rows import CollectiveRow
from lab.accuracy.modern.scored_rows import FileCount, ScoredRows
from traincast.hardware.cluster_text import find_cluster
from traincast.scaling import collectives as flat
from traincast.scaling.hierarchy import Network, all_gather, all_reduce, reduce_scatter
from traincast.scaling.strategy import network_of
from traincast.trace.graph import Floats
from traincast.units import MIB

_SMALL_BYTES = 1 * MIB  # below, latency is most of the time
_RULE = "nominal link"
# Of the whole vector, the part that a device sends in a ring; once more to give out what was added up.
_TURNS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
_SECONDS: dict[str, Callable[[Floats, Network], Floats]] = {
    "all_reduce": lambda n_bytes, network: all_reduce(n_bytes, network, "nccl").seconds,
    "all_gather": lambda n_bytes, network: all_gather(n_bytes, network).seconds,
    "reduce_scatter": lambda n_bytes, network: reduce_scatter(n_bytes, network).seconds,
    "all_to_all": lambda n_bytes, network: flat.all_to_all(n_bytes, network.n_devices, network.inside_port).seconds,
}


def of_collectives(file: str, rows: Sequence[CollectiveRow]) -> tuple[list[ScoredRows], FileCount]:
    """A set a collective, device, and whether the vector is small. The answer has no interval."""
    sets: dict[str, list[CollectiveRow]] = defaultdict(list)
    for row in rows:
        if not row.reason:
            sets[_set_name(row)].append(row)
    found = [_scored(name, file, some) for name, some in sorted(sets.items())]
    not_asked = Counter(row.reason for row in rows if row.reason)
    return found, FileCount(file=file, n_rows=len(rows), not_asked=dict(not_asked.most_common()))


def _set_name(row: CollectiveRow) -> str:
    size = "less than 1 MiB" if row.n_bytes < _SMALL_BYTES else "1 MiB and more"
    return f"{row.file.removesuffix('.csv.gz')}: {row.collective.replace('_', '-')}, {row.device_name}, {size}"


def _scored(name: str, file: str, rows: Sequence[CollectiveRow]) -> ScoredRows:
    answers = [ask_collective(row) for row in rows]
    return ScoredRows(
        name=name,
        file=file,
        observed=np.array([row.seconds for row in rows]),
        predicted=np.array([seconds for seconds, _ in answers]),
        baseline=np.array([nominal for _, nominal in answers]),
        quantity="collective time",
        rule=_RULE,
    )


def ask_collective(row: CollectiveRow) -> tuple[float, float]:
    """Seconds as forecast, and those of the bytes at the rate printed for the link."""
    cluster = find_cluster(row.place)
    seconds = _SECONDS[row.collective](np.array(row.n_bytes), network_of(cluster))
    n = row.n_devices
    nominal = _TURNS[row.collective] * row.n_bytes * (n - 1) / n / cluster.inside.bytes_per_s
    return float(seconds), nominal
