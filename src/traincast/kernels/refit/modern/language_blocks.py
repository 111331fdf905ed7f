"""Measured steps of language models on one node as blocks that are predicted with any coefficients.

A step is its kernels: every pass of the accumulation, then the update of the shard that a device holds. What the links
take is left out, because NVLink hides nearly all of it; runs over several nodes, or of split models, are not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traincast.kernels.kernels_of import SIZE, SIZES
from traincast.kernels.refit.block import FLAGS, Block, Kernels
from traincast.kernels.refit.modern.language_row import LanguageRow
from traincast.kernels.table import KernelTable, kernel_table
from traincast.trace.file import read_trace
from traincast.trace.graph import Graph, Phase
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings

_NODE = 8
_SHARDED = ("fsdp", "zero1", "zero2", "zero3")


def is_teaching(row: LanguageRow) -> bool:
    """Whole eager steps of whole models in 16 bits on one node, all settings told."""
    is_plain = row.sharding.devices_per_replica == 1 and not row.is_compiled and not row.parts
    return not row.reason and is_plain and row.n_gpus <= _NODE and row.precision.startswith(("bf16", "fp16"))


def language_block(name: str, rows: Sequence[LanguageRow], traces: Path) -> Block | None:
    """Rows whose trace was captured, in the order of their traces; None where none was."""
    kept: list[LanguageRow] = []
    parts: list[dict[str, Any]] = []
    for trace_name in sorted({row.trace_name for row in rows}):
        path = traces / f"{trace_name}.trace"
        if not path.exists():
            continue
        graph = lower(read_trace(path), settings=Settings("bf16", "adamw"))
        for row in rows:
            if row.trace_name == trace_name:
                parts.extend(_kernels(graph, row, len(kept)))
                kept.append(row)
    if not kept:
        return None
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    names = [str(row.device_name) for row in kept]
    devices = tuple(sorted(set(names)))
    return Block(
        name=name,
        kernels=Kernels(**{key: joined[key] for key in FLAGS}, sizes={key: joined[key] for key in SIZES}),
        row=joined["row"],
        count=joined["count"],
        device=np.searchsorted(devices, names)[joined["row"]],
        devices=devices,
        observed_s=np.array([row.step_s for row in kept]),
        floor_s=np.zeros(len(kept)),
        n_dispatched=np.bincount(joined["row"], weights=joined["n_dispatched"]).astype(np.float64),
        tags={
            "device": np.array(names),
            "source": np.array([row.source for row in kept]),
            "family": np.array([row.model for row in kept]),
            "recompute": np.array([row.recompute for row in kept]),
            "seqlen": np.array([row.architecture.seqlen if row.architecture else 0 for row in kept]),
            "batch": np.array([row.global_batch for row in kept]),
            "model_flop": np.array([row.flop_per_gpu for row in kept]),  # of one GPU's step, as MFU counts them
            "tokens": np.array([row.n_tokens / row.n_gpus for row in kept]),
        },
        tf32=True,
    )


def _kernels(graph: Graph, row: LanguageRow, number: int) -> Iterator[dict[str, Any]]:
    """Of the passes, then of the update: each device updates what it holds."""
    table: KernelTable = kernel_table(graph)
    micro_batch = -(-row.global_batch // (row.n_gpus * row.accumulation_steps))
    sizes = table.sizes(np.array([micro_batch]))[0]
    is_update = graph.op_phase == Phase.OPTIMIZER
    n_shards = row.n_gpus if row.sharding.strategy in _SHARDED else 1
    for is_chosen, repeats, shards in ((~is_update, row.accumulation_steps, 1), (is_update, 1, n_shards)):
        used = table.op_kernels[is_chosen].ravel()
        count = np.bincount(used[used >= 0], minlength=table.n_kernels).astype(float)
        runs = count > 0
        own = sizes[:, runs].copy()
        own[SIZE["bytes"]] /= shards
        n_dispatched = np.zeros(int(runs.sum()))
        n_dispatched[:1] = float((~table.is_silent[is_chosen]).sum() * repeats)
        yield (
            {key: getattr(table.kinds, key)[runs] for key in FLAGS}
            | dict(zip(SIZES, own, strict=True))
            | {"count": count[runs] * repeats, "row": np.full(int(runs.sum()), number), "n_dispatched": n_dispatched}
        )
