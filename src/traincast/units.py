"""Powers of ten and of two, and how quantities are shown to people.

Inside, everything is in base units: seconds, bytes, flop, flop/s, bytes/s, USD. These helpers are
used only where numbers enter (loaders, command line) and leave (report).
"""

from __future__ import annotations

KILO, MEGA, GIGA, TERA, PETA = 1e3, 1e6, 1e9, 1e12, 1e15
KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

_DECIMAL = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
_DURATIONS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def _digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def show_count(value: float, unit: str = "") -> str:
    """4.09e9 with unit 'flop' reads '4.09 Gflop'; whole numbers below a thousand stay whole."""
    for size, prefix in _DECIMAL:
        if abs(value) >= size * 0.9995:
            return f"{_digits(value / size)} {prefix}{unit}".rstrip()
    shown = f"{value:.0f}" if float(value).is_integer() else _digits(value)
    return f"{shown} {unit}".rstrip()


def show_bytes(value: float) -> str:
    """Binary units, as memory is sold and as drivers report it."""
    for size, unit in _BINARY:
        if abs(value) >= size * 0.9995:
            return f"{_digits(value / size)} {unit}"
    return f"{value:.0f} B"


def show_duration(value_s: float) -> str:
    """The largest unit that leaves at least one: 0.0123 reads '12.3 ms'."""
    if value_s == 0:
        return "0 s"
    for size, unit in _DURATIONS:
        if abs(value_s) >= size * 0.9995:
            return f"{_digits(value_s / size)} {unit}"
    return f"{_digits(value_s * 1e9)} ns"


def show_percent(fraction: float) -> str:
    """0.0712 reads '7.1 %'."""
    return f"{100 * fraction:.1f} %"
