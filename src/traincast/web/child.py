"""Reads one uploaded file in a process of its own, which may run out of time or memory without harm to the server.

It runs in an empty folder that holds the file and writes a result beside it, of a model also its trace, or else the
sentence that says why not.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import CaptureError, FileFormatError, InputError, TraincastError

if TYPE_CHECKING:
    from traincast.trace.trace import Trace

RESULT, PROBLEM, TRACE, UPLOAD = "result.json", "problem.txt", "model.trace", "upload"
_START_BYTES = 4096
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_ZIP, _TRACE = b"PK\x03\x04", b"traincast-trace "
_ONNX = re.compile(rb"\x08[\x01-\x1f]")  # writers of ONNX put its version first
_CODE_NAMES = (".py", ".pyc", ".pyw", ".ipynb")
_KERAS_NAMES = (".keras", ".h5", ".hdf5")
_PICKLE_NAMES = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".zip")
_WANTED = "upload an ONNX file, a saved trace or a Hugging Face config.json"


def kind_of(start: bytes, name: str) -> str:
    """'trace', 'config' or 'onnx': what it begins like, whatever its name.

    Code, pickles and archives are refused unread, whichever of the two says that they are.
    """
    small = name.lower()
    if small.endswith(_CODE_NAMES):
        raise InputError(f"'{name}' is code, which is never run here: capture the model and upload its trace.")
    if small.endswith(_KERAS_NAMES):
        stem = name.rpartition(".")[0]
        raise InputError(
            f"'{name}' is a Keras file, which may hold code and is never opened here: in Python, "
            f"tc.load_model('{stem}.keras').save('{stem}.trace') writes a trace to upload."
        )
    if start.startswith((*_PICKLES, _ZIP)) or small.endswith(_PICKLE_NAMES):
        raise InputError(f"'{name}' is a pickle or an archive, and those are never opened here: {_WANTED}.")
    found = _kind_by_content(start)
    if found is not None:
        return found
    if small.endswith(".onnx"):  # its reader tells more about what is wrong
        return "onnx"
    if small.endswith(".trace"):
        raise FileFormatError(f"'{name}' is not a saved trace, or its beginning is damaged: save the trace again.")
    if small.endswith(".json"):
        raise FileFormatError(f"'{name}' is not a JSON object: a Hugging Face config.json begins with a brace.")
    raise InputError(f"'{name}' is not a model that can be read here: {_WANTED}.")


def _kind_by_content(start: bytes) -> str | None:
    if start.startswith(_TRACE):
        return "trace"
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "config"
    return "onnx" if _ONNX.match(start) else None


def read_model(options: dict[str, Any]) -> bytes:
    """Captures the model, asks one question about it, and writes its trace."""
    from traincast.api.forecasts import forecast

    trace, kind = _load(options)
    _check_size(trace, options)
    try:
        forecast(trace, "T4", 8)  # a file can be well-formed and still describe nothing that trains
    except (ArithmeticError, ValueError, IndexError, KeyError) as error:
        if isinstance(error, TraincastError):
            raise
        raise CaptureError(f"'{options['name']}' does not describe a step that can be timed ({error}).") from error
    trace.save(TRACE)
    told = {
        "kind": kind,
        "n_parameters": trace.n_parameters,
        "n_ops": trace.graph.n_ops,
        "assumptions": list(trace.assumptions),
    }
    return json.dumps(told).encode()


def _load(options: dict[str, Any]) -> tuple[Trace, str]:
    """The trace and what it came from. A trace has its own name; others have the one of their file."""
    from traincast.api.models import load_model
    from traincast.trace.file import parse_trace

    name, upload = options["name"], Path(UPLOAD)
    with upload.open("rb") as file:
        kind = kind_of(file.read(_START_BYTES), name)
    if kind == "trace" and not options["model_options"]:
        most = options["trace_memory_bytes"]
        return parse_trace(upload.read_bytes(), where=f"'{name}'", most_bytes=most), kind
    path = upload.rename({"trace": "upload.trace", "config": "config.json", "onnx": "upload.onnx"}[kind])
    trace = load_model(path.absolute(), **options["model_options"])
    stem = name.rpartition(".")[0] or name
    if kind == "config":  # 'config' says nothing; the class in brackets does
        architecture = trace.name.rpartition(" (")[2].removesuffix(")")
        stem = architecture if stem == "config" else f"{stem} ({architecture})"
    return replace(trace, name=stem), kind


def _check_size(trace: Trace, options: dict[str, Any]) -> None:
    """What the trace will take in memory: arrays as they are, and about what Python makes of its words."""
    name, graph = options["name"], trace.graph
    if graph.n_ops > options["trace_ops"]:
        raise InputError(f"'{name}' has {graph.n_ops:,} ops: at most {options['trace_ops']:,} are kept.")
    n_letters = sum(len(text) for text in (*graph.names, *graph.attributes, *trace.call_functions, *trace.assumptions))
    n_letters += sum(len(module.path) + len(module.kind) for module in trace.modules)
    n_rows = len(trace.modules) + len(trace.parameters) + sum(len(module.parameters) for module in trace.modules)
    n_bytes = graph.n_bytes + trace.gradient_of.nbytes + trace.op_call.nbytes
    n_bytes += _LETTER_BYTES * n_letters + _ROW_BYTES * n_rows
    if n_bytes > options["trace_memory_bytes"]:
        most = f"{options['trace_memory_bytes'] // 2**20} MiB"
        raise InputError(f"'{name}' takes {n_bytes / 2**20:,.0f} MiB in memory: at most {most} are kept.")


_LETTER_BYTES, _ROW_BYTES = 16, 256  # attributes are JSON that is parsed; modules and parameters are objects


def read_log(options: dict[str, Any]) -> bytes:
    """Whether it is a log, and of what."""
    from traincast.api.logs import read_log as read
    from traincast.web.targets import metrics_of

    return json.dumps({"metrics": metrics_of(read(UPLOAD, metric=options["metric"]))}).encode()


def continue_log(options: dict[str, Any]) -> bytes:
    """Continues a log and shows where it ends."""
    from traincast.api.converging import converge
    from traincast.api.logs import read_log as read
    from traincast.views.converge import document_of
    from traincast.web.presenting import shown
    from traincast.web.targets import aim_of, metrics_of

    asked = options["asked"]
    log = replace(read(UPLOAD, metric=asked["metric"]), path=options["name"])
    aim = aim_of(log, asked["target"], asked["metric"])
    status = converge(log, **{**asked, "metric": aim.metric})
    document = document_of([status])
    return shown(document, status.to_dict(), metrics=metrics_of(log), told=aim.told)


_JOBS = {"model": read_model, "log": read_log, "converge": continue_log}


def main() -> None:
    """Arguments: the job, its options as JSON."""
    job, options = sys.argv[1], json.loads(sys.argv[2])
    limit_memory(options["memory_bytes"])
    limit_time(options["seconds"])
    try:
        content = _JOBS[job](options)
    except TraincastError as error:
        _tell(str(error))
    except RecursionError:
        _tell(f"'{options['name']}' is nested more deeply than any model or log is.")
    except MemoryError:
        _tell(f"'{options['name']}' needs more memory than an upload may take.")
    else:
        Path(RESULT).write_bytes(content)


def _tell(sentence: str) -> None:
    Path(PROBLEM).write_text(sentence, encoding="utf-8", errors="replace")


def limit_memory(n_bytes: int) -> None:
    """Addresses of this process, where the system can."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_time(seconds: float) -> None:
    """Of the processor, where the system can; elsewhere the parent's clock is what is left."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))


if __name__ == "__main__":
    main()
