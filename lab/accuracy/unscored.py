"""Measured rows that no set holds: which models and GPUs, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.kernels.coefficients import Coefficients
from traincast.kernels.refit.model_rows import Step, lambda_steps, model_block, timm_steps
from traincast.kernels.refit.op_rows import read_rows
from traincast.validation.splits import Split, held_out

_RENAMED = "timm has another name for it today"
_OPTION = "timm builds it from options of another model today"
_IABN = "normalises in the CUDA package inplace_abn, whose fused kernels no trace shows; timm has dropped the model"
_REASONS = {
    "densenet121d": _OPTION,
    "densenet264": _OPTION,
    "densenet264d_iabn": _IABN,
    "ese_vovnet99b_iabn": _IABN,
    "regnety_040s_gn": _RENAMED,
    "resnetv2_50d_evob": _OPTION,
    "vit_base_patch16_224_sam": _RENAMED,
    "vit_base_patch32_224_sam": _RENAMED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnscoredModel:
    """An image model without a trace among those that were fitted; `errors` by layout where one came later."""

    name: str
    reason: str
    errors: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnscoredGpu:
    """Rows of the NVIDIA examples on one GPU in one precision whose rate is not known."""

    name: str
    precision: str
    n_rows: int
    reason: str
    is_whole: bool  # none of the GPU's rows is scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    """What the page names beside the sets. `n_*` count what the tables of measurements have."""

    models: tuple[UnscoredModel, ...]
    n_models: int
    gpus: tuple[UnscoredGpu, ...]
    n_gpus: int
    examples: tuple[str, ...]  # models of the NVIDIA examples that have no trace


def unscored_of(data: Path, traces: Path, splits: Sequence[Split], fits: Sequence[Coefficients]) -> Unscored:
    steps = list(timm_steps(data, "train"))
    rows = read_rows(data / "e2e" / "lambda.csv")
    known = list(lambda_steps(data))
    scored = {step.tags["family"] for step in known}
    return Unscored(
        models=tuple(_models(steps, traces, splits, fits)),
        n_models=len({step.tags["model"] for step in steps}),
        gpus=tuple(_gpus([row for row in rows if row["num_gpus"] == "1" and row["model"] in scored], known)),
        n_gpus=len({row["gpu"] for row in rows}),
        examples=tuple(sorted({row["model"] for row in rows} - scored)),
    )


def _models(
    steps: Sequence[Step], traces: Path, splits: Sequence[Split], fits: Sequence[Coefficients]
) -> list[UnscoredModel]:
    missing = [step for step in steps if not (traces / f"{step.trace}.trace").exists()]
    found = []
    for name in sorted({step.tags["model"] for step in missing}):
        errors = {}
        for step in missing:
            later = replace(step, trace=step.trace.replace("timm-train--", "timm-renamed--"))
            if step.tags["model"] == name and (traces / f"{later.trace}.trace").exists():
                block = model_block(f"timm train {step.layout}", [later], traces)
                errors[step.layout] = float(held_out(block, splits, fits, "family")[0] / step.observed_s - 1.0)
        found.append(UnscoredModel(name=name, reason=_REASONS.get(name, "no trace was captured"), errors=errors))
    return found


def _gpus(rows: Sequence[dict[str, str]], known: Sequence[Step]) -> list[UnscoredGpu]:
    all_rows = Counter((row["gpu"], _precision(row)) for row in rows)
    scored = {(step.device, step.tags["precision"]) for step in known}
    whole = {gpu for gpu, _ in all_rows} - {gpu for gpu, _ in scored}
    return [
        UnscoredGpu(
            name=gpu, precision=precision, n_rows=n_rows, reason=_unknown_rate(gpu, precision), is_whole=gpu in whole
        )
        for (gpu, precision), n_rows in sorted(all_rows.items())
        if (gpu, precision) not in scored
    ]


def _precision(row: dict[str, str]) -> str:
    return "amp-fp16" if row["precision"] == "fp16" else "tf32" if row["tf32_allowed"] == "1" else "fp32"


def _unknown_rate(gpu: str, precision: str) -> str:
    device = find_device(gpu)
    for each in ("fp32", precision):
        try:
            device.peak(each)
        except InputError:
            notes = f" ({device.notes})" if device.notes else ""
            return f"the device table has no {each} rate{notes}"
    return "no trace was captured"
