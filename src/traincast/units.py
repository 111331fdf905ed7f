"""Powers of ten and of two, and how quantities are shown to people.

Inside, everything is in base units: seconds, bytes, flop, flop/s, bytes/s, USD. These helpers are
used only where numbers enter (loaders, command line) and leave (report).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KILO, MEGA, GIGA, TERA, PETA = 1e3, 1e6, 1e9, 1e12, 1e15
KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

_DECIMAL = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
_J_PER_WH = 3600.0
_G_PER_T = 1e6
_DURATIONS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def _digits(value: float) -> str:
    """Three significant digits, without an exponent; below a tenth two, so that little is not shown as nothing."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    if abs(value) >= 0.0995 or value == 0:
        return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"
    n_zeros = -math.floor(math.log10(abs(value))) - 1
    return f"{value:.{n_zeros + 2}f}" if n_zeros < 6 else f"{value:.1e}"


def count_unit(value: float, unit: str = "") -> tuple[float, str]:
    """The decimal unit in which a value is best read, with its size: (1e9, 'Gflop') for 4.09e9 flop."""
    for size, prefix in _DECIMAL:
        if abs(value) >= size * 0.9995:
            return size, f"{prefix}{unit}"
    return 1.0, unit


def bytes_unit(value: float) -> tuple[float, str]:
    """The binary unit in which a number of bytes is best read, and its size."""
    for size, unit in _BINARY:
        if abs(value) >= size * 0.9995:
            return float(size), unit
    return 1.0, "B"


def duration_unit(value_s: float) -> tuple[float, str]:
    """The unit in which a duration is best read, and its seconds."""
    if value_s == 0:
        return 1.0, "s"
    for size, unit in _DURATIONS:
        if abs(value_s) >= size * 0.9995:
            return size, unit
    return 1e-9, "ns"


def show_count(value: float, unit: str = "") -> str:
    """4.09e9 with unit 'flop' reads '4.09 Gflop'; whole numbers below a thousand stay whole."""
    size, prefixed = count_unit(value, unit)
    whole = size == 1 and float(value).is_integer()
    return f"{value:.0f} {prefixed}".rstrip() if whole else f"{_digits(value / size)} {prefixed}".rstrip()


def show_flop(value: float) -> str:
    """4.09e9 reads '4.09 Gflop'."""
    return show_count(value, "flop")


def show_flop_per_s(value: float) -> str:
    """8.1e12 reads '8.10 Tflop/s'."""
    return show_count(value, "flop/s")


def show_bytes(value: float) -> str:
    """Binary units, as memory is sold and as drivers report it."""
    size, unit = bytes_unit(value)
    return f"{value:.0f} B" if size == 1 else f"{_digits(value / size)} {unit}"


def show_bytes_per_s(value: float) -> str:
    """Decimal units, as bandwidth is sold: 3.2e11 reads '320 GB/s'."""
    return show_count(value, "B/s")


def show_duration(value_s: float) -> str:
    """The largest unit that leaves at least one: 0.0123 reads '12.3 ms'."""
    size, unit = duration_unit(value_s)
    return f"0 {unit}" if value_s == 0 else f"{_digits(value_s / size)} {unit}"


def show_percent(fraction: float) -> str:
    """0.0712 reads '7.1 %'."""
    return f"{100 * fraction:.1f} %"


def show_integer(value: float) -> str:
    """Every digit, in groups of three: 25557032 reads '25,557,032'."""
    return f"{value:,.0f}"


def show_things(n: int, thing: str) -> str:
    """So many of what has an s in the plural: '1 epoch', '1,200 epochs'."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def show_energy(value_j: float) -> str:
    """4.3e7 reads '12.0 kWh'."""
    return show_count(value_j / _J_PER_WH, "Wh")


def show_kg(value_kg: float) -> str:
    """Grams, kilograms or tonnes."""
    grams = 1000 * value_kg
    return f"{show_count(grams / _G_PER_T)} t" if abs(grams) >= _G_PER_T else show_count(grams, "g")


def show_watts(value_w: float) -> str:
    """56.0 reads '56.0 W'."""
    return show_count(value_w, "W")


def show_ratio(value: float) -> str:
    """Three significant digits without a unit: 203.125 reads '203'."""
    return _digits(value)


def shown_or_never(value: float, show: Callable[[float], str]) -> str:
    """What is infinitely far does not happen."""
    return "never" if math.isinf(value) else show(value)


def show_tokens(n: int) -> str:
    """As those who train language models say it, with B for a billion: 3e11 reads '300 B tokens'."""
    size, prefix = count_unit(n)
    return f"{_digits(n / size)} {prefix.replace('G', 'B')} tokens" if prefix else show_things(n, "token")


def show_usd(value: float) -> str:
    """Cents, and parts of a cent only where there is nothing else: '$12.34', '$0.0021'."""
    sign, amount = ("-" if value < 0 else ""), abs(value)
    if 0 < amount < 0.00005:
        return "less than $0.0001" if value > 0 else f"-${amount:.1g}"
    return f"{sign}${amount:.4f}" if 0 < amount < 0.005 else f"{sign}${amount:,.2f}"


def show_shape(shape: Iterable[int]) -> str:
    """(64, 3, 7, 7) reads '64x3x7x7'; a scalar has no dimensions."""
    return "x".join(str(size) for size in shape) or "scalar"
