"""Fitting the layer networks with scikit-learn (the `learn` extra); predicting needs none of this.

Sizes and schedules were chosen among a few on another random split (seed 0) of the same rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.errors import MissingExtraError
from traincast.hardware.catalog import find_device
from traincast.kernels.layerwise.features import device_features, feature_matrix, feature_names
from traincast.kernels.layerwise.layer_tables import ConvLayers
from traincast.kernels.layerwise.network import Network, fold_scaling
from traincast.kernels.layerwise.rows import DEVICES, LayerRows
from traincast.trace.graph import Floats, Ints

SEED = 2018


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Units of each hidden layer, and stages of (learning rate, epochs)."""

    hidden: tuple[int, ...]
    stages: tuple[tuple[float, int], ...]


RECIPES = {
    "conv": Recipe(hidden=(96, 96, 48), stages=((1e-3, 30), (3e-4, 15), (1e-4, 10), (3e-5, 5))),
    "dense": Recipe(hidden=(48, 48, 24), stages=((1e-3, 20), (3e-4, 10), (1e-4, 5), (3e-5, 3))),
}
# For the many fits that only serve to be scored: fewer rows, fewer epochs.
SHORT_STAGES = ((1e-3, 15), (3e-4, 7), (1e-4, 3))
MOST_ROWS_IN_SHORT_FITS = 40_000


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Split:
    """Rows drawn at random: 80 % to learn from, 10 % to choose by (kept for that), 10 % to score."""

    train: Ints
    validation: Ints
    test: Ints


def random_split(n_rows: int, *, seed: int = SEED) -> Split:
    """The same rows for the same seed and number of rows."""
    order = np.random.default_rng(seed).permutation(n_rows)
    train, validation, test = np.split(order, [int(0.8 * n_rows), int(0.9 * n_rows)])
    return Split(train=train, validation=validation, test=test)


def features_of(rows: LayerRows, devices: Mapping[str, str] = DEVICES) -> Floats:
    """Features of timed layers on the devices that they were timed on."""
    names, position = np.unique(rows.gpu, return_inverse=True)
    known = np.stack([device_features(find_device(devices[name])) for name in names.tolist()])
    return feature_matrix(rows.layers, known[position])


def fit_network(rows: LayerRows, recipe: Recipe, *, seed: int = SEED, features: Floats | None = None) -> Network:
    """A network for the logarithm of the median time. Relative errors count, so small layers do as well as large."""
    features, target = features_of(rows) if features is None else features, np.log(rows.median_s)
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    target_scaling = (float(target.mean()), float(target.std()))
    model = _fit_model((features - mean) / scale, (target - target_scaling[0]) / target_scaling[1], recipe, seed)
    weights, biases = fold_scaling(model.coefs_, model.intercepts_, inputs=(mean, scale), target=target_scaling)
    names = feature_names("conv" if isinstance(rows.layers, ConvLayers) else "dense")
    is_size = np.array([name.startswith("log_") and name not in ("log_compute_s", "log_memory_s") for name in names])
    return Network(
        weights=weights,
        biases=biases,
        features=names,
        low=np.where(is_size, features.min(axis=0), -np.inf),
        high=np.where(is_size, features.max(axis=0), np.inf),
        provenance={},
    )


def _fit_model(features: Floats, target: Floats, recipe: Recipe, seed: int) -> Any:
    """scikit-learn's own regressor, one stage after the other."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor
    except ImportError as error:
        raise MissingExtraError("Fitting the layer networks", extra="learn") from error
    model = MLPRegressor(
        hidden_layer_sizes=recipe.hidden,
        batch_size=min(256, len(target)),
        alpha=1e-5,
        random_state=seed,
        warm_start=True,
        tol=0.0,
        n_iter_no_change=1_000_000,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a stage ends after its epochs, as intended
        for learning_rate, n_epochs in recipe.stages:
            model.set_params(learning_rate_init=learning_rate, max_iter=n_epochs)
            model.fit(features.astype(np.float32), target.astype(np.float32))
    return model


def fit_short(rows: LayerRows, kind: str, *, seed: int = SEED) -> Network:
    """A network of the same size from at most 40,000 of the rows, for scoring only."""
    chosen = np.random.default_rng(seed).permutation(len(rows))[:MOST_ROWS_IN_SHORT_FITS]
    return fit_network(rows.take(chosen), Recipe(hidden=RECIPES[kind].hidden, stages=SHORT_STAGES), seed=seed)


def error_per_unit_outside(rows: LayerRows, kind: str) -> float:
    """How fast the error grows outside the rows learnt from, in log error per log unit of distance.

    Learnt from the four fifths of the rows with the fewest flop, measured on the rest.
    """
    flop = rows.layers.forward_flop
    is_small = flop < np.quantile(flop, 0.8)
    network = fit_short(rows.take(is_small), kind)
    large = rows.take(~is_small)
    features = features_of(large)
    distance = network.distance_outside(features)
    error = np.log(network.predict_s(features) / large.median_s)
    is_far = distance > np.quantile(distance, 0.5)
    return float(np.sqrt(np.mean(error[is_far] ** 2) / np.mean(distance[is_far] ** 2)))


def fastest_over_roofline(rows: LayerRows, kind: str, *, features: Floats | None = None) -> dict[str, float]:
    """The least time to expect in each pass, over the forward roofline: it bounds what the network says far outside.

    Nothing beats the roofline of its products (three with the two of backward) but algorithms that need fewer of
    them. Convolutions have such: on the GPU where they gain most, all but one in a thousand rows are slower than this.
    """
    features, names = features_of(rows) if features is None else features, feature_names(kind)
    log_roofline_s = np.maximum(*(features[:, names.index(name)] for name in ("log_compute_s", "log_memory_s")))
    ratio = rows.median_s / np.exp(log_roofline_s)
    gpus = sorted(set(rows.gpu.tolist()))

    def least(chosen: NDArray[np.bool_]) -> float:
        return min(float(np.quantile(ratio[chosen & (rows.gpu == gpu)], 0.001)) for gpu in gpus)

    has_backward = rows.layers.has_backward
    return {"forward": min(1.0, least(~has_backward)), "with_backward": min(3.0, least(has_backward))}
