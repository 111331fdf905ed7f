"""Whole-model measurements as blocks: the kernels of a captured step at the measured batch size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.kernels.kernels_of import SIZES
from traincast.kernels.refit.bert_update import bert_update
from traincast.kernels.refit.block import FLAGS, Block, Kernels
from traincast.kernels.refit.op_rows import read_rows
from traincast.kernels.table import KernelTable, kernel_table
from traincast.trace.file import read_trace
from traincast.trace.graph import Graph, Phase
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One measured step: which trace with which settings ran on which device, and how long."""

    trace: str  # a file name without suffix, or a zoo name after "zoo:"
    settings: Settings
    device: str
    batch_size: int
    observed_s: float
    phases: tuple[Phase, ...] = tuple(Phase)
    layout: str = "nchw"
    is_apex: bool = False  # weights and activations in fp16 (apex O2): lowered as pure bf16, run on the fp16 units
    update: str = "foreach"  # or BertAdam's: "each parameter", "each parameter, clipped"
    tags: dict[str, str] = field(default_factory=dict)


def model_block(name: str, steps: Sequence[Step], traces: Path) -> Block:
    """A block of steps of one layout; steps whose trace was not captured are left out."""
    load = cache(lambda key: _load(traces, key))
    parts: list[dict[str, Any]] = []
    kept: list[Step] = []
    for step in steps:
        trace = load(step.trace)
        if trace is None:
            continue
        parts.append(_kernels_of_step(lower(trace, settings=step.settings), step, len(kept)))
        kept.append(step)
    joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    devices = tuple(sorted({step.device for step in kept}))
    tag_names = {key for step in kept for key in step.tags}
    return Block(
        name=name,
        kernels=Kernels(
            **{key: joined[key] for key in FLAGS},
            sizes={key: joined[key] for key in SIZES},
        ),
        row=joined["row"],
        count=joined["count"],
        device=np.searchsorted(devices, [step.device for step in kept])[joined["row"]],
        devices=devices,
        observed_s=np.array([step.observed_s for step in kept]),
        floor_s=np.array([part["floor_s"][0] for part in parts]),
        n_dispatched=np.array([part["n_ops"][0] for part in parts]),
        tags={key: np.array([step.tags.get(key, "") for step in kept]) for key in tag_names}
        | {"device": np.array([step.device for step in kept])},
        layout=kept[0].layout,
        tf32=kept[0].settings.precision != "fp32",
    )


def _load(traces: Path, key: str) -> Trace | None:
    if key.startswith("zoo:"):
        from traincast.frontend.zoo import load_zoo_model

        return load_zoo_model(key.removeprefix("zoo:"))
    path = traces / f"{key}.trace"
    return read_trace(path) if path.exists() else None


def _kernels_of_step(graph: Graph, step: Step, row: int) -> dict[str, Any]:
    table: KernelTable = kernel_table(graph)
    is_foreach = step.update == "foreach"
    in_phase = np.isin(graph.op_phase, step.phases) & (is_foreach | (graph.op_phase != Phase.OPTIMIZER))
    used = table.op_kernels[in_phase].ravel()
    count = np.bincount(used[used >= 0], minlength=table.n_kernels).astype(float)
    runs = count > 0
    sizes = dict(zip(SIZES, table.sizes(np.array([step.batch_size]))[0][:, runs], strict=True))
    flags = {key: getattr(table.kinds, key)[runs] for key in FLAGS}
    if step.is_apex:
        flags["is_bf16"] = np.zeros_like(flags["is_bf16"])
    n_ops = float((~table.is_silent[in_phase]).sum())
    columns: dict[str, Any] = sizes | flags | {"count": count[runs]}
    floor_s = 0.0
    if not is_foreach:
        update = bert_update(graph, step.device, clips_each=step.update.endswith("clipped"))
        columns = {key: np.concatenate([columns[key], more]) for key, more in update.columns().items()}
        n_ops, floor_s = n_ops + update.n_dispatched, update.waiting_s
    n = len(columns["count"])
    return columns | {"row": np.full(n, row), "n_ops": np.full(n, n_ops), "floor_s": np.full(n, floor_s)}


