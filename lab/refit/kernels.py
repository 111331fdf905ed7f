"""Refits the coefficients of our predictor and writes the file that the package ships.

    python -m lab.refit.kernels --data ../shared/data [--traces DIR] [--write]

The traces are those of `benchmarks/capture_models.py`, in ~/.cache/traincast/traces unless another folder is named.
Takes about ten minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from lab.paths import PACKAGE
from lab.refit.kernel_folds import (
    Fold,
    device_folds,
    family_folds,
    fit_folds,
    generation_folds,
    held_out,
    source_folds,
)
from traincast.errors import InputError
from traincast.kernels.coefficients import (
    ERROR_GROUPS,
    NAMES,
    NEW_GENERATION,
    SAME_GENERATION,
    SAME_GPU,
    Coefficients,
    prior_coefficients,
)
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.fit import Problem, fit
from traincast.kernels.refit.folders import USUAL_TRACES, check_folders
from traincast.kernels.refit.modern_sets import modern_blocks
from traincast.kernels.refit.sets import WEIGHTS, all_op_blocks, model_blocks, sample_ops
from traincast.kernels.refit.spread import group_shares, kernel_log_sd, step_log_sds
from traincast.report.files import write_file
from traincast.trace.graph import Floats

FITTED_FILE = PACKAGE / "data" / "kernels" / "coefficients.json"
_OP_SETS = {
    "matrix products": "gemm",
    "convolutions": "convolution",
    "normalisation": "softmax and layer norm",
    "other bytes": "elementwise",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=USUAL_TRACES)
    parser.add_argument("--steps", type=int, default=20, help="at most this many steps of the fit")
    parser.add_argument("--from-prior", action="store_true", help="start from the priors, not from the shipped fit")
    parser.add_argument("--processes", type=int, default=1, help="so many at once (the result is the same)")
    parser.add_argument("--write", action="store_true", help="replace the file of the package")
    arguments = parser.parse_args()
    try:
        check_folders(arguments.data, arguments.traces)
    except InputError as error:
        parser.error(str(error))
    ops = all_op_blocks(arguments.data)
    steps = model_blocks(arguments.data, arguments.traces, arguments.processes)
    modern = list(modern_blocks(arguments.data, arguments.traces))
    sets = Sets(ops, [*steps, *(b for b in modern if is_step(b))], [b for b in modern if not is_step(b)])
    start = None if arguments.from_prior else _shipped_or_priors()
    result = refit(sets, start=start, n_steps=arguments.steps, n_processes=arguments.processes)
    text = json.dumps(result, indent=1) + "\n"
    if arguments.write:
        write_file(FITTED_FILE, text)
    sys.stdout.write(json.dumps(result["provenance"], indent=1) + "\n")


@dataclass(frozen=True, eq=False, slots=True)
class Sets:
    """All that is fitted: lone ops with the floor of their machine, steps of whole models, lone modern kernels."""

    ops: list[Block]
    steps: list[Block]
    kernels: list[Block]


def is_step(block: Block) -> bool:
    return block.n_dispatched is not None


def refit(sets: Sets, *, start: Coefficients | None, n_steps: int, n_processes: int = 1) -> dict[str, Any]:
    """The contents of the shipped file: values, spread on held-out rows, provenance."""
    blocks = [*(sample_ops(block) for block in sets.ops), *sets.steps, *sets.kernels]
    problem = Problem(tuple(blocks), tuple(WEIGHTS[block.name] for block in blocks), n_processes)
    fitted = fit(problem, start=start, n_steps=n_steps)
    folds = {
        SAME_GPU: [*family_folds(blocks), *source_folds(blocks)],
        SAME_GENERATION: device_folds(blocks),
        NEW_GENERATION: generation_folds(blocks),
    }
    every = [fold for listed in folds.values() for fold in listed]
    fits = dict(zip((fold.name for fold in every), fit_folds(problem, fitted, every), strict=True))
    # Rows at the floor tell nothing about kernels: they are neither scored nor part of the spread.
    op_errors = {
        block.name: _log_errors(block, folds[SAME_GENERATION], fits)[~block.tags["is_floor"]] for block in sets.ops
    }
    held_out_errors = [
        (situation, block, _log_errors(block, listed, fits))
        for situation, listed in folds.items()
        for block in sets.steps
    ]
    kernel = {group: kernel_log_sd(op_errors[_OP_SETS.get(group, "convolution")]) for group in ERROR_GROUPS}
    return {
        "values": {name: round(fitted[name], 5) for name in NAMES},
        "log_sd": {
            "step": _step_log_sds(held_out_errors, fitted),
            "kernel": {name: round(value, 4) for name, value in kernel.items()},
        },
        "provenance": {
            "refit": "python -m lab.refit.kernels --data DIR --write",
            "date": datetime.now(UTC).date().isoformat(),
            "rows": {block.name: block.n_rows for block in blocks},
            "devices": sorted({str(name) for block in blocks for name in block.tags["device"]}),
            "held_out_percent": {name: _score(errors) for name, errors in op_errors.items()}
            | {
                f"{block.name}, {situation}": _score(errors[np.isfinite(errors)])
                for situation, block, errors in held_out_errors
                if np.isfinite(errors).any()
            }
            | {
                f"{block.name}, {situation}": _score(_log_errors(block, folds[situation], fits))
                for block in sets.kernels
                for situation in (NEW_GENERATION,)
            },
        },
    }


def _step_log_sds(
    held_out_errors: list[tuple[str, Block, Floats]], fitted: Coefficients
) -> dict[str, dict[str, float]]:
    """By situation and group. Every set counts alike: coverage is to hold on the average over sources."""
    errors, shares, situations = [], [], []
    for situation, block, found in held_out_errors:
        known = np.isfinite(found)
        if known.any():
            errors.append(found[known])
            shares.append(group_shares(block, fitted)[known])
            situations.append(situation)
    step = step_log_sds(errors, shares, [1.0] * len(errors), situations)
    return {
        situation: {name: round(value, 4) for name, value in by_group.items()} for situation, by_group in step.items()
    }


def _shipped_or_priors() -> Coefficients:
    """The fit of the package; coefficients that are new in this version start at their priors."""
    stored = json.loads(FITTED_FILE.read_text()) if FITTED_FILE.exists() else {"values": {}}
    known = {name: float(value) for name, value in stored["values"].items() if name in NAMES}
    return Coefficients(prior_coefficients().values | known)


def _log_errors(block: Block, folds: list[Fold], fits: dict[str, Coefficients]) -> Floats:
    """Not a number where no fold leaves the row out."""
    errors: Floats = np.log(held_out(block, folds, [fits[fold.name] for fold in folds]) / block.observed_s)
    return errors


def _score(errors: Floats) -> dict[str, float]:
    relative = 100 * np.expm1(errors)
    return {
        "n": len(errors),
        "median_absolute": round(float(np.median(np.abs(relative))), 2),
        "mean_absolute": round(float(np.mean(np.abs(relative))), 2),
        "bias": round(float(np.median(relative)), 2),
    }


if __name__ == "__main__":
    main()
