"""Device tables on disk: the one that ships with traincast, and files of users' own.

The header carries the unit and a cell the number as its source prints it, so that a reviewer can compare the
two; here is the only place that converts. A file says what it means or is refused: an unknown column is more
likely a misspelt one than a remark.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from traincast.errors import FileFormatError, InputError, close_names
from traincast.hardware.device import MAY_BE_ZERO, Device, is_in_range
from traincast.report.small_files import csv_lines, read_text, shipped_text, toml_of
from traincast.units import GIB, GIGA, MEGA, MIB, TERA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class _Cell:
    """What a column holds and which field of Device it fills, once multiplied by `factor`."""

    field: str | None
    holds: Literal["text", "names", "number", "whole", "prices"] = "text"
    factor: float = 1


_MOST_SHOWN = 60  # characters of a cell in an error
_COLUMNS = {
    "name": _Cell("name"),
    "aliases": _Cell("aliases", "names"),
    "kind": _Cell("kind"),
    "vendor": _Cell("vendor"),
    "arch": _Cell("arch"),
    "die": _Cell("die"),
    "process_nm": _Cell("process_nm", "number"),
    "year": _Cell("year", "whole"),
    "n_sm": _Cell("n_sm", "whole"),
    "boost_clock_mhz": _Cell("boost_clock_hz", "number", MEGA),
    "peak_clock_mhz": _Cell("peak_clock_hz", "number", MEGA),
    "fp32_tflop_per_s": _Cell("fp32_flop_per_s", "number", TERA),
    "fp32_matrix_tflop_per_s": _Cell("fp32_matrix_flop_per_s", "number", TERA),
    "tf32_dense_tflop_per_s": _Cell("tf32_flop_per_s", "number", TERA),
    "fp16_dense_tflop_per_s": _Cell("fp16_flop_per_s", "number", TERA),
    "bf16_dense_tflop_per_s": _Cell("bf16_flop_per_s", "number", TERA),
    "fp8_dense_tflop_per_s": _Cell("fp8_flop_per_s", "number", TERA),
    "fp4_dense_tflop_per_s": _Cell("fp4_flop_per_s", "number", TERA),
    "memory_gib": _Cell("memory_bytes", "number", GIB),
    "inline_ecc": _Cell("inline_ecc", "whole"),
    "memory_kind": _Cell("memory_kind"),
    "memory_gb_per_s": _Cell("memory_bytes_per_s", "number", GIGA),
    "l2_mib": _Cell("l2_bytes", "number", MIB),
    "tdp_w": _Cell("tdp_w", "number"),
    "pcie_gen": _Cell("pcie_gen", "whole"),
    "nvlink_gb_per_s": _Cell("nvlink_bytes_per_s", "number", GIGA),
    "nvlink_generation": _Cell("nvlink_generation", "whole"),
    "nvlink_domain": _Cell("nvlink_domain", "whole"),
    "link_gb_per_s": _Cell("link_bytes_per_s", "number", GIGA),
    "link_latency_us": _Cell("link_latency_s", "number", 1e-6),
    "waiting_fraction": _Cell("waiting_fraction", "number"),
    "prices": _Cell("prices", "prices"),
    "price_log_sd": _Cell("price_log_sd", "number"),
    "source": _Cell("source"),
    "accessed": _Cell(None),
    "notes": _Cell("notes"),
}
_REQUIRED = ("name", "fp32_tflop_per_s", "memory_gib", "memory_gb_per_s")
_IN_BYTES = ("memory_bytes", "l2_bytes")


@lru_cache(maxsize=1)
def builtin_devices() -> tuple[Device, ...]:
    """The table that ships with traincast, in its own order."""
    return tuple(_device(row, where) for where, row in _csv_rows(shipped_text("devices.csv"), "devices.csv"))


def read_device_file(path: str | Path) -> tuple[Device, ...]:
    """Devices of a user's own: CSV, or TOML with one [[device]] table each, in the columns of devices.csv.

    Required are name, fp32_tflop_per_s, memory_gib and memory_gb_per_s. A tensor rate left out is unknown:
    write 0 for units that the device does not have.
    """
    path = Path(path)
    readers = {".csv": _csv_rows, ".toml": _toml_rows}
    if path.suffix.lower() not in readers:
        raise FileFormatError(f"Device file '{path}' should end in .csv or .toml.")
    text = read_text(path, f"Device file '{path}'")
    devices = []
    taken: set[str] = set()
    for where, row in readers[path.suffix.lower()](text, str(path)):
        _check_columns(row, where)
        device = _device(row, where)
        for column, names in (("name", (device.name,)), ("aliases", device.aliases)):
            for name in names:
                if name_key(name) in taken:
                    raise FileFormatError(f"{where}, column {column}: '{name}' is already taken in this file.")
                taken.add(name_key(name))
        devices.append(device)
    if not devices:
        raise FileFormatError(f"Device file '{path}' has no devices.")
    return tuple(devices)


def name_parts(name: str) -> list[str]:
    """The words of a name; case, spaces, dashes and underscores do not matter."""
    return [part for part in re.split(r"[\s_\-]+", name.casefold()) if part]


def name_key(name: str) -> str:
    """What two spellings of one name have in common: 'RTX 3090', 'rtx-3090' and 'rtx3090' are one."""
    return "".join(name_parts(name))


def _csv_rows(text: str, file: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each row with the words that name it in an error."""
    lines = csv_lines(text, f"Device file '{file}'")
    header = [column.strip() for column in next(lines, (0, []))[1]]
    if len(set(header)) < len(header):
        raise FileFormatError(f"Device file '{file}' names a column twice in its header.")
    for number, (_, cells) in enumerate(lines, start=1):
        row = dict(zip(header, cells, strict=False))
        where = _where(file, number, row)
        if len(cells) != len(header):
            raise FileFormatError(f"{where} has {len(cells)} cells where the header has {len(header)}.")
        yield where, row


