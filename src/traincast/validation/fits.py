"""The fit without each GPU, each split of families and so on, kept in folds.json beside the traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from traincast.kernels.coefficients import NAMES, Coefficients, shipped
from traincast.kernels.refit.fit import Problem, as_point, fit, fit_without
from traincast.kernels.refit.processes import at_once
from traincast.kernels.refit.sets import WEIGHTS, sample_ops
from traincast.report.files import write_file
from traincast.validation.blocks import Blocks
from traincast.validation.fingerprint import fingerprint
from traincast.validation.progress import tracked
from traincast.validation.splits import Split

FILE = "folds.json"
_N_STEPS = {"GPU": 4, "family": 4, "generation": 8, "source": 8}  # a whole generation moves the fit further


def problem_of(blocks: Blocks, n_processes: int = 1) -> Problem:
    """The rows that the shipped coefficients are fitted to, with what each set counts for."""
    rows = (*(sample_ops(block) for block in blocks.ops), *blocks.models, *blocks.modern)
    return Problem(rows, tuple(WEIGHTS[block.name] for block in rows), n_processes)


def load_fits(problem: Problem, splits: Sequence[Split], folder: Path, *, are_real: bool = False) -> list[Coefficients]:
    """One fit a split, from the file or made and kept.

    The shortcut starts at the full fit, keeps its Jacobian and stops on the way: what it has seen of the left-out rows
    does not quite go away. `are_real` fits every split anew, a minute or two each.
    """
    if are_real:
        return load_real_fits(problem, splits, folder)
    fitted = shipped().coefficients

    def make(missing: Sequence[Split]) -> list[Coefficients]:
        jacobian = next(problem.jacobian(as_point(fitted)) for _ in tracked(["all"], "Linearising the fit"))

        def one(split: Split) -> Coefficients:
            rows = [split.rows(block) for block in problem.blocks]
            return fit_without(problem, fitted, jacobian, rows, n_steps=_N_STEPS[split.kind])

        return _in_parts(one, missing, problem.n_processes, "Fitting without each split")

    return _kept(problem, splits, folder, "", make)


def load_real_fits(problem: Problem, splits: Sequence[Split], folder: Path, *, n_steps: int = 10) -> list[Coefficients]:
    """The fits without each split by least squares on the remaining rows alone, with Jacobians of their own."""

    def one(split: Split) -> Coefficients:
        return fit(without(problem, split), start=shipped().coefficients, n_steps=n_steps)

    def make(missing: Sequence[Split]) -> list[Coefficients]:
        return _in_parts(one, missing, problem.n_processes, "Fitting anew without each split")

    return _kept(problem, splits, folder, "real fit ", make)


def _in_parts(
    one: Callable[[Split], Coefficients], splits: Sequence[Split], n_processes: int, told: str
) -> list[Coefficients]:
    """As many at once as there are processes, so that progress can be told."""
    parts = [splits[start : start + n_processes] for start in range(0, len(splits), n_processes)]
    return [found for part in tracked(parts, told) for found in at_once(one, part, n_processes)]


def _kept(
    problem: Problem,
    splits: Sequence[Split],
    folder: Path,
    kind: str,
    make: Callable[[Sequence[Split]], list[Coefficients]],
) -> list[Coefficients]:
    """Fits from the file, and those that are not there made and added to it."""
    key = fits_key(problem)
    stored = _read(folder / FILE, key)
    missing = [split for split in splits if kind + split.name not in stored]
    if missing:
        for split, found in zip(missing, make(missing), strict=True):
            stored[kind + split.name] = [round(value, 7) for value in as_point(found).tolist()]
        _write(folder / FILE, key, stored)
    return [_coefficients(stored[kind + split.name]) for split in splits]


def without(problem: Problem, split: Split) -> Problem:
    """The problem of the other rows; each of them counts for what it did before."""
    kept, weights = [], []
    for block, weight in zip(problem.blocks, problem.weights, strict=True):
        rows = ~split.rows(block)
        if rows.any():
            kept.append(block.take(rows))
            weights.append(weight * rows.sum() / block.n_rows)
    return Problem(tuple(kept), tuple(weights))  # one process: many such fits are made at once


def fits_key(problem: Problem) -> str:
    """Of the errors of all rows under the shipped coefficients: other rows, coefficients or code make others."""
    point = as_point(shipped().coefficients)
    how = (files("traincast") / "kernels" / "refit" / "fit.py").read_bytes()
    return fingerprint(point.tobytes(), np.round(problem.errors(point), 9).tobytes(), how)


def _coefficients(values: list[float]) -> Coefficients:
    return Coefficients(dict(zip(NAMES, values, strict=True)))


def _read(path: Path, key: str) -> dict[str, list[float]]:
    """Fits by name; none of another key."""
    try:
        stored: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    fits: dict[str, list[float]] = stored.get("fits", {}) if stored.get("key") == key else {}
    return fits


def _write(path: Path, key: str, stored: dict[str, list[float]]) -> None:
    write_file(path, json.dumps({"key": key, "fits": stored}) + "\n")
