"""What is left open in a question about scaling: the batches, and how gradients are exchanged."""

from __future__ import annotations

from dataclasses import dataclass

from traincast.errors import InputError
from traincast.hardware.cluster import check_count
from traincast.scaling.hierarchy import check_algorithm
from traincast.scaling.strategy import Strategy, find_strategy
from traincast.trace.check import check_batch_size

_USUAL_BATCH_PER_DEVICE = 32


@dataclass(frozen=True, slots=True)
class ScaleBatches:
    """The global batch of strong scaling, the batch of each device of weak scaling, and what was chosen for you."""

    of_all: int
    of_each: int
    remark: str = ""


def choose_batches(of_all: int | None, of_each: int | None, *, n_most: int, n_passes: int = 1) -> ScaleBatches:
    """Both from one, so that they meet on the largest number of devices; without either, 32 a device and pass."""
    check_count(n_passes, "accumulation_steps")
    for given in (of_all, of_each):
        if given is not None:
            check_batch_size(given)
    if of_all is not None and of_each is not None:
        return ScaleBatches(of_all, of_each)
    gpus = f"{n_most:,} GPU{'s' * (n_most > 1)}"
    if of_all is not None:
        share = -(-of_all // (n_most * n_passes)) * n_passes
        return ScaleBatches(
            of_all, share, f"Weak scaling has {share:,} samples per GPU, a batch of {of_all:,} on {gpus}."
        )
    share = of_each or _USUAL_BATCH_PER_DEVICE * n_passes
    total = share * n_most
    if of_each is not None:
        return ScaleBatches(
            total, share, f"Strong scaling has a global batch of {total:,}: {share:,} on each of {gpus}."
        )
    chosen = (
        f"No batch was given: weak scaling has {share:,} samples per GPU, strong scaling {total:,} in all ({gpus})."
    )
    return ScaleBatches(total, share, chosen)


def choose_strategy(text: str, algorithm: str = "nccl") -> Strategy:
    """A strategy by its name, with the algorithm of its all-reduce if it has one."""
    check_algorithm(algorithm)
    strategy = find_strategy(text, algorithm=algorithm)
    if algorithm != "nccl" and strategy.kind not in ("ddp", "mirrored"):
        raise InputError(
            f"'{algorithm}' is a way to all-reduce, and the strategy '{strategy.name}' does not use one: "
            "leave it out, or take ddp or mirrored."
        )
    return strategy
