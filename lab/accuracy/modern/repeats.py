"""How far apart measurements of one and the same thing are: no forecast can be better than that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from traincast.kernels.refit.modern.e2e_files import ImageRow
from traincast.kernels.refit.modern.kernel_row import KernelRow
from traincast.kernels.refit.modern.language_row import LanguageRow

_VARIANT_IN_NOTE = ("ml-engineering-compile",)  # modes of the compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Largest over smallest, less 1, of settings that were measured more than once."""

    what: str
    n_settings: int
    n_rows: int
    median_fraction: float
    largest_fraction: float


def repeats_of(what: str, pairs: Iterable[tuple[Hashable, float]]) -> Repeats | None:
    """None where nothing was measured twice. Rows that agree to the digit are one measurement printed twice."""
    groups: dict[Hashable, set[float]] = defaultdict(set)
    for key, seconds in pairs:
        if np.isfinite(seconds):
            groups[key].add(seconds)
    several = [values for values in groups.values() if len(values) > 1]
    if not several:
        return None
    apart = [max(values) / min(values) - 1.0 for values in several]
    return Repeats(
        what=what,
        n_settings=len(several),
        n_rows=sum(map(len, several)),
        median_fraction=float(np.median(apart)),
        largest_fraction=float(np.max(apart)),
    )


def language_repeats(what: str, rows: Sequence[LanguageRow]) -> Repeats | None:
    """All that a file tells is the same, but for the precision of sums over GPUs and the release of the software."""
    known = [row for row in rows if row.architecture is not None]
    return repeats_of(what, ((_setting(row), row.step_s) for row in known))


def _setting(row: LanguageRow) -> Hashable:
    sharding = row.tags["sharding"].partition(";mixed_precision")[0]
    variant = row.tags["note"] if row.source in _VARIANT_IN_NOTE else ""
    model = (row.source, row.model, row.architecture, row.tags["finetuning"], row.attention, row.recompute)
    place = (row.device, row.n_gpus, row.precision, row.is_compiled, sharding, row.tags["optimizer"])
    return (*model, *place, row.global_batch, row.accumulation_steps, row.parts, variant)


def kernel_repeats(what: str, rows: Sequence[KernelRow]) -> Repeats | None:
    return repeats_of(what, ((_kernel(row), row.seconds) for row in rows))


def _kernel(row: KernelRow) -> Hashable:
    details = (row.tags.get(key) for key in ("printed_precision", "is_deterministic"))
    return (row.kernel, row.device, row.direction, row.backend, row.shape, row.precision, *details)


def software_repeats(rows: Sequence[ImageRow]) -> Repeats | None:
    """The same eager model and batch under two releases of PyTorch."""
    return repeats_of(
        "timm inference, RTX 4090: PyTorch 2.4 beside 2.9, eager nchw",
        (
            ((row.step.trace, row.step.batch_size), row.step.observed_s)
            for row in rows
            if not row.is_compiled and row.step.layout == "nchw"
        ),
    )
