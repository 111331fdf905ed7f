"""All measured rows as blocks, with what methods that need the graph say about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from traincast import __version__
from traincast.errors import InputError
from traincast.kernels.kernels_of import SIZES
from traincast.kernels.refit.block import Block, Kernels
from traincast.kernels.refit.folders import check_folders
from traincast.kernels.refit.model_rows import Step, model_block
from traincast.kernels.refit.modern_sets import modern_blocks
from traincast.kernels.refit.sets import all_op_blocks, model_steps
from traincast.trace.graph import Floats
from traincast.validation.block_file import read_block, write_block
from traincast.validation.fingerprint import fingerprint
from traincast.validation.graph_methods import graph_columns
from traincast.validation.progress import tracked

_N_CHECKED = 2  # rows of a stored block that are lowered again: traces may be old and the code new


@dataclass(frozen=True, eq=False, slots=True)
class Blocks:
    """Ops and whole models; `extra` has, for every block of models, columns of methods that read the graph.

    `modern` teach the fit besides: products, attention and language models, which have a page of their own.
    """

    ops: tuple[Block, ...]
    models: tuple[Block, ...]
    extra: dict[str, dict[str, Floats]]
    modern: tuple[Block, ...] = ()

    @property
    def all(self) -> tuple[Block, ...]:
        return self.ops + self.models + self.modern


def load_blocks(data: Path, traces: Path) -> Blocks:
    """From the measurements and traces, or from what an earlier call kept beside the traces."""
    check_folders(data, traces)
    models, extra = [], {}
    for name, steps in model_steps(data):
        block, columns = load_model_block(name, steps, traces)
        models.append(block)
        extra[name] = columns
    ops = [block for _ in tracked(["ops"], "Reading op timings") for block in all_op_blocks(data)]
    return Blocks(tuple(ops), tuple(models), extra, tuple(modern_blocks(data, traces)))


def load_model_block(name: str, steps: Sequence[Step], traces: Path) -> tuple[Block, dict[str, Floats]]:
    captured = [step for step in steps if step.trace.startswith("zoo:") or _file(traces, step).exists()]
    if not captured:
        raise InputError(
            f"'{traces}' holds no trace of the set '{name}': capture it with benchmarks/capture_models.py."
        )
    path = traces / f"block-{name.replace(' ', '-')}.npz"
    key = block_key(captured, traces)
    known = read_block(path, key=key)
    if known is None or not _is_still_so(*known, captured, traces):
        block = next(model_block(name, captured, traces) for _ in tracked([name], f"Lowering {name}"))
        known = block, graph_columns(captured, traces)
        write_block(path, *known, key=key)
    return known


def block_key(steps: Sequence[Step], traces: Path) -> str:
    """Of the rows, their traces and the version of the package."""
    names = sorted({_file(traces, step) for step in steps if not step.trace.startswith("zoo:")})
    stamps = [f"{file.name} {file.stat().st_mtime_ns}" for file in names]
    return fingerprint(__version__, repr(list(Kernels.__dataclass_fields__)), repr(SIZES), repr(list(steps)), *stamps)


def _is_still_so(block: Block, extra: dict[str, Floats], steps: Sequence[Step], traces: Path) -> bool:
    """Whether a few rows, lowered again, are what was stored: code changes between versions, too."""
    chosen = np.zeros(len(steps), dtype=bool)
    chosen[np.linspace(0, len(steps) - 1, min(_N_CHECKED, len(steps))).astype(int)] = True
    some = [step for step, is_chosen in zip(steps, chosen.tolist(), strict=True) if is_chosen]
    fresh, stored = model_block(block.name, some, traces), block.take(chosen)
    if len(fresh.row) != len(stored.row):
        return False
    columns = graph_columns(some, traces)
    pairs: list[tuple[Any, Any]] = [(fresh.kernels.sizes[size], stored.kernels.sizes[size]) for size in SIZES]
    pairs += [(fresh.kernels.work, stored.kernels.work), (fresh.count, stored.count), (fresh.row, stored.row)]
    pairs += [(columns[key], extra[key][chosen]) for key in columns]
    return all(np.allclose(new, old, rtol=1e-9, equal_nan=True) for new, old in pairs)


def _file(traces: Path, step: Step) -> Path:
    return traces / f"{step.trace}.trace"
