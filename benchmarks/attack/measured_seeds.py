"""Small valid measurements: profiler traces, tables, what commands print, and a store."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any


def kineto() -> bytes:
    """Three steps on a GPU, as torch.profiler exports them."""
    events = [one for step in range(3) for one in _gpu_step(step, 1000 * step)]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()


def gzipped_kineto() -> bytes:
    return gzip.compress(kineto(), mtime=0)


def _gpu_step(step: int, at_us: int) -> list[dict[str, Any]]:
    first = 100 * step
    return [
        _event("user_annotation", f"ProfilerStep#{step}", at_us, 1000),
        _event("cpu_op", "aten::conv2d", at_us + 50, 50),
        _event("cpu_op", "aten::cudnn_convolution", at_us + 60, 30, **{"Input Dims": [[8, 3, 32, 32], [16, 3, 3, 3]]}),
        _event("cuda_runtime", "cudaLaunchKernel", at_us + 70, 3, correlation=first + 1),
        _event("cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0", at_us + 150, 100, tid=2),
        _event("cpu_op", "aten::convolution_backward", at_us + 160, 80, tid=2),
        _event("cuda_runtime", "cudaLaunchKernel", at_us + 170, 3, tid=2, correlation=first + 2),
        _event("user_annotation", "Optimizer.step#SGD.step", at_us + 300, 50),
        _event("kernel", "implicit_sgemm", at_us + 100, 100, pid=0, tid=7, device=0, correlation=first + 1),
        _event("kernel", "cudnn::dgrad_engine", at_us + 200, 200, pid=0, tid=7, device=0, correlation=first + 2),
    ]  # fmt: skip


def _event(
    category: str, name: str, at_us: float, took_us: float, *, tid: int = 1, pid: int = 100, **more: Any
) -> dict[str, Any]:
    place = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
    return {**place, "ts": 1e6 + at_us, "dur": took_us, "args": more}


def table() -> bytes:
    rows = [f"mnist_cnn,{batch},{0.4 + batch / 100},0.1,sgd,fp32,T4" for batch in (8, 16, 32)]
    return "\n".join(["model,batch_size,step_ms,forward_ms,optimizer,precision,device", *rows, ""]).encode()


def _step(batch_size: int = 8) -> dict[str, Any]:
    return {
        "model": "mnist_cnn",
        "batch_size": batch_size,
        "optimizer": "sgd",
        "precision": "fp32",
        "device": "T4",
        "step_s": 0.0005,
        "p10_s": 0.0004,
        "p90_s": 0.0006,
        "n_steps": 20,
        "steps_s": [0.0004, 0.0005, 0.0006],
        "environment": {"device": "T4", "device_kind": "gpu", "host": "here", "versions": {"torch": "2.13.0"}},
    }


def measured_json() -> bytes:
    return json.dumps([_step(8), _step(16)]).encode()


def sweep_json() -> bytes:
    """What `traincast measure --sweep batch --json` prints."""
    rows = [{"what": str(n), "message": "", "measured": _step(n)} for n in (8, 16)]
    return json.dumps({"model": "mnist_cnn", "sweep": "batch", "rows": rows}).encode()


def _dense(number: int) -> dict[str, Any]:
    return {"layer": "dense", "batch_size": 8, "dim_input": 16 * number, "dim_output": 32, "optimizer": "sgd"}


def _layer_times(number: int) -> dict[str, Any]:
    return {
        f"{what}{name}": factor * number
        for name in ("forward_s", "step_s")
        for what, factor in (("", 1e-3), ("min_", 9e-4), ("max_", 2e-3), ("std_", 1e-4))
    }


def store() -> bytes:
    from traincast.records.environment import Environment
    from traincast.records.record import Record
    from traincast.records.store import Store

    here = Environment(
        device="Test CPU", device_kind="cpu", host="here", n_threads=1, n_cores=1, versions={"torch": "2"}, clocks={}
    )
    records = [
        Record(kind="layer", task=_dense(n), values=_layer_times(n), environment=here, created_s=9.0) for n in (1, 2)
    ]
    step = _step()
    task = {"model": "mnist_cnn", "batch_size": 8}
    records.append(Record(kind="step", task=task, values=step, environment=here, created_s=9.0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with Store(path) as kept:
            for record in records:
                kept.add(record, campaign="seed")
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        return path.read_bytes()


@lru_cache(maxsize=1)
def forecast_json() -> bytes:
    from traincast.__main__ import run

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run(["forecast", "mnist_cnn", "--on", "T4", "--batch", "8", "--samples", "1000", "--json"])
    return out.getvalue().encode()
