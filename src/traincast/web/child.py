"""Reads one uploaded file in a process of its own, which may run out of time or memory without harm to the server.

It runs in an empty folder that holds the file and writes `result.json` beside it, and of a model `model.trace`.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from traincast.errors import CaptureError, FileFormatError, InputError, TraincastError

RESULT, TRACE, UPLOAD = "result.json", "model.trace", "upload"
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_ZIP, _TRACE = b"PK\x03\x04", b"traincast-trace "


def kind_of(start: bytes, name: str) -> str:
    """'trace', 'config' or 'onnx', by what is in the file; code and pickles are refused unread."""
    if start.startswith(_TRACE):
        return "trace"
    if name.lower().endswith((".py", ".ipynb")):
        raise InputError(f"'{name}' is code, and code is never run here: capture the model and upload its trace.")
    if start.startswith((*_PICKLES, _ZIP)) or name.lower().endswith((".pt", ".pth", ".pkl", ".ckpt", ".keras", ".h5")):
        raise InputError(
            f"'{name}' is a pickle or an archive, and those are never opened here: upload an ONNX file, a saved trace "
            "or a Hugging Face config.json."
        )
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "config"
    if name.lower().endswith(".json"):
        raise FileFormatError(f"'{name}' is no JSON object: a Hugging Face config.json begins with a brace.")
    return "onnx"


def read_model(options: dict[str, Any]) -> dict[str, Any]:
    """Captures the model, asks one question about it, and writes its trace."""
    from traincast.api.forecasts import forecast
    from traincast.api.models import load_model

    upload = Path(UPLOAD)
    with upload.open("rb") as file:
        kind = kind_of(file.read(64), options["name"])
    path = upload.rename({"trace": "upload.trace", "config": "config.json", "onnx": "upload.onnx"}[kind])
    trace = load_model(path.absolute(), **options["model_options"])
    if trace.graph.n_ops > options["trace_ops"]:
        raise InputError(
            f"'{options['name']}' has {trace.graph.n_ops:,} ops: at most {options['trace_ops']:,} are kept."
        )
    try:
        forecast(trace, "T4", 8)  # a file can be well-formed and still describe nothing that trains
    except (ArithmeticError, ValueError, IndexError, KeyError) as error:
        if isinstance(error, TraincastError):
            raise
        raise CaptureError(f"'{options['name']}' describes no step that can be timed ({error}).") from error
    trace.save(TRACE)
    return {"kind": kind}


def read_log(options: dict[str, Any]) -> dict[str, Any]:
    """Continues a log and shows where it ends."""
    from traincast.api.converging import converge
    from traincast.api.logs import read_log as read
    from traincast.web.presenting import shown

    module, _, function = options["presenter"].partition(":")
    status = converge(replace(read(UPLOAD), path=options["name"]), **options["asked"])
    content = shown(getattr(importlib.import_module(module), function)([status]), status.to_dict())
    result: dict[str, Any] = json.loads(content)
    return result


_JOBS = {"model": read_model, "log": read_log}


def main() -> None:
    """Arguments: the job, its options as JSON."""
    job, options = sys.argv[1], json.loads(sys.argv[2])
    _limit(options["memory_bytes"], options["seconds"])
    try:
        result = _JOBS[job](options)
    except TraincastError as error:
        result = {"error": str(error)}
    except (MemoryError, RecursionError):
        result = {"error": f"'{options['name']}' needs more memory than an upload may take."}
    Path(RESULT).write_text(json.dumps(result), encoding="utf-8")


def _limit(memory_bytes: int, seconds: float) -> None:
    """Where the system can; elsewhere the parent's clock is what is left."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
