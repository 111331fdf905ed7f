"""The public runs: where they are, what they ran, and which rows are set aside."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lab.accuracy.distributed.rows import Job, ParallelRow
from traincast.errors import InputError
from traincast.frontend.zoo import load_zoo_model
from traincast.hardware.catalog import find_device
from traincast.kernels.refit.op_rows import read_rows
from traincast.trace.file import read_trace
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace

_POLLUX = {
    "cifar10": ("cifar_resnet18", Settings("fp32", "momentum")),
    "imagenet": ("resnet50", Settings("amp-fp16", "momentum")),
    "bert": ("bert-base", Settings("fp32", "adamw")),
}


def pollux_rows(data: Path) -> list[ParallelRow]:
    """T4, 1 to 64 in 1 to 16 servers of AWS (g4dn.12xlarge)."""
    jobs = {app: Job(load_zoo_model(model), settings, "T4") for app, (model, settings) in _POLLUX.items()}
    return [
        ParallelRow(
            job=jobs[row["app"]],
            placement=_placement(row),
            local_batch=int(row["local_batch"]),
            step_s=float(row["step_time_s"]),
            sync_s=float(row["sync_time_s"]),
            tags={"app": row["app"], "nodes": row["num_nodes"], "gpus": row["num_gpus"]},
        )
        for row in read_rows(data / "distributed" / "pollux_t4_steps.csv")
        if row["app"] in jobs
    ]


def _placement(row: dict[str, str]) -> tuple[int, ...]:
    """One digit a server; without one the devices are spread evenly."""
    if row["placement"]:
        return tuple(int(digit) for digit in row["placement"].split(".")[0])
    n_nodes, n = int(row["num_nodes"]), int(row["num_gpus"])
    share, rest = divmod(n, n_nodes)
    return (share + 1,) * rest + (share,) * (n_nodes - rest)


_GAVEL = {
    "ResNet-18": ("zoo:cifar_resnet18", "momentum"),
    "ResNet-50": ("zoo:resnet50", "momentum"),
    "LM": ("gavel--lm", "sgd"),
    "Transformer": ("gavel--transformer", "adam"),
}
_GAVEL_DEVICES = {"K80": "K80-die", "P100": "P100-PCIe-16GB"}


def gavel_rows(data: Path, traces: Path) -> list[ParallelRow]:
    """K80 and P100, 2 to 8, in one server or each in its own. Rows that its notes call suspect are set aside."""
    rows = [
        row
        for row in read_rows(data / "distributed" / "gavel_k80_p100.csv")
        if row["table"] == "simulation" and row["ran"] == "1" and row["model"] in _GAVEL
    ]
    one = {
        (row["gpu"], row["model"], row["batch_per_gpu"]): float(row["step_time_s"])
        for row in rows
        if row["n_gpus"] == "1"
    }
    jobs = {
        (gpu, model): Job(load_trace(traces, key), Settings("fp32", optimizer), device)
        for model, (key, optimizer) in _GAVEL.items()
        for gpu, device in _GAVEL_DEVICES.items()
    }
    return [
        ParallelRow(
            job=jobs[row["gpu"], row["model"]],
            placement=(n,) if row["placement"] == "consolidated" else (1,) * n,
            local_batch=int(row["batch_per_gpu"]),
            step_s=float(row["step_time_s"]),
            one_device_s=one[row["gpu"], row["model"], row["batch_per_gpu"]],
            tags={"gpu": row["gpu"], "model": row["model"], "placement": row["placement"], "gpus": row["n_gpus"]},
        )
        for row in rows
        if (n := int(row["n_gpus"])) > 1 and not row["suspect"]
    ]


_EXAMPLES = {
    "resnet50": ("zoo:resnet50", "momentum"),
    "bert_base_squad": ("lambda-train--bert_base_squad--384", "adam"),
    "bert_large_squad": ("lambda-train--bert_large_squad--384", "adam"),
}
_FAULTS = ("superlinear", "slower_than_1gpu", "fp16_slower_than_fp32", "runs_differ>20%")


def example_rows(data: Path, traces: Path) -> list[ParallelRow]:
    """NVIDIA's examples on 2 to 8 GPUs of one machine; rows that were flagged are set aside."""
    rows = [row for row in read_rows(data / "e2e" / "lambda.csv") if row["model"] in _EXAMPLES]
    by_kind: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for row in rows:
        if row["num_gpus"] == "1":
            by_kind.setdefault(_kind(row), []).append((float(row["batch_size"]), _throughput(row)))
    jobs: dict[tuple[str, ...], Job] = {}
    found = []
    for row in rows:
        n, kind = int(row["num_gpus"]), _kind(row)
        if n not in (2, 4, 8) or kind not in by_kind or any(fault in row["flag"] for fault in _FAULTS):
            continue
        runs = sorted(by_kind[kind], key=lambda run: run[1])
        batch, one_throughput = runs[len(runs) // 2]
        if kind not in jobs:
            made = _example_job(row, traces)
            if made is None:
                continue
            jobs[kind] = made
        local = round(batch)
        found.append(
            ParallelRow(
                job=jobs[kind],
                placement=(n,),
                local_batch=local,
                step_s=n * local / _throughput(row),
                one_device_s=local / one_throughput,
                tags={"gpu": row["gpu"], "model": row["model"], "gpus": row["num_gpus"]},
            )
        )
    return found


def _kind(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("gpu", "model", "precision", "precision_tag", "suite"))


def _throughput(row: dict[str, str]) -> float:
    overcounted = row["flag"] == "bert_steps_overcounted"
    return float(row["throughput"]) / (float(row["overcount"]) if overcounted else 1.0)


def _example_job(row: dict[str, str], traces: Path) -> Job | None:
    """None where the rates of a card are not known."""
    key, optimizer = _EXAMPLES[row["model"]]
    precision = "amp-fp16" if row["precision"] == "fp16" else "tf32" if row["tf32_allowed"] == "1" else "fp32"
    is_apex = precision == "amp-fp16" and row["model"] != "resnet50"
    try:
        find_device(row["gpu"]).peak(precision)
        find_device(row["gpu"]).peak("fp32")
    except InputError:
        return None
    return Job(load_trace(traces, key), Settings("bf16" if is_apex else precision, optimizer), row["gpu"], is_apex)


@cache
def load_trace(traces: Path, key: str) -> Trace:
    """A zoo model, or a trace of benchmarks/capture_models.py."""
    if key.startswith("zoo:"):
        return load_zoo_model(key.removeprefix("zoo:"))
    path = traces / f"{key}.trace"
    if not path.exists():
        raise InputError(
            f"'{traces}' has no trace '{key}': make it with benchmarks/capture_models.py (sets transformers and "
            "distributed), or name its folder with --traces."
        )
    return read_trace(path)
