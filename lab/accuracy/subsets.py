"""Parts of sets that a target or a reader asks for: NVIDIA's transformers, training as a whole."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from traincast.validation.errors import Rows
from traincast.validation.measured_set import MeasuredSet, Prediction

TRANSFORMERS = "transformers fp32"


def named(sets: Iterable[MeasuredSet], name: str) -> MeasuredSet:
    return next(each for each in sets if each.name == name)


def transformer_views(measured: MeasuredSet) -> list[MeasuredSet]:
    """Inference, and training forward, backward and both, by vendor; rows that NeuSight predicted as well."""
    compared = measured.take(np.isfinite(measured.prediction("published neusight").seconds))
    views = []
    for vendor in ("NVIDIA", "AMD"):
        own = compared.take(compared.tags["vendor"] == vendor)
        views.append(own.take(own.tags["mode"] == "inference", name=f"{vendor} inference"))
        training = own.take(own.tags["mode"] == "train")
        for part in ("forward", "backward"):
            views.append(training.take(training.tags["part"] == part, name=f"{vendor} training, {part}"))
        views.append(joined(training, name=f"{vendor} training, both"))
    unpredicted = ~np.isfinite(measured.prediction("published neusight").seconds)
    views.append(measured.take(unpredicted, name="without published predictions"))
    return [view for view in views if view.n_rows]


def joined(training: MeasuredSet, *, name: str) -> MeasuredSet:
    """Forward and backward of one step added; the rows of a step follow each other."""
    forward, backward = training.tags["part"] == "forward", training.tags["part"] == "backward"
    _check_pairs(training, forward, backward)
    return MeasuredSet(
        name=name,
        observed_s=training.observed_s[forward] + training.observed_s[backward],
        tags={key: values[forward] for key, values in training.tags.items()} | {"part": np.full(forward.sum(), "both")},
        predictions=tuple(_added(prediction, forward, backward) for prediction in training.predictions),
        noise=training.noise,
    )


def _check_pairs(training: MeasuredSet, forward: Rows, backward: Rows) -> None:
    for tag in ("device", "family", "batch"):
        assert (training.tags[tag][forward] == training.tags[tag][backward]).all(), "a step lost one of its passes"


def _added(prediction: Prediction, forward: Rows, backward: Rows) -> Prediction:
    """Both passes are off together: their deviations add by their shares of the time."""
    first, second = prediction.seconds[forward], prediction.seconds[backward]
    log_sd = None
    if prediction.log_sd is not None:
        log_sd = (prediction.log_sd[forward] * first + prediction.log_sd[backward] * second) / (first + second)
    return Prediction(method=prediction.method, left_out=prediction.left_out, seconds=first + second, log_sd=log_sd)
