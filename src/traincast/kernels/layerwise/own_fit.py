"""Fits the layer networks to benchmarks of one's own machine and scores them on rows that were left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from traincast.errors import InputError
from traincast.kernels.layerwise.features import feature_matrix, feature_names
from traincast.kernels.layerwise.fit import RECIPES, Recipe, fastest_over_roofline, fit_network, random_split
from traincast.kernels.layerwise.network import Network
from traincast.kernels.layerwise.own import figures_of, no_figures
from traincast.kernels.layerwise.rows import LayerRows
from traincast.trace.graph import Floats

FEWEST_ROWS = 50
_STEPS_PER_EPOCH = 500  # of the public rows, for which the recipes were chosen; fewer rows get more epochs
_MOST_TIMES = 30
_UNSEEN_LOG_SD = 0.25  # of a device that was not benchmarked, as for the networks that ship (docs/layerwise.md)
_OUTSIDE_LOG_SD = 0.16


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerScore:
    """How far a network is from the rows that it was not fitted to, and one constant for all."""

    kind: str
    n_train: int
    n_test: int
    rmse_s: float
    median_error_fraction: float
    mean_error_fraction: float
    log_rms: float
    constant_median_error_fraction: float  # of the rooflines times one factor

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def fit_own(kind: str, rows: LayerRows) -> tuple[Network, LayerScore]:
    """80 % of the rows to learn from, 10 % kept back, 10 % to score, as the paper and the practicum divided theirs."""
    if len(rows) < FEWEST_ROWS:
        raise InputError(
            f"{len(rows)} timed {kind} layers are too few to learn from: benchmark {FEWEST_ROWS} or more with "
            "'traincast bench layers'."
        )
    names = tuple(dict.fromkeys(rows.gpu.tolist()))
    features = _features(rows, figures_of(names))
    split = random_split(len(rows))
    train, test = rows.take(split.train), rows.take(split.test)
    network = fit_network(train, _recipe(kind, len(train)), features=features[split.train])
    score = _score(kind, train, test, network.predict_s(features[split.test]), features, split.train, split.test)
    provenance = {
        "kind": kind,
        "devices": names,
        "has_no_figures": figures_of(names) is None,
        "score": score.to_dict(),
        "log_sd": {
            "known_gpu": score.log_rms,
            "unseen_gpu": max(score.log_rms, _UNSEEN_LOG_SD),
            "per_unit_outside": _OUTSIDE_LOG_SD,
        },
        "fastest_over_roofline": fastest_over_roofline(train, kind, features=features[split.train]),
    }
    return replace(network, provenance=provenance), score


def _features(rows: LayerRows, figures: Mapping[str, Floats] | None) -> Floats:
    names, position = np.unique(rows.gpu, return_inverse=True)
    known = np.stack([no_figures() if figures is None else figures[name] for name in names.tolist()])
    return feature_matrix(rows.layers, known[position])


def _recipe(kind: str, n_rows: int) -> Recipe:
    """As many steps as with the public rows, up to a limit."""
    times = int(np.clip(_STEPS_PER_EPOCH * 256 / n_rows, 1, _MOST_TIMES))
    usual = RECIPES[kind]
    return Recipe(hidden=usual.hidden, stages=tuple((rate, times * epochs) for rate, epochs in usual.stages))


def _score(  # noqa: PLR0913
    kind: str, train: LayerRows, test: LayerRows, predicted_s: Floats, features: Floats, in_train: Any, in_test: Any
) -> LayerScore:
    names = feature_names(kind)
    roofline_s = np.exp(np.maximum(*(features[:, names.index(name)] for name in ("log_compute_s", "log_memory_s"))))
    factor = float(np.median(train.median_s / roofline_s[in_train]))
    error = np.abs(predicted_s / test.median_s - 1)
    return LayerScore(
        kind=kind,
        n_train=len(train),
        n_test=len(test),
        rmse_s=float(np.sqrt(np.mean((predicted_s - test.median_s) ** 2))),
        median_error_fraction=float(np.median(error)),
        mean_error_fraction=float(error.mean()),
        log_rms=float(np.sqrt(np.mean(np.log(predicted_s / test.median_s) ** 2))),
        constant_median_error_fraction=float(np.median(np.abs(factor * roofline_s[in_test] / test.median_s - 1))),
    )
