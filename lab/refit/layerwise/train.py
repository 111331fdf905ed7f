"""Fits the layer networks again and says how good they are.

    python -m lab.refit.layerwise.train --data DIR [--write]

DIR holds the layer times (conv_K40.csv.gz and so on). The weights go to where they ship; --write also renews
the tables of docs/layerwise.md. Needs the `learn` extra, and about three minutes on one core.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.markdown import refresh
from lab.paths import DOCS, PACKAGE
from lab.refit.layerwise.page import report_tables
from lab.refit.layerwise.scores import NetworkComparison, Result, Score, baseline_s, compare
from traincast.kernels.layerwise.fit import (
    RECIPES,
    SEED,
    Split,
    error_per_unit_outside,
    fastest_over_roofline,
    features_of,
    fit_network,
    fit_short,
    random_split,
)
from traincast.kernels.layerwise.layer_tables import KINDS
from traincast.kernels.layerwise.network import FOLDER, file_name, network_bytes, shipped_network
from traincast.kernels.layerwise.rows import LayerRows, read_layers
from traincast.report.files import write_file

SOURCE = "github.com/CDECatapult/ml-performance-prediction at e649f32d, Apache-2.0 (Justus et al. 2018)"
PAGE = DOCS / "layerwise.md"
PAPER_MOST_BATCH = 32  # the paper's convolutions have a batch below 33


def train(rows: LayerRows, kind: str) -> Result:
    """Fits, then scores: on a tenth of the rows at random, and on each GPU with the others as teachers."""
    split = random_split(len(rows))
    train_rows, test_rows = rows.take(split.train), rows.take(split.test)
    network = fit_network(train_rows, RECIPES[kind])
    predicted_s = network.predict_s(features_of(test_rows))
    baselines = [baseline_s(train_rows, test_rows, per_gpu=True, relative=relative) for relative in (False, True)]
    test = compare(test_rows, predicted_s, (baselines[0], baselines[1]))
    unseen = unseen_gpus(rows, kind)
    known = Score.of(predicted_s, test_rows.median_s)
    provenance = _provenance(rows, kind, split, known, unseen)
    provenance["log_sd"] = {
        "known_gpu": _digits(known.log_rms),
        "unseen_gpu": _digits(_line(unseen, "all").network.log_rms),
        "per_unit_outside": _digits(error_per_unit_outside(train_rows, kind)),
    }
    provenance["fastest_over_roofline"] = {
        name: _digits(ratio) for name, ratio in fastest_over_roofline(train_rows, kind).items()
    }
    paper = paper_score(rows, split) if kind == "conv" else None
    return Result(network=replace(network, provenance=provenance), test=test, unseen=unseen, paper_rows=paper)


def unseen_gpus(rows: LayerRows, kind: str) -> list[NetworkComparison]:
    """Every GPU predicted by a network, and by a baseline, that learnt from the other GPUs only."""
    predicted_s, by_seconds, by_ratio = np.zeros((3, len(rows)))
    for gpu in dict.fromkeys(rows.gpu.tolist()):
        is_left_out = rows.gpu == gpu
        others, left_out = rows.take(~is_left_out), rows.take(is_left_out)
        predicted_s[is_left_out] = fit_short(others, kind).predict_s(features_of(left_out))
        by_seconds[is_left_out] = baseline_s(others, left_out, per_gpu=False, relative=False)
        by_ratio[is_left_out] = baseline_s(others, left_out, per_gpu=False, relative=True)
    return compare(rows, predicted_s, (by_seconds, by_ratio))


def paper_score(rows: LayerRows, split: Split) -> Score:
    """Learnt from and scored on the batch sizes of the paper."""
    batch = rows.layers.batch
    train_rows, test_rows = (rows.take(part[batch[part] <= PAPER_MOST_BATCH]) for part in (split.train, split.test))
    network = fit_network(train_rows, RECIPES["conv"])
    return Score.of(network.predict_s(features_of(test_rows)), test_rows.median_s)


def _line(lines: list[NetworkComparison], gpu: str, layer_pass: str = "all") -> NetworkComparison:
    return next(line for line in lines if (line.gpu, line.layer_pass) == (gpu, layer_pass))


def _provenance(
    rows: LayerRows, kind: str, split: Split, known: Score, unseen: list[NetworkComparison]
) -> dict[str, Any]:
    gpus = dict.fromkeys(rows.gpu.tolist())
    return {
        "kind": kind,
        "source": SOURCE,
        "software": "TensorFlow 1.10, fp32",
        "target": "natural logarithm of median_s",
        "n_rows": {gpu: int((rows.gpu == gpu).sum()) for gpu in gpus},
        "split": {
            "seed": SEED,
            "n_train": len(split.train),
            "n_validation": len(split.validation),
            "n_test": len(split.test),
        },
        "hidden": list(RECIPES[kind].hidden),
        "stages": [list(stage) for stage in RECIPES[kind].stages],
        "scikit_learn": importlib.metadata.version("scikit-learn"),
        "test": _as_dict(known),
        "unseen_gpu": {gpu: _as_dict(_line(unseen, gpu).network) for gpu in gpus},
    }


def _as_dict(score: Score) -> dict[str, float]:
    return {
        "n": score.n,
        "rmse_s": _digits(score.rmse_s),
        "median_error_fraction": _digits(score.median_error_fraction),
        "mean_error_fraction": _digits(score.mean_error_fraction),
    }


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits both kinds, writes the weights, prints the report and, if asked, writes the page."""
    parser = argparse.ArgumentParser(description="Fit the layer networks again and report their errors.")
    parser.add_argument("--data", required=True, type=Path, metavar="DIR", help="folder with the layer times")
    parser.add_argument("--write", action="store_true", help="also renew the tables of docs/layerwise.md")
    chosen = parser.parse_args(arguments)
    results = {}
    for kind in KINDS:
        results[kind] = train(read_layers(chosen.data, kind), kind)
        path = write_file(PACKAGE / FOLDER / file_name(kind), network_bytes(results[kind].network))
        sys.stdout.write(f"{path}: {path.stat().st_size:,} bytes\n")
    shipped_network.cache_clear()  # whole models are summed with the new weights
    tables = report_tables(results, chosen.data)
    sys.stdout.write("\n\n".join(tables.values()) + "\n")
    if chosen.write:
        write_file(PAGE, refresh(PAGE.read_text(encoding="utf-8"), tables))


if __name__ == "__main__":
    main()
