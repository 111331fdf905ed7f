"""What docs/accuracy.md says about measured rows that no set holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lab.accuracy.unscored import Unscored
from lab.markdown import percent, table
from traincast.validation.measured_set import MeasuredSet

_LAYOUTS = ("nchw", "nhwc")


def unscored_section(unscored: Unscored | None, sets: Sequence[MeasuredSet]) -> list[str]:
    """Parts of the page; none where nobody asked."""
    if unscored is None:
        return []
    return [
        "## What is not scored",
        _models(unscored),
        _with_later(unscored, sets),
        _gpus(unscored),
        _examples(unscored),
    ]


def _models(unscored: Unscored) -> str:
    n_scored = unscored.n_models - len(unscored.models)
    told = f"Training steps of {n_scored} of {unscored.n_models} image models are scored."
    if not unscored.models:
        return told
    rows = [
        (model.name, model.reason, *(percent(model.errors.get(layout), sign=True) for layout in _LAYOUTS))
        for model in unscored.models
    ]
    header = ("model", "why", "our error % nchw", "our error % nhwc")
    told += f" These {len(unscored.models)} have no trace among those that were fitted and scored:"
    return f"{told}\n\n{table(header, rows, 2)}"


def _with_later(unscored: Unscored, sets: Sequence[MeasuredSet]) -> str:
    """What the figures of the sets would be with the models that were captured after the fits."""
    n_later = sum(bool(model.errors) for model in unscored.models)
    if not n_later:
        return ""
    figures = []
    for measured in sets:
        layout = measured.name.removeprefix("timm train ")
        errors = [abs(model.errors[layout]) for model in unscored.models if layout in model.errors]
        if errors:
            scored = np.abs(measured.prediction().seconds / measured.observed_s - 1.0)
            everything = np.concatenate([scored, errors])
            middle, mean = percent(float(np.median(everything))), percent(float(np.mean(everything)))
            figures.append(f"{measured.name} would have a median of {middle} % and a mean of {mean} %")
    return (
        f"{n_later} of them were captured after the fits (`capture_models.py --set timm-renamed`; their numbers of "
        "parameters are those of the measurements). Their errors, with their family left out, stand above and are in "
        f"no other table. With them, {', '.join(figures)}."
    )


def _gpus(unscored: Unscored) -> str:
    whole = {gpu.name for gpu in unscored.gpus if gpu.is_whole}
    told = f"NVIDIA examples on {unscored.n_gpus - len(whole)} of {unscored.n_gpus} GPU types are scored"
    if not unscored.gpus:
        return f"{told}."
    rows = [
        (gpu.name, gpu.precision, "none" if gpu.is_whole else "other precisions", gpu.reason, str(gpu.n_rows))
        for gpu in unscored.gpus
    ]
    header = ("GPU", "precision", "scored of it", "why", "rows left out")
    return f"{told}. Left out, of rows on one GPU:\n\n{table(header, rows, 4)}"


def _examples(unscored: Unscored) -> str:
    if not unscored.examples:
        return ""
    return f"Of the NVIDIA examples, these models have no trace and are not scored: {', '.join(unscored.examples)}."
