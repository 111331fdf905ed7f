"""Layer and op records in the columns of the public timings, which the fits of `kernels` read.

A layer gives two rows: forward alone, and with backward and update. The public layers were timed in TensorFlow, whose
input and target were trained too; ours were not.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from traincast.errors import FileFormatError, InputError
from traincast.microbenchmarks.op_tasks import ROW_WISE
from traincast.records.export import Row, csv_text
from traincast.records.record import Record
from traincast.report.files import write_file

_OPTIMIZERS = {
    "none": "none", "sgd": "SGD", "momentum": "Momentum", "adagrad": "Adagrad", "rmsprop": "RMSProp", "adam": "Adam",
    "adadelta": "Adadelta",
}  # fmt: skip
_LAYER_ENDS = ["optimizer", "backward", "median_s", "min_s", "max_s", "std_s"]
_IMAGE = ["batch", "input_size", "kernel", "channels_in"]
_LAYER_COLUMNS = {
    "conv": ["run", *_IMAGE, "channels_out", "stride", "padding", "bias", "activation", *_LAYER_ENDS],
    "dense": ["run", "batch", "dim_in", "dim_out", "activation", *_LAYER_ENDS],
    "pool": ["run", *_IMAGE, "stride", "padding", "pooling", *_LAYER_ENDS],
    "lstm": ["run", "batch", "seqlen", "dim_in", "dim_out", *_LAYER_ENDS],
}
_GEMM = ["device", "op", "b", "m", "n", "k", "dtype", "ms", "dims"]
_ROWS = ["device", "op", "rows", "cols", "dtype", "ms", "dims"]
_OP_COLUMNS = {
    "gemm_linear": _GEMM,
    "gemm_bmm": _GEMM,
    "conv": ["device", "n", "c_in", "c_out", "ksize", "hw_in", "stride", "pad", "dtype", "ms"],
    "elementwise": _ROWS,
    "softmax_ln": _ROWS,
}


def write_public_tables(rows: Iterable[tuple[str, Record]], folder: str | Path) -> list[Path]:
    """layers/<layer>_<device>.csv.gz and ops/<table>.csv.gz under the folder; records that failed are left out."""
    tables: dict[tuple[str, str], list[Row]] = {}
    for campaign, record in rows:
        if record.error is None and record.kind in _ADD:
            try:
                _ADD[record.kind](tables, campaign, record)
            except (KeyError, TypeError):
                raise FileFormatError(
                    f"A record of kind '{record.kind}' in campaign '{campaign}' is damaged: its task or its values are "
                    "not those that 'traincast bench' writes."
                ) from None
    if not tables:
        raise InputError("There are no layer or op records to write tables of; 'traincast bench' measures them.")
    return [_write(Path(folder), name, columns_of(*name), cells) for name, cells in tables.items()]


def columns_of(room: str, table: str) -> list[str]:
    """The header of a table such as ('layers', 'conv_K80')."""
    return _OP_COLUMNS[table] if room == "ops" else _LAYER_COLUMNS[table.partition("_")[0]]


def _write(folder: Path, name: tuple[str, str], columns: list[str], cells: list[Row]) -> Path:
    room, table = name
    path = folder / room / f"{table}.csv.gz"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot write '{path}': {error.strerror or error}.") from error
    # Without a time in its header the same rows give the same bytes.
    return write_file(path, gzip.compress(csv_text(cells, columns).encode(), mtime=0))


def _add_layer(tables: dict[tuple[str, str], list[Row]], campaign: str, record: Record) -> None:
    task, values = record.task, record.values
    table = tables.setdefault(("layers", f"{task['layer']}_{_file_name(record.environment.device)}"), [])
    shape = {name: task[name] for name in columns_of("layers", str(task["layer"])) if name in task}
    for name, backward in (("forward_s", 0), ("step_s", 1)):
        optimizer = _OPTIMIZERS[str(task["optimizer"])] if backward else "none"
        times = {f"{what}_s": values[f"{what}_{name}"] for what in ("min", "max", "std")}
        cells = {"optimizer": optimizer, "backward": backward, "median_s": values[name]}
        table.append({"run": campaign, **shape, **cells, **times})


def _add_op(tables: dict[tuple[str, str], list[Row]], _: str, record: Record) -> None:
    op = str(record.task["op"])
    table = {"linear": "gemm_linear", "bmm": "gemm_bmm", "conv": "conv"}.get(
        op, "softmax_ln" if op in ROW_WISE else "elementwise"
    )
    cells: dict[str, Any] = {name: record.task[name] for name in _OP_COLUMNS[table] if name in record.task}
    cells |= {"device": record.environment.device, "ms": record.values["fastest_s"] * 1e3}
    if "dims" in _OP_COLUMNS[table]:
        cells["dims"] = "random"
    tables.setdefault(("ops", table), []).append(cells)


def _file_name(device: str) -> str:
    """'Intel(R) Xeon(R) CPU @ 2.20GHz' becomes 'Intel-R-Xeon-R-CPU-2.20GHz'."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", device).strip("-")


_ADD = {"layer": _add_layer, "op": _add_op}