def _toml_rows(text: str, file: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each [[device]] table with the words that name it in an error."""
    content = toml_of(text, f"Device file '{file}'")
    rows = content.pop("device", [])
    if content or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FileFormatError(f"Device file '{file}' should consist of [[device]] tables only.")
    for number, row in enumerate(rows, start=1):
        yield _where(file, number, row), row


def _where(file: str, number: int, row: Mapping[str, Any]) -> str:
    name = str(row.get("name", "")).strip()
    return f"Device file '{file}', row {number}" + (f" ('{name}')" if name else "")


def _check_columns(row: Mapping[str, Any], where: str) -> None:
    for column in row:
        if column not in _COLUMNS:
            close = close_names(column, _COLUMNS) or f" Known are {', '.join(_COLUMNS)}."
            raise FileFormatError(f"{where}: unknown column '{column}'.{close}")
    for column in _REQUIRED:
        if str(row.get(column, "")).strip() == "":
            raise FileFormatError(f"{where}: column {column} is required and missing or empty.")


def _device(row: Mapping[str, Any], where: str) -> Device:
    fields: dict[str, Any] = {"fp32_flop_per_s": None}
    for column, cell in _COLUMNS.items():
        raw = row.get(column, "")
        if cell.field is None or (isinstance(raw, str) and not raw.strip()):
            continue
        value = _value(raw, cell, f"{where}, column {column}")
        fields[cell.field] = round(value) if cell.field in _IN_BYTES else value
    try:
        return Device(**fields)
    except InputError as error:
        raise FileFormatError(f"{where}: {error}") from None


def _value(raw: Any, cell: _Cell, where: str) -> Any:
    """A cell of CSV (always text) or TOML (typed), as Device wants it."""
    if cell.holds == "names":
        names = raw if isinstance(raw, list) else str(raw).split(";")
        return tuple(str(name).strip() for name in names if str(name).strip())
    if cell.holds == "prices":
        return _prices(raw, where)
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise FileFormatError(f"{where}: {_shown(raw)} is neither text nor a number.")
    if cell.holds == "text":
        return str(raw).strip()
    try:
        number = float(raw)
    except (ValueError, OverflowError):
        raise FileFormatError(f"{where}: {_shown(raw)} is not a number.") from None
    if not is_in_range(number * cell.factor) or (number == 0 and cell.field not in MAY_BE_ZERO):
        raise FileFormatError(f"{where}: {_shown(raw)} is out of range.")
    if cell.holds == "whole":
        if not number.is_integer():
            raise FileFormatError(f"{where}: {_shown(raw)} is not a whole number.")
        return int(number)
    return float(f"{number * cell.factor:.15g}")  # 66.9 x 1e12 is 66900000000000.01 in floating point


def _prices(raw: Any, where: str) -> tuple[tuple[str, float], ...]:
    """A table of TOML: seconds by kind of work."""
    if not isinstance(raw, dict) or not all(type(price) in (int, float) for price in raw.values()):
        raise FileFormatError(f"{where}: prices are a table of seconds, as 'traincast calibrate' writes it.")
    return tuple((str(work), _price(price, f"{where}, {work}")) for work, price in sorted(raw.items()))


def _price(raw: float, where: str) -> float:
    """Finite; TOML can hold whole numbers that are larger than any float."""
    try:
        price = float(raw)
    except OverflowError:
        price = math.inf
    if price != 0 and not is_in_range(abs(price)):
        raise FileFormatError(f"{where}: {_shown(raw)} is out of range.")
    return price


def _shown(raw: Any) -> str:
    """What stands in a cell, as much of it as a sentence bears."""
    text = repr(raw)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def device_toml(device: Device) -> str:
    """A device as a TOML file that `read_device_file` reads."""
    lines = ["[[device]]"]
    for column, cell in _COLUMNS.items():
        value = None if cell.field is None or cell.holds == "prices" else getattr(device, cell.field)
        if value is None or value in ("", ()):
            continue
        # Spellings that read alike are one name, and a file gives every name once.
        shown = list({name_key(name): name for name in value}.values()) if isinstance(value, tuple) else value
        if cell.holds == "number":
            shown = float(f"{value / cell.factor:.15g}")
        # TOML writes strings, numbers and lists of strings as JSON does.
        lines.append(f"{column} = {json.dumps(shown, ensure_ascii=False)}")
    if device.prices:
        lines += ["", "[device.prices]", *(f"{json.dumps(work)} = {price!r}" for work, price in device.prices)]
    return "\n".join(lines) + "\n"