def timm_steps(data: Path, mode: str) -> Iterator[Step]:
    """Image models on one RTX 3090 (amp-fp16); training steps include the optimizer."""
    file = {"train": "timm_train_rtx3090.csv", "inference": "timm_infer_rtx3090.csv"}[mode]
    settings = Settings("amp-fp16", "momentum" if mode == "train" else "none")
    for row in read_rows(data / "e2e" / file):
        yield Step(
            trace=f"timm-{mode}--{row['model']}--{row['img_size']}",
            settings=settings,
            device="RTX-3090",
            batch_size=int(row["batch_size"]),
            observed_s=float(row["step_ms"]) * 1e-3,
            layout=row["layout"],
            tags={key: row[key] for key in ("family", "model", "img_size", "samples_per_s")}
            | {"batch": row["batch_size"]},
        )


PUBLISHED = ("neusight", "habitat", "li", "roofline")  # whose predictions the authors of the rows print beside them


def neusight_steps(data: Path) -> Iterator[Step]:
    """Transformers in strict fp32; forward and backward of training apart."""
    for row in read_rows(data / "e2e" / "neusight.csv"):
        parts: list[tuple[str, tuple[Phase, ...], str]] = [("forward", (Phase.FORWARD,), "fw_ms")]
        if row["mode"] == "train":
            parts.append(("backward", (Phase.BACKWARD,), "bw_ms"))
        for part, phases, column in parts:
            yield Step(
                trace=f"neusight-{row['mode']}--{row['model']}--{row['seqlen']}",
                settings=Settings("fp32", "none"),
                device=row["device"],
                batch_size=int(row["batch"]),
                observed_s=float(row[column]) * 1e-3,
                phases=phases,
                tags={
                    "family": row["model"],
                    "mode": row["mode"],
                    "part": part,
                    "batch": row["batch"],
                    **{f"{who}_s": str(float(row[f"{who}_{column}"] or "nan") * 1e-3) for who in PUBLISHED},
                },
            )


def _is_known(device: str, precision: str) -> bool:
    """Laptop cards whose clocks, and so rates, no public table gives are left out."""
    try:
        find_device(device).peak(precision)
        find_device(device).peak("fp32")
    except InputError:
        return False
    return True


_LAMBDA_TRACES = {
    "resnet50": "zoo:resnet50",
    "bert_base_squad": "lambda-train--bert_base_squad--384",
    "bert_large_squad": "lambda-train--bert_large_squad--384",
}


OLDER_EXAMPLES = "lambda.csv"  # what was measured before the newer file
# The scripts of 2022 clip all gradients at once.
_BERT_UPDATES = {"v0": "each parameter, clipped", "v1": "each parameter", "v2": "each parameter"}


def lambda_steps(data: Path, file: str = OLDER_EXAMPLES) -> Iterator[Step]:
    """NVIDIA examples on one GPU, full steps; fp32 rows of cards with tf32 units ran in tf32."""
    for row in read_rows(data / "e2e" / file):
        if row["num_gpus"] != "1" or row["model"] not in _LAMBDA_TRACES:
            continue
        throughput = float(row["throughput"])
        if row["flag"] == "bert_steps_overcounted":
            throughput /= float(row["overcount"])
        precision = "amp-fp16" if row["precision"] == "fp16" else "tf32" if row["tf32_allowed"] == "1" else "fp32"
        if not _is_known(row["gpu"], precision):
            continue
        batch_size = int(float(row["batch_size"]))
        is_apex = precision == "amp-fp16" and row["model"] != "resnet50"
        is_bert = row["model"] != "resnet50"
        optimizer = "momentum" if row["model"] == "resnet50" else "adam"
        yield Step(
            trace=_LAMBDA_TRACES[row["model"]],
            settings=Settings("bf16" if is_apex else precision, optimizer),
            is_apex=is_apex,
            update="foreach" if is_apex or not is_bert else _BERT_UPDATES[row["suite"]],
            device=row["gpu"],
            batch_size=batch_size,
            observed_s=batch_size / throughput,
            tags={
                "family": row["model"],
                "precision": precision,
                "batch": str(batch_size),
                "file": file,
                **{key: row[key] for key in ("suite", "flag", "runs", "spread", "system", "pytorch")},
            },
        )
