"""Every method on every set: blocks and fits in, measured sets with predictions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.hardware.catalog import find_device
from traincast.kernels.coefficients import Coefficients, shipped
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.fit import Problem
from traincast.kernels.refit.folders import check_folders
from traincast.kernels.refit.model_rows import PUBLISHED
from traincast.trace.graph import Floats
from traincast.validation.baselines import (
    ideal_seconds,
    left_out_fits,
    paleo_fit,
    scaled_fit,
    summed,
    two_rates_fit,
    with_floor,
    without_floor,
)
from traincast.validation.blocks import Blocks, load_blocks
from traincast.validation.fits import load_fits, problem_of
from traincast.validation.intervals import log_sd_of
from traincast.validation.layer_rows import check_layers
from traincast.validation.layer_sets import NO_LIBRARY, measured_layers
from traincast.validation.measured_set import OURS, MeasuredSet, Prediction
from traincast.validation.noise import noise_of
from traincast.validation.splits import Kind, Split, held_out, splits_of, units_of

METHODS = (
    OURS,
    "traincast, foreign floor",
    NO_LIBRARY,
    "roofline",
    "scaled roofline",
    "flop + bytes",
    "measured inference",
    "paleo",
    "layerwise",
    *(f"published {who}" for who in PUBLISHED),
)


@dataclass(frozen=True, eq=False, slots=True)
class Scored:
    """The sets, and what was needed to predict them, for those who look closer."""

    sets: tuple[MeasuredSet, ...]
    problem: Problem
    splits: tuple[Split, ...]
    fits: tuple[Coefficients, ...]
    blocks: Blocks


def score_all(data: Path, traces: Path, *, real_fits: bool = False, n_processes: int = 1) -> Scored:
    """Minutes at the first call, an hour with real fits; seconds later, from what is kept beside the traces."""
    check_folders(data, traces)
    check_layers(data)
    blocks = load_blocks(data, traces)
    problem = problem_of(blocks, n_processes)
    splits = splits_of(blocks.all)
    fits = load_fits(problem, splits, traces, are_real=real_fits)
    sets = [measured_ops(block, splits, fits) for block in blocks.ops]
    sets += [measured_models(block, blocks.extra[block.name], splits, fits) for block in blocks.models]
    sets += measured_layers(data, traces, splits, fits)
    return Scored(_with_inference_speed(sets), problem, tuple(splits), tuple(fits), blocks)


def measured_ops(block: Block, splits: Sequence[Split], fits: Sequence[Coefficients]) -> MeasuredSet:
    """Lone ops without those that show nothing but the floor, from which it is read."""
    log_sd = log_sd_of(block, shipped())
    foreign = replace(block, floor_s=foreign_floor_s(block))
    predictions = [
        Prediction(method=OURS, left_out="GPU", seconds=held_out(block, splits, fits, "GPU"), log_sd=log_sd),
        Prediction(method=OURS, left_out="nothing", seconds=block.predict(shipped().coefficients), log_sd=log_sd),
        Prediction(method=METHODS[1], left_out="GPU", seconds=held_out(foreign, splits, fits, "GPU"), log_sd=log_sd),
        *_simple(block, "GPU", ~block.tags["is_floor"]),
    ]
    tags = _constant(block, precision="fp32", part="forward") | {"device": block.tags["device"]}
    tags |= {key: _filled(block.tags[key], "conv" if key == "op" else "-") for key in ("op", "dims")}
    whole = MeasuredSet(
        name=block.name,
        observed_s=block.observed_s,
        tags=tags,
        predictions=tuple(predictions),
        noise=noise_of(block),
    )
    return whole.take(~block.tags["is_floor"])


def _filled(values: NDArray[Any], default: str) -> NDArray[Any]:
    """Convolutions are of one op and one kind of size, which their table leaves out."""
    return np.where(values == "", default, values)


def foreign_floor_s(block: Block) -> Floats:
    """For each row the median floor of its op on the other devices: what is known before a machine was ever used."""
    floor_s = block.floor_s.copy()
    for op in np.unique(block.tags["op"]):
        own = block.tags["op"] == op
        by_device = {
            str(name): float(block.floor_s[own & (block.tags["device"] == name)].max(initial=0.0))
            for name in np.unique(block.tags["device"][own])
        }
        for name in by_device:
            others = [seconds for device, seconds in by_device.items() if device != name]
            if others:
                floor_s[own & (block.tags["device"] == name)] = np.median(others)
    return floor_s


def measured_models(
    block: Block, extra: dict[str, Floats], splits: Sequence[Split], fits: Sequence[Coefficients]
) -> MeasuredSet:
    """Whole steps. Image models ran on one GPU only, so families judge them first; the others, GPUs."""
    is_timm = block.name.startswith("timm")
    kinds: tuple[Kind, Kind] = ("family", "GPU") if is_timm else ("GPU", "family")
    seconds_by: dict[str, Floats] = {kind: held_out(block, splits, fits, kind) for kind in kinds}
    seconds_by["nothing"] = block.predict(shipped().coefficients)
    ours = [
        Prediction(method=OURS, left_out=kind, seconds=seconds, log_sd=log_sd_of(block, shipped(), kind))
        for kind, seconds in seconds_by.items()
    ]
    learn = np.ones(block.n_rows, dtype=bool)
    paleo = paleo_fit(extra["paleo_scaled_s"], extra["paleo_update_s"], block.observed_s)
    paleo_s = left_out_fits(units_of(block.tags, kinds[0]), learn, paleo)
    others = [Prediction(method="paleo", left_out=kinds[0], seconds=paleo_s)]
    if np.isfinite(extra["layerwise_s"]).any():
        others.append(Prediction(method="layerwise", left_out="-", seconds=extra["layerwise_s"]))
    for who in PUBLISHED:
        if f"{who}_s" in block.tags:
            seconds = block.tags[f"{who}_s"].astype(float)
            others.append(Prediction(method=f"published {who}", left_out="-", seconds=seconds))
    is_training = "train" in block.name or block.name.startswith("nvidia")
    tags = _constant(
        block,
        precision="fp32" if block.name.startswith("transformers") else "amp-fp16",
        part="step" if is_training else "forward",
        vendor=[find_device(str(name)).vendor for name in block.tags["device"]],
    )
    return MeasuredSet(
        name=block.name,
        observed_s=block.observed_s,
        tags=tags | block.tags,
        predictions=(*ours, *_simple(block, kinds[0], learn), *others),
        noise=noise_of(block),
    )


def _simple(block: Block, kind: Kind, learn: NDArray[np.bool_]) -> list[Prediction]:
    """Roofline; roofline times one fitted factor; flop and bytes each times a fitted factor."""
    compute_s, memory_s = ideal_seconds(block)
    roofline_s = summed(block, np.maximum(compute_s, memory_s))
    units, bare_s = units_of(block.tags, kind), without_floor(block)
    scaled_s = left_out_fits(units, learn, scaled_fit(roofline_s, bare_s))
    two = two_rates_fit(summed(block, compute_s), summed(block, memory_s), bare_s)
    two_s = left_out_fits(units, learn, two)
    return [
        Prediction(method="roofline", left_out="-", seconds=with_floor(block, roofline_s)),
        Prediction(method="scaled roofline", left_out=kind, seconds=with_floor(block, scaled_s)),
        Prediction(method="flop + bytes", left_out=kind, seconds=with_floor(block, two_s)),
    ]


def _constant(block: Block, **values: str | list[str]) -> dict[str, NDArray[Any]]:
    return {
        key: np.full(block.n_rows, value) if isinstance(value, str) else np.array(value)
        for key, value in values.items()
    }


def _with_inference_speed(sets: Sequence[MeasuredSet]) -> tuple[MeasuredSet, ...]:
    """Training of image models from the measured inference of the same model: one factor, families left out."""
    by_name = {each.name: each for each in sets}
    found = []
    for each in sets:
        other = by_name.get(each.name.replace("train", "inference"))
        if not each.name.startswith("timm train") or other is None:
            found.append(each)
            continue
        per_image = dict(zip(_models(other), other.observed_s / other.tags["batch"].astype(float), strict=True))
        base_s = np.array([per_image.get(model, np.nan) for model in _models(each)]) * each.tags["batch"].astype(float)
        learn = np.ones(each.n_rows, dtype=bool)
        seconds = left_out_fits(units_of(each.tags, "family"), learn, scaled_fit(base_s, each.observed_s))
        extra = Prediction(method="measured inference", left_out="family", seconds=seconds)
        found.append(replace(each, predictions=(*each.predictions, extra)))
    return tuple(found)


def _models(measured: MeasuredSet) -> list[tuple[str, str]]:
    return list(zip(measured.tags["model"].tolist(), measured.tags["img_size"].tolist(), strict=True))
