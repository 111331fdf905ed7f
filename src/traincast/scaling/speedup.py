"""The words of scaling, kept apart: speedup, efficiency and serial fraction, strong and weak.

Legend: T1 and TN are seconds of one step (or epoch) on one and on N devices, S a speedup.
Strong scaling keeps the global batch and asks how much sooner the same work is done. Weak scaling keeps the batch of
each device, so that N devices do N times the work, and asks how much more is done in the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from traincast.errors import InputError
from traincast.trace.graph import Floats

Kind = Literal["strong", "weak"]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Speedups:
    """What N devices made of one device's time, element by element.

    `serial_fraction` is Karp and Flatt's metric for strong scaling and Gustafson's fraction for weak scaling. It is
    not clipped: below 0 means faster than N devices can be by these laws, and `warnings` says so. NaN on one device.
    """

    kind: Kind
    n_devices: Floats
    speedup: Floats
    efficiency_fraction: Floats
    serial_fraction: Floats
    warnings: tuple[str, ...]


def strong_scaling(n_devices: ArrayLike, seconds: ArrayLike, *, one_device_s: ArrayLike) -> Speedups:
    """From seconds of the same global batch (or epoch) on N devices and on one."""
    n_devices, many_s, one_s = _checked(n_devices, seconds, one_device_s)
    speedup = one_s / many_s
    return _scaling("strong", n_devices, speedup, karp_flatt_fraction(speedup, n_devices))


def weak_scaling(n_devices: ArrayLike, step_s: ArrayLike, *, one_device_s: ArrayLike) -> Speedups:
    """From seconds of a step with the same batch per device on N devices and on one."""
    n_devices, many_s, one_s = _checked(n_devices, step_s, one_device_s)
    speedup = n_devices * one_s / many_s
    return _scaling("weak", n_devices, speedup, gustafson_fraction(speedup, n_devices))


def samples_per_s(global_batch_size: ArrayLike, step_s: ArrayLike) -> Floats:
    """Throughput: the samples of all devices together, a second."""
    return _positive(global_batch_size, "A global batch size") / _positive(step_s, "A step's seconds")


def karp_flatt_fraction(speedup: ArrayLike, n_devices: ArrayLike) -> Floats:
    """The serial fraction that Amdahl's law needs to explain a strong-scaling speedup: (1/S - 1/N) / (1 - 1/N).

    If it grows with N, the cause is not serial work but overhead that grows with N (Karp and Flatt, CACM 1990).
    """
    measured, n = _positive(speedup, "A speedup"), _counts(n_devices)
    return _per_extra_device(1 / measured - 1 / n, 1 - 1 / n)


def gustafson_fraction(scaled_speedup: ArrayLike, n_devices: ArrayLike) -> Floats:
    """The share of the time on N devices that must be serial to explain a weak-scaling speedup: (N - S) / (N - 1)."""
    measured, n = _positive(scaled_speedup, "A speedup"), _counts(n_devices)
    return _per_extra_device(n - measured, n - 1)


def amdahl_speedup(serial_fraction: ArrayLike, n_devices: ArrayLike) -> Floats:
    """Speedup of a fixed amount of work of which a fraction, of the time on one device, does not divide."""
    serial, n = _fraction(serial_fraction), _counts(n_devices)
    return 1 / (serial + (1 - serial) / n)


def gustafson_speedup(serial_fraction: ArrayLike, n_devices: ArrayLike) -> Floats:
    """Speedup of work that grows with N; the serial fraction is of the time on N devices (Gustafson, CACM 1988)."""
    serial, n = _fraction(serial_fraction), _counts(n_devices)
    return n - serial * (n - 1)


def _scaling(kind: Kind, n_devices: Floats, speedup: Floats, serial_fraction: Floats) -> Speedups:
    superlinear = np.unique(np.broadcast_to(n_devices, speedup.shape)[serial_fraction < -1e-12])
    warnings: tuple[str, ...] = ()
    if superlinear.size:
        counts = ", ".join(f"{n:.0f}" for n in superlinear)
        warnings = (
            f"Faster than linear on {counts} devices, so the serial fraction is negative there: input, memory or "
            "host probably slowed down the single device.",
        )
    return Speedups(
        kind=kind,
        n_devices=n_devices,
        speedup=speedup,
        efficiency_fraction=speedup / n_devices,
        serial_fraction=serial_fraction,
        warnings=warnings,
    )


def _checked(n_devices: ArrayLike, many_s: ArrayLike, one_s: ArrayLike) -> tuple[Floats, Floats, Floats]:
    return _counts(n_devices), _positive(many_s, "Seconds on N devices"), _positive(one_s, "Seconds on one device")


def _per_extra_device(numerator: Floats, denominator: Floats) -> Floats:
    """A quotient that one device leaves undefined."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    undefined = np.full(numerator.shape, np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)


def _positive(values: ArrayLike, what: str) -> Floats:
    checked = np.asarray(values, dtype=float)
    if not (np.isfinite(checked) & (checked > 0)).all():
        raise InputError(f"{what} must be above 0 and finite, not {_first_wrong(checked, checked > 0)}.")
    return checked


def _counts(values: ArrayLike) -> Floats:
    checked = np.asarray(values, dtype=float)
    right = np.isfinite(checked) & (checked >= 1) & (checked == np.floor(checked))
    if not right.all():
        raise InputError(
            f"A number of devices should be a whole number of at least 1, not {_first_wrong(checked, right)}."
        )
    return checked


def _fraction(values: ArrayLike) -> Floats:
    checked = np.asarray(values, dtype=float)
    right = (checked >= 0) & (checked <= 1)
    if not right.all():
        raise InputError(f"A serial fraction should be between 0 and 1, not {_first_wrong(checked, right)}.")
    return checked


def _first_wrong(values: Floats, right: np.ndarray) -> str:
    """The first value that fails; infinity is wrong wherever it is asked for."""
    return f"{values[~(right & np.isfinite(values))].ravel()[0]:g}"
