"""How people type values: 12h, 90%, $200, 15T, 1-8, 128:1024."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

from traincast.errors import InputError, quoted
from traincast.units import GIB, MEGA


@dataclass(frozen=True, slots=True)
class Typed:
    """`read` raises ValueError where a text is not what it should be."""

    metavar: str  # what stands for a value in the help
    read: Callable[[str], Any]
    what: str
    such_as: str
    show: Callable[[Any], str] = str  # a value as it would be typed

    def of(self, text: str, flag: str) -> Any:
        """The value that somebody typed after a flag."""
        try:
            return self.read(text.strip())
        except (ValueError, OverflowError):
            raise InputError(f"{flag} {quoted(text)} is not {self.what}: write {self.such_as}.") from None


_UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}  # by their first letter
_DURATION = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*"
    r"(?P<unit>d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])\s*"
)
_LONGEST_S = 1e9
_COUNT = re.compile(r"(?P<number>-?[0-9][0-9_,]*(?:\.[0-9]+)?(?:e[0-9]{1,3})?)\s*(?P<unit>[kmbgtp]?)", re.IGNORECASE)
_COUNT_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12, "p": 10**15}
_RANGE = re.compile(r"\s*(?P<first>[0-9]{1,7})\s*(?:-\s*(?P<last>[0-9]{1,7})\s*)?")
_MOST_NUMBERS = 10_000
_LONGEST_COUNT = 30  # letters; the rest would be no count that anybody means


def seconds(text: str) -> float:
    """Parts with units, added up; a number alone has no unit and is refused."""
    words, place, total_s = text.lower(), 0, 0.0
    while place < len(words):
        part = _DURATION.match(words, place)
        if part is None:
            break
        total_s += float(part["number"]) * _UNITS_S[part["unit"][0]]
        place = part.end()
    if place < len(words) or not 0 < total_s <= _LONGEST_S:
        raise ValueError(text)
    return total_s


def seconds_or_none(text: str) -> float:
    """0 is a duration, too."""
    return 0.0 if text in ("0", "0s") else seconds(text)


def seconds_or_duration(text: str) -> float:
    """A number alone is seconds."""
    try:
        return _finite(text)
    except ValueError:
        return seconds(text)


def shown_duration(value_s: float) -> str:
    """300 reads '5min'."""
    for unit, size_s in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if value_s and value_s % size_s == 0:
            return f"{value_s / size_s:.0f}{unit}"
    return f"{value_s:g}s"


def usd(text: str) -> float:
    """200, $200 or 1,500.50."""
    return _finite(text.removeprefix("$").replace(",", ""))


def share(text: str) -> float:
    """Between 0 and 1."""
    number, percent, rest = text.partition("%")
    value = _finite(number) / (100 if percent else 1)
    if rest or not 0 <= value <= 1:
        raise ValueError(text)
    return value


def accuracy(text: str) -> float:
    """0.92 or 92%, without limits: whoever uses it knows them."""
    return _finite(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


def count(text: str) -> int:
    """A whole number, as it is or in thousands (k), millions (M), billions (B, G) or trillions (T)."""
    match = _COUNT.fullmatch(text) if len(text) <= _LONGEST_COUNT else None
    if match is None:
        raise ValueError(text)
    digits = match["number"].replace("_", "").replace(",", "")
    unit = _COUNT_UNITS[match["unit"].lower()]
    value = int(digits) * unit if digits.removeprefix("-").isdigit() else _finite(digits) * unit
    if value != int(value):
        raise ValueError(text)
    return int(value)


def amount(text: str) -> float:
    """As a count; also one that is not whole, such as 1.5 epochs."""
    try:
        return count(text)
    except ValueError:
        return _finite(text)


def named(text: str) -> tuple[str, str]:
    """step=it: two words, both there."""
    name, _, value = (part.strip() for part in text.partition("="))
    if not (name and value):
        raise ValueError(text)
    return name, value


def size_of(text: str) -> tuple[str, int]:
    """depth=50: a column, and a whole number from 1."""
    name, value = named(text)
    size = count(value)
    if size < 1:
        raise ValueError(text)
    return name, size


def whole_numbers(text: str) -> list[int]:
    """1,2,4,8 or 1-20: each once, ascending; a range has both its ends."""
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        first = 0 if match is None else int(match["first"])
        last = first if match is None or match["last"] is None else int(match["last"])
        if first < 1 or last < first or last - first >= _MOST_NUMBERS:
            raise ValueError(text)
        found.update(range(first, last + 1))
    return sorted(found)


def as_typed(numbers: Sequence[int]) -> str:
    """1,2,3 reads '1-3'; 2,4 is a list."""
    first, last = numbers[0], numbers[-1]
    is_range = len(numbers) > 2 and list(numbers) == list(range(first, last + 1))
    return f"{first}-{last}" if is_range else ",".join(str(number) for number in numbers)


def in_order(text: str) -> list[int]:
    """32,64,128: each once, in the order given."""
    return list(dict.fromkeys(int(part) for part in text.split(",")))


def doubling(text: str) -> list[int]:
    """'128:1024' doubles from one end to the other, which it has both; '128,192' is a list."""
    if ":" in text:
        low, high = (int(part) for part in text.split(":"))
        if not 1 <= low <= high:
            raise ValueError(text)
        return sorted({low << n for n in range(high.bit_length()) if low << n <= high} | {high})
    found = {int(part) for part in text.split(",")}
    if min(found) < 1:
        raise ValueError(text)
    return sorted(found)


def growing_numbers(text: str) -> list[int | EllipsisType]:
    """A list of whole numbers; with '...' at its end it goes on."""
    listed = text.removesuffix(",...")
    return [*whole_numbers(listed), *([...] if listed != text else [])]


def names(text: str) -> list[str]:
    """ddp,fsdp: each once, as it is written."""
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


DURATION = Typed("TIME", seconds, "a duration above 0", "12h, 90min, 1d12h or 45s", shown_duration)
DURATION_OR_NONE = Typed("TIME", seconds_or_none, "a duration", "12h, 90min, 45s or 0", shown_duration)
SECONDS = Typed("SECONDS", seconds_or_duration, "a number of seconds", "60, 90s or 12h", lambda value: f"{value:g}")
USD = Typed("USD", usd, "an amount in US dollars", "200, $200 or 12.50")
SHARE = Typed("SHARE", share, "a share", "5% or 0.05", lambda value: f"{100 * value:g}%")
PROBABILITY = Typed("SHARE", share, "a share", "90% or 0.9")
ACCURACY = Typed("SHARE", accuracy, "an accuracy", "0.92 or 92%")
COUNT = Typed("N", count, "a whole number", "1281167, 300B or 15T")
AMOUNT = Typed("N", amount, "a number", "90, 1.5 or 300k")
MEANING = Typed("MEANING=NAME", named, "a meaning and a column's name", "step=it")
SIZE_OF = Typed("COLUMN=N", size_of, "a column and a whole number from 1", "depth=50")
WHOLE_NUMBERS = Typed("N[,N...]", whole_numbers, "a list of whole numbers from 1", "1,2,4,8 or 1-8", as_typed)
GROWING_NUMBERS = Typed(
    "N[,N...]",
    growing_numbers,
    "a list of whole numbers from 1",
    "32,128, or 32,... to go on",
    lambda values: ",".join("..." if value is ... else str(value) for value in values),
)
NUMBERS_IN_ORDER = Typed("N[,N...]", in_order, "a whole number or a list of them", "128, or 32,64,128")
DOUBLING = Typed("RANGE", doubling, "a range of whole numbers from 1", "128:1024 or 128,192,256")
NAMES = Typed("NAME[,NAME...]", names, "a list of names", "ddp,fsdp", ",".join)
MEGABYTES_PER_S = Typed(
    "RATE", lambda text: _finite(text) * MEGA, "a rate in MB/s", "131", lambda value: f"{value / MEGA:g}"
)
MILLISECONDS = Typed(
    "MS", lambda text: _finite(text) / 1e3, "a number of milliseconds", "5 or 0.5", lambda value: f"{1e3 * value:g}"
)
GIBIBYTES = Typed("GIB", lambda text: _finite(text) * GIB, "a number of GiB", "16", lambda value: f"{value / GIB:g}")
NUMBER = Typed("S", _finite, "a number", "0.5 or 1e-3")
# Without a unit: the metric is another option, and by itself a loss, which has no percent.
TARGET = Typed("VALUE", _finite, "a number", "0.92 (an accuracy of 92 % is --target 0.92 --metric accuracy)")
