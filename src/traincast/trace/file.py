"""A trace as one file: a magic line, then a compressed header and the arrays one after another. No code, no pickles."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from traincast.errors import FileFormatError, InputError
from traincast.report.files import write_file
from traincast.report.input_files import regular
from traincast.trace.check import check_step, check_trace
from traincast.trace.graph import Graph, Ragged
from traincast.trace.settings import Settings
from traincast.trace.trace import Module, Parameter, Trace
from traincast.units import MIB

MAGIC = b"traincast-trace "
VERSION = 1
SUFFIX = ".trace"
MOST_BYTES = 2**30  # a file that unpacks to more is not a trace
_INTEGERS = (np.int8, np.int16, np.int32, np.int64)


def write_trace(trace: Trace, path: Path) -> None:
    """Writes the file whole or not at all."""
    write_file(path, trace_bytes(trace, level=9))


def trace_bytes(trace: Trace, *, level: int = 0) -> bytes:
    """The content of a trace's file; what is compressed together with more needs no compression here."""
    return MAGIC + f"{VERSION}\n".encode() + zlib.compress(_pack(trace), level=level)


def read_trace(path: Path) -> Trace:
    """The trace in a file, checked."""
    try:
        content = regular(path).read_bytes()
    except OSError as error:
        raise InputError(f"Cannot read '{path}': {error.strerror}.") from error
    return parse_trace(content, where=f"'{path}'")


def is_trace(path: Path) -> bool:
    """Whether the file says of itself that it is a trace."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def parse_trace(content: bytes, *, where: str, most_bytes: int = MOST_BYTES, is_shipped: bool = False) -> Trace:
    """The trace in the bytes of a file; `where` names it in errors. It is refused unread if it takes `most_bytes`.

    What is shipped with the package was looked at closely by its tests, which need not be done again.
    """
    head, newline, body = content.partition(b"\n")
    if not newline or not head.startswith(MAGIC):
        raise FileFormatError(f"{where} is not a traincast trace: 'trace.save(path)' writes one.")
    version = head[len(MAGIC) :].decode(errors="replace")
    if version != str(VERSION):
        raise FileFormatError(
            f"{where} is a trace of format {version}, but this traincast reads format {VERSION}: capture it again."
        )
    try:
        trace = _unpack(_decompress(body, where, most_bytes), where, most_bytes)
        check_trace(trace, where=where)
    except (
        zlib.error,
        struct.error,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        OverflowError,
        RecursionError,
        InputError,
    ) as error:
        raise FileFormatError(f"{where} is truncated or damaged ({error}): save the trace again.") from error
    if not is_shipped:
        check_step(trace.graph, where=where)
    return trace


def _decompress(body: bytes, where: str, most_bytes: int) -> bytes:
    stream = zlib.decompressobj()
    content = stream.decompress(body, most_bytes)
    if not stream.eof and len(content) >= most_bytes:
        raise _too_large(where, most_bytes)
    if not stream.eof:
        raise ValueError("the compressed part ends early")
    return content


def _too_large(where: str, most_bytes: int) -> FileFormatError:
    return FileFormatError(f"{where} unpacks to more than {most_bytes // MIB:,} MiB, the most that a trace may take.")


def _arrays(graph: Graph) -> dict[str, np.ndarray[Any, Any]]:
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for field in fields(Graph):
        value = getattr(graph, field.name)
        if isinstance(value, Ragged):
            arrays |= {f"{field.name}.start": value.start, f"{field.name}.values": value.values}
        elif isinstance(value, np.ndarray):
            arrays[field.name] = value
    return arrays


def _pack(trace: Trace) -> bytes:
    arrays = _arrays(trace.graph) | {"gradient_of": trace.gradient_of.ravel(), "op_call": trace.op_call}
    packed, rows = pack_arrays(arrays)
    header = {
        "name": trace.name,
        "mode": trace.mode,
        "precision": trace.defaults.precision,
        "optimizer": trace.defaults.optimizer,
        "assumptions": trace.assumptions,
        "uncosted_ops": trace.uncosted_ops,
        "provenance": trace.provenance,
        "call_functions": trace.call_functions,
        "names": trace.graph.names,
        "attributes": trace.graph.attributes,
        "modules": [[m.path, m.kind, m.input, m.output, m.parameters] for m in trace.modules],
        "parameters": [[p.name, p.tensor, p.gradient, int(p.is_trainable)] for p in trace.parameters],
        "arrays": rows,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + packed


def pack_arrays(arrays: dict[str, np.ndarray[Any, Any]]) -> tuple[bytes, list[tuple[str, str, int]]]:
    """All arrays one after another, and of each its name, type and length."""
    packed = {name: _smallest(array) for name, array in arrays.items()}
    content = b"".join(array.tobytes() for array in packed.values())
    return content, [(name, array.dtype.str, len(array)) for name, array in packed.items()]


def _smallest(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same numbers in the narrowest little-endian integers that hold them."""
    low, high = (int(array.min()), int(array.max())) if len(array) else (0, 0)
    for integer in _INTEGERS:
        if np.iinfo(integer).min <= low and high <= np.iinfo(integer).max:
            return array.astype(np.dtype(integer).newbyteorder("<"))
    raise AssertionError("int64 holds every int64")


def _unpack(content: bytes, where: str, most_bytes: int) -> Trace:
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    arrays = unpack_arrays(header["arrays"], content, 8 + length, where=where, most_bytes=most_bytes)
    graph = _graph(header, arrays)
    return Trace(
        name=str(header["name"]),
        mode=str(header["mode"]),
        graph=graph,
        modules=tuple(_module(*row) for row in header["modules"]),
        parameters=tuple(_parameter(*row) for row in header["parameters"]),
        gradient_of=arrays["gradient_of"].reshape(-1, 2),
        op_call=arrays["op_call"],
        call_functions=tuple(header["call_functions"]),
        defaults=Settings(header["precision"], header["optimizer"]),
        assumptions=tuple(header["assumptions"]),
        uncosted_ops=tuple(header["uncosted_ops"]),
        provenance=dict(header["provenance"]),
    )


def unpack_arrays(
    rows: list[tuple[str, str, int]], content: bytes, offset: int, *, where: str, most_bytes: int = MOST_BYTES
) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that `pack_arrays` wrote, from `offset` on."""
    arrays, n_bytes = {}, 0
    for name, dtype, count in rows:
        if np.dtype(dtype).kind != "i" or count < 0:
            raise ValueError(f"array {name} is not a list of integers")
        packed = np.frombuffer(content, dtype=dtype, count=count, offset=offset)
        n_bytes += count * np.dtype(np.int64).itemsize
        if n_bytes > most_bytes:
            raise _too_large(where, most_bytes)
        arrays[name] = packed.astype(np.int64)
        offset += count * np.dtype(dtype).itemsize
    return arrays


def _module(path: str, kind: str, first_input: int, first_output: int, parameters: list[int]) -> Module:
    return Module(path, kind, first_input, first_output, tuple(parameters))


def _parameter(name: str, tensor: int, gradient: int, is_trainable: int) -> Parameter:
    return Parameter(name, tensor, gradient, bool(is_trainable))


def _graph(header: dict[str, Any], arrays: dict[str, Any]) -> Graph:
    values: dict[str, Any] = {"names": tuple(header["names"]), "attributes": tuple(header["attributes"])}
    for field in fields(Graph):
        if f"{field.name}.start" in arrays:
            values[field.name] = Ragged(arrays[f"{field.name}.start"], arrays[f"{field.name}.values"])
        elif field.name not in values:
            values[field.name] = arrays[field.name]
    return Graph(**values)
