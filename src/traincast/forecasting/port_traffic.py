"""What leaves a node through its one port in a step: its devices share it, so it is not what one of them sends."""

from __future__ import annotations

import numpy as np

from traincast.forecasting.question import Question
from traincast.scaling.gradients import buckets_of, gradients_of
from traincast.scaling.hierarchy import Network, NetworkCost, all_gather, all_reduce, reduce_scatter
from traincast.scaling.strategy import network_of


def port_bytes(question: Question) -> float | None:
    """Bytes that the busiest node sends to others in a step, one direction; None where there is one node."""
    cluster, strategy = question.cluster, question.strategy
    if cluster is None or cluster.n_nodes == 1:
        return None
    network, gradients = network_of(cluster), gradients_of(question.timed_graph)
    if strategy.n_servers:
        return network.n_inside * gradients.total_bytes  # every worker pushes all its gradients
    n_bytes = buckets_of(gradients).bytes
    if not len(n_bytes):
        return None
    if strategy.kind != "sharded":
        return _through_port(all_reduce(n_bytes, network, strategy.algorithm), network)
    n_gathers = 2 * question.accumulation_steps if strategy.stage == 3 else 1
    gathered = _through_port(all_gather(n_bytes, network, "ring"), network)
    return _through_port(reduce_scatter(n_bytes, network, "ring"), network) + n_gathers * gathered


def _through_port(cost: NetworkCost, network: Network) -> float:
    """A flat ring or tree leaves a node once; in a hierarchy of even nodes each of its devices sends a shard."""
    has_shards = (cost.algorithm == "hierarchical") & network.is_even
    return float((np.where(has_shards, network.n_inside, 1) * cost.between.bytes_sent).sum())
